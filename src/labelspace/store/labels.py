"""The labels of a saved model: ``labels.jsonl`` for people, read line by line on demand, and arrays next to it."""

import json
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import ModelError
from labelspace.estimator.state_constraints import ArrayConstraint, Sizes, StateError, array, is_sorted
from labelspace.store.state import REMEDY, Arrays
from labelspace.types import NO_CONCEPT, Concept, Hierarchy, LabelSpace

PARSED_LINES = 4096  # at a time: more would keep the other fields of more lines in memory


def parse_labels(lines: bytes, arrays: Arrays) -> LabelSpace:
    """Return the label space of the lines of ``labels.jsonl`` and the arrays of ``label_arrays``.

    The arrays are checked here, but a line only when it is read: a million labels load at once.
    """
    sizes = Sizes()
    for key, constraint in _ARRAYS.items():
        if key in arrays or key not in _OPTIONAL:
            _check(constraint, key, arrays[key], sizes)
    ends, edges, hierarchy = arrays["line_ends"], arrays["hierarchy"], None
    _refuse_unless(arrays.keys() <= _ARRAYS.keys(), "no other arrays")
    _refuse_unless(is_sorted(ends) and (ends[-1] if len(ends) else 0) == len(lines), "line ends that rise to the last")
    _refuse_unless((np.frombuffer(lines, np.uint8)[ends - 1] == ord("\n")).all(), "one line per label")
    if len(edges):
        ones = np.ones(len(edges), np.float32)
        hierarchy = Hierarchy(sp.csr_matrix((ones, (edges[:, 0], edges[:, 1])), shape=(len(ends), len(ends))))
        _refuse_unless(hierarchy.is_forest() or not hierarchy.find_cycle(), "a hierarchy without cycle")
    names = JsonColumn(lines, ends, "label", str)
    synonyms = SynonymColumn(lines, ends, "alt", list) if arrays["has_synonyms"][0] else None
    concepts = ConceptColumn(lines, ends, "id", str) if "has_concepts" in arrays and arrays["has_concepts"][0] else None
    current = arrays.get("current")
    if current is not None:
        is_final = current[np.maximum(current, 0)] == current
        _refuse_unless(bool((is_final | (current < 0)).all()), "labels that are merged into labels in use")
        _refuse_unless(bool((current[edges] == edges).all()), "a hierarchy of labels in use")
    n_documents = int(arrays["n_documents"][0])
    return LabelSpace(names, synonyms, arrays.get("counts"), n_documents, hierarchy, concepts, current)


_ARRAYS = {
    "line_ends": array("int64", "n_labels", at_least=1),
    "hierarchy": array("int32", "n_edges", 2, at_least=0, below="n_labels"),
    "n_documents": array("int64", 1, at_least=0, below=2**31),  # documents are numbered in 32 bits
    "has_synonyms": array("bool", 1),
    "has_concepts": array("bool", 1),
    "counts": array("int64", "n_labels", at_least=0),
    "current": array("int32", "n_labels", at_least=-1, below="n_labels"),
}
_OPTIONAL = {"counts", "has_concepts", "current"}


def _check(constraint: ArrayConstraint, key: str, values: npt.NDArray[Any], sizes: Sizes) -> None:
    try:
        constraint.bind(values, sizes)
        constraint.check(values, sizes)
    except StateError as error:
        raise ModelError(f"{key} of the saved labels {error}; {REMEDY}") from None


def _refuse_unless(condition: bool | np.bool_, rule: str) -> None:
    if not condition:
        raise _refused(rule)


def _refused(rule: str) -> ModelError:
    return ModelError(f"the saved labels must have {rule}, but have not; {REMEDY}")


