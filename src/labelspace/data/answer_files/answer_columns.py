"""Answers as tables, in files and data frames: one declaration of the columns; and as lists of names and scores."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, Literal, get_args

import numpy as np

from labelspace.data.answer_files.label_display import LabelDisplay
from labelspace.errors import ParameterError, require
from labelspace.types import LabelSpace, TopK

COLUMNS = {
    "id": "string",  # of the document
    "rank": "int32",  # from 1
    "label": "string",
    "label_id": "string",  # the URI, else the number
    "notation": "string",
    "score": "float32",
    "probability": "float32",
    "path": "string",  # from the root of the hierarchy
}
"""The columns of a table of answers, a row per document and label, and their types in Arrow."""

Table = Any
"""A table of pandas, polars or pyarrow."""
Output = Literal["pandas", "polars", "arrow"]
_EXTRAS = {"pandas": "pandas", "polars": "polars", "arrow": "parquet"}


def answer_columns(
    display: LabelDisplay,
    documents: Iterable[Any],
    ranks: Iterable[int],
    labels: Sequence[int],
    scores: Iterable[float],
    probabilities: Iterable[float] | None,
) -> dict[str, Iterable[Any]]:
    """Return the values of ``COLUMNS``, a value per row; what a label or an answer lacks is None.

    >>> display = LabelDisplay(LabelSpace(["tea", "bread"]))
    >>> columns = answer_columns(display, ["a", "a"], [1, 2], [1, 0], [0.75, 0.5], None)
    >>> columns["label"], columns["label_id"], columns["notation"]
    (['bread', 'tea'], ['1', '0'], [None, None])
    """
    shown = [display.shown(label) for label in labels]
    values = (
        documents,
        ranks,
        [each.name for each in shown],
        [each.uri or str(label) for each, label in zip(shown, labels, strict=True)],
        [each.notation for each in shown],
        scores,
        repeat(None, len(shown)) if probabilities is None else probabilities,
        [each.path for each in shown],
    )
    return dict(zip(COLUMNS, values, strict=True))


def answer_table(
    answer: TopK, probabilities: TopK | None, labels: LabelSpace, documents: Sequence[Any] | None, output: Output
) -> Table:
    """Return answers as a table of pandas, polars or pyarrow, with the columns of ``frame_columns``."""
    columns = frame_columns(answer, probabilities, labels, documents)
    package = _package(output)
    return package.table(columns) if output == "arrow" else package.DataFrame(columns)


def frame_columns(
    answer: TopK, probabilities: TopK | None, labels: LabelSpace, documents: Sequence[Any] | None = None
) -> dict[str, Any]:
    """Return the columns of a data frame of answers; a document without labels has no row.

    They are ``COLUMNS``, except that ``document`` (its name, else its row from 0) stands in place of ``id``. Without a
    vocabulary there is no ``notation``, without probabilities no ``probability``, without a hierarchy no ``path``. A
    vocabulary adds ``uri``, which is None for a label that has none.

    >>> top = TopK.from_scores([[0.5, 0.75], [0.25, -np.inf]], k=2)
    >>> columns = frame_columns(top, None, LabelSpace(["tea", "bread"]))
    >>> columns["document"], columns["label"], columns["label_id"], columns["rank"].tolist()
    ([0, 0, 1], ['bread', 'tea', 'tea'], ['1', '0', '0'], [1, 2, 1])
    """
    rows, ranks = np.nonzero(answer.labels >= 0)
    ids = answer.labels[rows, ranks].tolist()
    names = rows.tolist() if documents is None else [documents[row] for row in rows.tolist()]
    given = None if probabilities is None else probabilities.scores[rows, ranks]
    found = answer_columns(LabelDisplay(labels), names, ranks + 1, ids, answer.scores[rows, ranks], given)
    lacking = {"notation": labels.concepts is None, "probability": given is None, "path": labels.hierarchy is None}
    columns = {"document": found.pop("id"), **{name: found[name] for name in found if not lacking.get(name)}}
    if labels.concepts is not None:
        columns["uri"] = [labels.concept(label).uri for label in ids]
    return columns


def check_output(output: object) -> None:
    """Raise ParameterError unless ``output`` names a kind of table; raise an error if its package is missing."""
    if output not in get_args(Output):
        raise ParameterError(f"output must be None or one of {', '.join(_EXTRAS)}, but is {output!r}; use one of these")
    _package(str(output))


def _package(output: str) -> Any:  # noqa: ANN401 - packages that may not be installed
    return require("pyarrow" if output == "arrow" else output, _EXTRAS[output], f"output={output!r}")


def named(top: TopK, names: Sequence[str]) -> list[list[tuple[str, float]]]:
    """Return pairs (name, score) of each document, without padding.

    >>> named(TopK.from_scores([[0.5, 0.75]], k=3), ["tea", "bread"])
    [[('bread', 0.75), ('tea', 0.5)]]
    """
    if top.k > len(names):  # the rest is padding
        top = top.padded(len(names))
    return [
        [(names[label], float(score)) for label, score in zip(row, scores, strict=True) if label >= 0]
        for row, scores in zip(top.labels.tolist(), top.scores.tolist(), strict=True)
    ]
