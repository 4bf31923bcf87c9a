"""Documents to review as a table for the terminal."""

from rich.console import Group

from labelspace.experiment.review import Review, ReviewDocument
from labelspace.report.tables import filled_table
from labelspace.report.terminal import shortened

WHY = {
    "uncertain": "probability that the first suggestion is wrong",
    "disagreement": "how much the lists of the members differ, from 0 to 1",
    "rare": "p (1 - p) of a label of few documents whose probability p leaves it open",
    "suspicious": "how sure the model is that a given label is wrong, from 0 to 1",
    "random": "drawn at random",
}
TEXT_LENGTH = 90  # characters of a document that are shown


def review_table(review: Review) -> Group:
    """Return a table with a row per document: its value, text, suggestions and given labels."""
    headings = ["id", "order", "value", "text", "suggestions"]
    has_labels = any(document.given for document in review.documents)
    if has_labels:
        headings.append("given")
    rows = []
    for document in review.documents:
        row = [document.record.id, document.order, f"{document.value:.3f}", _content(document), _suggestions(document)]
        rows.append([*row, ", ".join(document.given)] if has_labels else row)
    title = f"{len(rows):,} of {review.n_read:,} documents; {review.order}: {WHY[review.order]}"
    return filled_table(title, headings, rows, left=len(headings))


def _content(document: ReviewDocument) -> str:
    record = document.record
    return shortened((record.features if record.text is None else record.text) or "", TEXT_LENGTH)


def _suggestions(document: ReviewDocument) -> str:
    pairs = zip(document.labels, document.scores, strict=True)
    return ", ".join(f"{label} {score:.2f}" for label, score in pairs)
