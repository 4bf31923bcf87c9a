"""Answers as tables, in files and data frames: labels as they are shown, and one declaration of the columns."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import repeat
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from labelspace.errors import ParameterError, require
from labelspace.types import PATH_SEPARATOR, LabelSpace, TopK

SYNONYMS = 5  # of a label in an answer with details


class ShownLabel(NamedTuple):
    """What is shown of a label; None for what it lacks."""

    name: str
    uri: str | None
    notation: str | None
    path: str | None


class LabelDisplay:
    """The labels of a space, shown in a language if their vocabulary has names in it.

    >>> from labelspace.types import Concept
    >>> space = LabelSpace(["animals", "cats"], concepts=[Concept("ex:1"), Concept("ex:2", "02", {"fi": "kissat"})])
    >>> LabelDisplay(space, "fi").shown(1)
    ShownLabel(name='kissat', uri='ex:2', notation='02', path=None)
    """

    def __init__(
        self,
        labels: LabelSpace,
        language: str | None = None,
        are_probabilities: bool = False,
        with_details: bool = False,
    ) -> None:
        self._labels, self._language = labels, language
        self.are_probabilities = are_probabilities  # the scores of labels
        self.with_details = with_details  # probability, description and synonyms of each label in JSON
        if language is not None:
            check_language(labels, language)
        self.shown = cache(self._shown)  # the same labels come again and again

    def name(self, label: int) -> str:
        """Return the name in the language, else the label's own."""
        return self._labels.concept(label).name_in(self._language, self._labels.names[label])

    def _shown(self, label: int) -> ShownLabel:
        concept = self._labels.concept(label)
        return ShownLabel(self.name(label), concept.uri, concept.notation, self._path(label))

    def _path(self, label: int) -> str | None:
        """Return the names from the root on, by the first of several parents.

        If names are paths themselves, the path is the name.
        """
        if self._labels.hierarchy is None:
            return None
        parents, upwards = self._labels.hierarchy.parents, [label]
        while parents.indptr[upwards[-1] + 1] > parents.indptr[upwards[-1]]:
            upwards.append(int(parents.indices[parents.indptr[upwards[-1]]]))
        path = ""
        for name in map(self.name, reversed(upwards)):
            is_path = not path or name.startswith(path + PATH_SEPARATOR)
            path = name if is_path else path + PATH_SEPARATOR + name
        return path

    def names(self) -> Sequence[str]:
        """Return the names of all labels."""
        if self._language is None:
            return self._labels.names
        return [self.name(label) for label in range(len(self._labels))]

    def as_json(self, label: int, score: float, probability: float | None = None) -> dict[str, Any]:
        """Return a label of an answer, given by its own name, as a JSON object without what it lacks."""
        shown = self.shown(label)
        more: dict[str, Any] = {"id": shown.uri, "notation": shown.notation, "path": shown.path}
        if self.with_details:
            probability = score if self.are_probabilities else probability
            more["description"] = self._labels.concept(label).description
            more["synonyms"] = self._labels.shown_synonyms(label)[:SYNONYMS] or None
        more["probability"] = None if probability is None else round(probability, 6)
        present = {key: value for key, value in more.items() if value is not None}
        return {"label": shown.name, "score": round(score, 6), **present}


def check_language(labels: LabelSpace, language: str) -> None:
    """Raise ParameterError for a language in which no label has a name."""
    languages = {known for concept in labels.concepts or () for known in concept.names}
    if language in languages:
        return
    listed = ", ".join(sorted(languages)[:20])
    has = f"the names are in {listed}" if languages else "the labels have names in one language only"
    rule = "language must be one that the labels have names in"
    remedy = f"{has}: {'choose one of these' if languages else 'leave it out'}"
    raise ParameterError(f"{rule}, but is {language!r}; {remedy}", options=["language"])


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
    names = [each.name for each in shown]
    ids = [each.uri or str(label) for each, label in zip(shown, labels, strict=True)]
    notations = [each.notation for each in shown]
    paths = [each.path for each in shown]
    present = repeat(None, len(shown)) if probabilities is None else probabilities
    return dict(zip(COLUMNS, (documents, ranks, names, ids, notations, scores, present, paths), strict=True))


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
    rows = zip(top.labels.tolist(), top.scores.tolist(), strict=True)
    return [[(names[label], float(score)) for label, score in zip(*row, strict=True) if label >= 0] for row in rows]