class JsonColumn(Sequence[Any]):
    r"""One field of all lines of a JSON-lines file, read and checked on demand.

    >>> JsonColumn(b'{"a": "x"}\n{"a": "y"}\n', np.array([11, 22]), "a", str)[1]
    'y'
    """

    def __init__(self, lines: bytes, ends: npt.NDArray[np.int64], key: str, kind: type[str] | type[list[str]]) -> None:
        self._lines, self._ends, self._key, self._kind = lines, ends, key, kind

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as a list has it: a number or a slice
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        return self._field(self._parse(self._lines[self._ends[at - 1] if at else 0 : self._ends[at]]))

    def __iter__(self) -> Iterator[Any]:
        # One call for many lines is three times faster than one call per line; one for all would leave the memory of
        # all other fields in use.
        start = 0
        for at in range(0, len(self), PARSED_LINES):
            ends = self._ends[at : at + PARSED_LINES]
            rows = self._parse(b"[" + self._lines[start : ends[-1]].rstrip(b"\n").replace(b"\n", b",") + b"]")
            _refuse_unless(isinstance(rows, list) and len(rows) == len(ends), "one JSON object per line")
            yield from map(self._field, rows)
            start = ends[-1]

    def _parse(self, line: bytes) -> Any:  # noqa: ANN401 - any JSON
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"the saved labels must be lines of JSON, but are not ({error}); {REMEDY}") from error

    def _field(self, row: Any) -> Any:  # noqa: ANN401 - any JSON
        value = row.get(self._key, [] if self._kind is list else None) if isinstance(row, dict) else None
        if not isinstance(value, self._kind) or (self._kind is list and not all(isinstance(v, str) for v in value)):
            raise _refused(f"{'texts' if self._kind is list else 'a text'} as {self._key!r} in each line")
        return value


class SynonymColumn(JsonColumn):
    """The synonyms of all lines, hidden ones last."""

    def _field(self, row: Any) -> list[str]:  # noqa: ANN401 - any JSON
        known: list[str] = super()._field(row)
        return [*known, *_concept(row).hidden] if "hidden" in row else known


class ConceptColumn(JsonColumn):
    """The concepts of all lines."""

    def _field(self, row: Any) -> Concept:  # noqa: ANN401 - any JSON
        return _concept(row)


def _concept(row: Any) -> Concept:  # noqa: ANN401 - any JSON
    try:
        return Concept.from_json(row if isinstance(row, dict) else {})
    except ValueError as error:
        raise _refused(str(error)) from None


def label_arrays(labels: LabelSpace) -> Arrays:
    """Return the hierarchy and counts of labels as arrays."""
    edges = np.zeros((0, 2), np.int32) if labels.hierarchy is None else labels.hierarchy.edges
    arrays: Arrays = {"hierarchy": edges, "n_documents": np.array([labels.n_documents], np.int64)}
    arrays["has_synonyms"] = np.array([labels.synonyms is not None])
    if labels.concepts is not None:
        arrays["has_concepts"] = np.array([True])
    if labels.current is not None:
        arrays["current"] = labels.current
    return arrays if labels.counts is None else {**arrays, "counts": labels.counts}


def write_names(path: Path, labels: LabelSpace) -> npt.NDArray[np.int64]:
    """Write ``labels.jsonl``: one ``{"label": name, "alt": [synonyms]}`` a line, in the order of the label ids.

    Labels with a concept have ``id`` (the URI), ``notation``, ``names``, ``hidden`` and ``description`` too, if any.

    Return where each line ends, in bytes. Shape (n_labels,).
    """
    synonyms = labels.synonyms or [[]] * len(labels)
    concepts = repeat(NO_CONCEPT) if labels.concepts is None else labels.concepts
    lengths = np.zeros(len(labels), np.int64)
    with path.open("wb") as file:
        for i, (name, known, concept) in enumerate(zip(labels.names, synonyms, concepts, strict=False)):
            alt = [synonym for synonym in known if synonym not in concept.hidden]
            row = {"label": name, **({"alt": alt} if alt else {}), **concept.to_json()}
            lengths[i] = file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return np.cumsum(lengths)
