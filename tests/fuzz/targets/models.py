"""Load a model folder, ask it everything that a user may, and save it again."""

import json
from pathlib import Path

import numpy as np

import labelspace
from labelspace.data.answer_files import LabelDisplay
from labelspace.data.records import Record
from labelspace.experiment.learning.comparison import document_values
from labelspace.explain import Explanation
from labelspace.labels.codes import code_summary
from labelspace.labels.tag_options import SelectOptions
from labelspace.models.capabilities import (
    AddsLabels,
    Calibrated,
    Explains,
    HasLabelCodes,
    HasLabelPoints,
    HasLabelTree,
    LearnsPrecision,
    PartialFit,
)
from labelspace.report.codes import codes_json, codes_text
from labelspace.report.map import map_page, map_summary
from labelspace.report.predictions import as_plain
from labelspace.report.terminal import json_text
from labelspace.report.tree import forest, tree_summary
from labelspace.tagger import Tagger
from labelspace.tagger.answers import DocumentAnswer
from labelspace.tagger.versions import history
from labelspace.types import TopK
from tests.fuzz.bases.models import beside, documents
from tests.fuzz.targets.outcome import Attempts, BadAnswerError

TEXTS = ["", "w1 w2 w3 label 3 w3", "nothing known é\u2028\0", " ".join(f"w{i % 90}" for i in range(300))]
ROWS = [Record("0", None, "", line=1), Record("1", None, "0:1 5:2.5 79:1", line=2)]
_given = documents()


def run(base: str, folder: Path, out: Path) -> tuple[str, str]:
    """The outcome of one case."""
    attempts = Attempts()
    attempts(labelspace.load, folder)
    tagger = attempts(labelspace.load, folder, verify=False)
    attempts.answers = 0
    if tagger is None:
        return attempts.outcome
    ask(tagger, attempts)
    show(tagger, attempts)
    attempts(history, folder)
    if tagger.held_out_ is not None:
        attempts(lambda: document_values(tagger, tagger.held_out_.dataset(tagger.labels_, tagger.side_columns)))
    if isinstance(tagger.model, AddsLabels):
        attempts(tagger.add_label, "one more", documents_of(tagger))
        attempts(tagger.remove_label, "one more")
        attempts(tagger.predict_topk, documents_of(tagger), 3)
    if isinstance(tagger.model, PartialFit):
        attempts(tagger.learn, documents_of(tagger), labels_of(tagger))
        check_answer(tagger, attempts, attempts(tagger.predict_topk, documents_of(tagger), 3), 3)
    edit(tagger, attempts)
    answered = attempts.outcome
    attempts(tagger.save, out)
    return answered


def edit(tagger: Tagger, attempts: Attempts) -> None:
    """Edit the labels in every way; none that is not in use may be answered."""
    first, second, third = attempts(lambda: list(tagger.labels_.names[:3])) or "012"
    attempts(tagger.retire_label, first)
    attempts(tagger.rename_label, second, "renamed")
    attempts(tagger.merge_labels, third, "renamed")
    attempts(tagger.add_label, "by name only", alt=["w2"])
    top = attempts(tagger.predict_topk, documents_of(tagger), 3)
    check_answer(tagger, attempts, top, 3)
    if top is not None and not tagger.labels_.in_use[top.labels[top.labels >= 0]].all():
        raise BadAnswerError(f"labels must be in use, but are {np.unique(top.labels)[:9]}")


def ask(tagger: Tagger, attempts: Attempts) -> None:
    """Predict in every way."""
    inputs = documents_of(tagger)
    for k in (1, 5, 1000):
        check_answer(tagger, attempts, attempts(tagger.predict_topk, inputs, k), k)
    check_answer(tagger, attempts, attempts(tagger.predict_topk, inputs, 3, consistent=True), 3)
    for options in ({"include": ["0"]}, {"include": ["0", "1", "2"]}, {"exclude": ["0"]}):
        check_filter(tagger, attempts, options)
    if isinstance(tagger.model, Calibrated):
        check_answer(tagger, attempts, attempts(tagger.predict_topk, inputs, 3, calibrated=True), 3)
        attempts(tagger.predict_topk, inputs, 3, min_probability=0.2)
        attempts(tagger.answer_batch, inputs, 3, min_probability=0.2, consistent=True)
    if isinstance(tagger.model, LearnsPrecision):
        attempts(tagger.answer_batch, inputs, 3, precision=0.6)
        attempts(tagger.predict_proba, inputs, 3, precision=0.6, consistent=True)
    if isinstance(tagger.model, Explains):
        for document in inputs:
            check_shares(attempts(tagger.explain, document, k=2) or [])
    if tagger.ready_made:
        attempts(lambda: list(tagger.tag_stream(ROWS, 3)))
    elif tagger.columns_ is not None:
        attempts(tagger.tag, dict.fromkeys(tagger.columns_.inputs, "w1"))


