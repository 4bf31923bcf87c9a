"""The labels of a saved model: ``labels.jsonl`` for people, read line by line when asked, and arrays beside it."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.store.state import Arrays
from labelspace.types import Hierarchy, LabelSpace


def parse_labels(lines: bytes, arrays: Arrays) -> LabelSpace:
    """The label space of the lines of ``labels.jsonl`` and the arrays that ``label_arrays`` gave."""
    ends, edges, hierarchy = arrays["line_ends"], arrays["hierarchy"], None
    if len(edges):  # no cycle: that was checked before it was saved
        ones = np.ones(len(edges), np.float32)
        hierarchy = Hierarchy(sp.csr_matrix((ones, (edges[:, 0], edges[:, 1])), shape=(len(ends), len(ends))))
    names = JsonColumn(lines, ends, "label")
    synonyms = JsonColumn(lines, ends, "alt", []) if arrays["has_synonyms"][0] else None
    return LabelSpace(names, synonyms, arrays.get("counts"), int(arrays["n_documents"][0]), hierarchy)


class JsonColumn(Sequence[Any]):
    r"""One field of all lines of a JSON-lines file, read when asked for: a million labels load in no time.

    >>> JsonColumn(b'{"a": 1}\n{"a": 2}\n', np.array([9, 18]), "a")[1]
    2
    """

    def __init__(self, lines: bytes, ends: npt.NDArray[np.int64], key: str, default: object = None) -> None:
        self._lines, self._ends, self._key, self._default = lines, ends, key, default

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as a list has it: a number or a slice
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        line = self._lines[self._ends[at - 1] if at else 0 : self._ends[at]]
        return json.loads(line).get(self._key, self._default)

    def __iter__(self) -> Iterator[Any]:
        # One call for all lines: three times faster than one call a line.
        rows = json.loads(b"[" + self._lines.rstrip(b"\n").replace(b"\n", b",") + b"]")
        return (row.get(self._key, self._default) for row in rows)


def label_arrays(labels: LabelSpace) -> Arrays:
    """What of the labels is kept as arrays: hierarchy and counts."""
    edges = np.zeros((0, 2), np.int32) if labels.hierarchy is None else labels.hierarchy.edges
    arrays: Arrays = {"hierarchy": edges, "n_documents": np.array([labels.n_documents], np.int64)}
    arrays["has_synonyms"] = np.array([labels.synonyms is not None])
    return arrays if labels.counts is None else {**arrays, "counts": labels.counts}


def write_names(path: Path, labels: LabelSpace) -> npt.NDArray[np.int64]:
    """Write ``labels.jsonl``: one ``{"label": name, "alt": [synonyms]}`` a line, in the order of the label ids.

    Returns where each line ends, in bytes. Shape (n_labels,).
    """
    synonyms = labels.synonyms or [[]] * len(labels)
    lengths = np.zeros(len(labels), np.int64)
    with path.open("wb") as file:
        for i, (name, alt) in enumerate(zip(labels.names, synonyms, strict=True)):
            row = {"label": name, "alt": list(alt)} if alt else {"label": name}
            lengths[i] = file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return np.cumsum(lengths)
