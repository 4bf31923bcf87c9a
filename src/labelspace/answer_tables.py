"""Answers as lists of names and scores, or as a table of pandas, polars or pyarrow: a row per document and label."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from labelspace.data.answer_files.label_display import LabelDisplay
from labelspace.errors import ParameterError, require
from labelspace.types import LabelSpace, TopK

Table = Any
"""A table of pandas, polars or pyarrow."""
Output = Literal["pandas", "polars", "arrow"]
_EXTRAS = {"pandas": "pandas", "polars": "polars", "arrow": "parquet"}


def named(top: TopK, names: Sequence[str]) -> list[list[tuple[str, float]]]:
    """Label ids as (name, score), padding left out.

    >>> named(TopK.from_scores([[0.5, 0.75]], k=3), ["tea", "bread"])
    [[('bread', 0.75), ('tea', 0.5)]]
    """
    if top.k > len(names):  # the rest is padding
        top = top.padded(len(names))
    return [
        [(names[label], float(score)) for label, score in zip(row, scores, strict=True) if label >= 0]
        for row, scores in zip(top.labels.tolist(), top.scores.tolist(), strict=True)
    ]


def check_output(output: object) -> None:
    """Refuse what is no kind of table, or needs a package that is not installed."""
    if output not in get_args(Output):
        raise ParameterError(f"output must be None or one of {', '.join(_EXTRAS)}, but is {output!r}; use one of these")
    _package(str(output))


def _package(output: str) -> Any:  # noqa: ANN401 - packages that may not be installed
    return require("pyarrow" if output == "arrow" else output, _EXTRAS[output], f"output={output!r}")


def answer_table(
    answer: TopK, probabilities: TopK | None, labels: LabelSpace, documents: Sequence[Any] | None, output: Output
) -> Table:
    """The answers as a table with the columns of ``answer_columns``."""
    columns, package = answer_columns(answer, probabilities, labels, documents), _package(output)
    return package.table(columns) if output == "arrow" else package.DataFrame(columns)


def answer_columns(
    answer: TopK, probabilities: TopK | None, labels: LabelSpace, documents: Sequence[Any] | None = None
) -> dict[str, Any]:
    """The columns of a table of answers; a document without labels has no row.

    ``document`` (its name, or else its row from 0), ``rank`` (from 1), ``label``, ``label_id``, ``score``; then
    ``probability`` where there are some, ``uri`` of a vocabulary, and ``path`` from the root of a hierarchy.

    >>> top = TopK.from_scores([[0.5, 0.75], [0.25, -np.inf]], k=2)
    >>> columns = answer_columns(top, None, LabelSpace(["tea", "bread"]))
    >>> columns["document"], columns["label"], columns["rank"].tolist()
    ([0, 0, 1], ['bread', 'tea', 'tea'], [1, 2, 1])
    """
    rows, ranks = np.nonzero(answer.labels >= 0)
    ids = answer.labels[rows, ranks]
    columns: dict[str, Any] = {
        "document": rows.tolist() if documents is None else [documents[row] for row in rows.tolist()],
        "rank": ranks + 1,
        "label": [labels.names[label] for label in ids],
        "label_id": ids,
        "score": answer.scores[rows, ranks],
    }
    if probabilities is not None:
        columns["probability"] = probabilities.scores[rows, ranks]
    if labels.concepts is not None:
        columns["uri"] = [labels.concept(label).uri for label in ids]
    if labels.hierarchy is not None:
        display = LabelDisplay(labels)
        columns["path"] = [display.shown(label).path for label in ids.tolist()]
    return columns