def check_filter(tagger: Tagger, attempts: Attempts, options: SelectOptions) -> None:
    """Refuse an answer with a label that is not allowed."""
    selection = attempts(tagger.selection, options)
    for k in (3, 1000):
        top = attempts(tagger.predict_topk, documents_of(tagger), k, **options)
        check_answer(tagger, attempts, top, k)
        if top is not None and selection is not None and not selection.allowed[top.labels[top.labels >= 0]].all():
            raise BadAnswerError(
                f"labels must be allowed by {selection.described}, but are {np.unique(top.labels)[:9]}"
            )


def documents_of(tagger: Tagger):  # noqa: ANN201 - texts or a matrix
    """A few odd documents, as the tagger takes them."""
    if tagger.side_columns:
        return [beside(text, tagger.side_columns) for text in TEXTS]
    return _given.X[[0, 1, 2, 3]] if tagger.ready_made else TEXTS


def labels_of(tagger: Tagger):  # noqa: ANN201 - names or a matrix
    """Labels of these documents, to learn them: a new one among them, where they have names."""
    if tagger.ready_made:
        return np.eye(4, len(tagger.labels_))
    return [["one more"], [], ["one more", "label 3"], ["label 3"]]


def check_answer(tagger: Tagger, attempts: Attempts, top: TopK | None, k: int) -> None:
    """Refuse an answer that is of the wrong shape, names no label, or would be printed as no JSON."""
    if top is None:
        return
    n = len(documents_of(tagger)) if not tagger.ready_made else 4
    if top.labels.shape != (n, k) or top.scores.shape != (n, k):
        raise BadAnswerError(f"the answer must have shape {(n, k)}, but has {top.labels.shape} and {top.scores.shape}")
    if not ((top.labels >= -1) & (top.labels < len(tagger.labels_))).all():
        raise BadAnswerError(f"labels must be -1 to {len(tagger.labels_) - 1}, but are {np.unique(top.labels)[:9]}")
    named = attempts(tagger.named, top) or ()  # names are read, and may be refused, when they are asked for
    for tags, labels, scores in zip(named, top.labels.tolist(), top.scores.tolist(), strict=False):
        if not all(isinstance(name, str) for name, _ in tags):
            raise BadAnswerError(f"names must be text, but are {[name for name, _ in tags][:5]}")
        n_tags = sum(label >= 0 for label in labels)
        answer = DocumentAnswer(labels[:n_tags], scores[:n_tags], [], is_read=True)
        plain = attempts(as_plain, answer, None, {}, LabelDisplay(tagger.labels_))
        json.loads(json_text(plain), parse_constant=_refuse_constant)


def check_shares(explanations: list[Explanation]) -> None:
    """Refuse shares that do not add up, or that would be printed as no JSON."""
    for why in explanations:
        shares = sum(part.share for part in (*why.words, *why.features, *why.values))
        if not abs(shares + why.remainder - why.total) <= 1e-4 * max(1.0, abs(why.total)):
            raise BadAnswerError(f"shares must add up to {why.total}, but give {shares} and {why.remainder}")
        json.loads(json_text(why.to_dict()), parse_constant=_refuse_constant)


def _refuse_constant(constant: str) -> None:
    raise BadAnswerError(f"a score must be valid JSON, but is {constant}")


def show(tagger: Tagger, attempts: Attempts) -> None:
    """What the commands tree, codes and map show, and what the labels say."""
    model, labels = tagger.model, tagger.labels_
    attempts(lambda: (list(labels.names), labels.texts(), labels.index, labels.are_paths))
    attempts(model.report)
    if isinstance(model, HasLabelTree) and (trees := attempts(model.label_trees)) is not None:
        attempts(lambda: [tree_summary(tree) for tree in trees])
        for form in ("text", "newick", "json"):
            attempts(forest, trees, labels, form, 3, [""] * len(trees))
    if isinstance(model, HasLabelCodes):
        for codes in attempts(model.label_codes) or ():
            attempts(code_summary, codes)
            attempts(codes_text, codes, labels)
            attempts(codes_json, codes, labels)
    if isinstance(model, HasLabelPoints) and (points := attempts(model.label_points)) is not None:
        attempts(map_page, points, labels, "labels")
        attempts(map_summary, points, labels)
