"""The contract of an index: ``search(queries, k)``, ``add(ids, vectors)``, ``remove(ids)``, and how it is saved."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError
from labelspace.estimator import Stateful, learned
from labelspace.types import Floats, Ints, TopK


class Index(Stateful):
    """Label vectors by label id; a query's labels are those of largest score, ties to the smaller id.

    The score is the inner product, unless the index says otherwise.
    """

    kind: str = learned()
    storage: str = learned()
    dimension: int = learned()
    report: dict[str, Any] = learned()  # what was chosen and measured, in plain values for ``model.json``

    def __init__(self, kind: str, storage: str, dimension: int) -> None:
        self.kind, self.storage, self.dimension = kind, storage, int(dimension)
        self.report = {"kind": kind, "storage": storage}

    @property
    @abstractmethod
    def ids(self) -> Ints:
        """The ids held, in no particular order. Shape (n,)."""

    @abstractmethod
    def _search(self, queries: Floats, k: int) -> TopK: ...

    @abstractmethod
    def _add(self, ids: Ints, vectors: Floats) -> None: ...

    @abstractmethod
    def _remove(self, ids: Ints) -> None: ...

    def __len__(self) -> int:
        return len(self.ids)

    def search(self, queries: npt.ArrayLike, k: int = 5) -> TopK:
        """The k ids of largest score for each query (m, dimension), padded with -1 / -inf."""
        if k < 1:
            raise ParameterError(f"k must be at least 1, but is {k}; ask for k=1 or more")
        asked = checked_table(queries, "queries", self.dimension)
        if not len(asked):
            return TopK.empty(0, k)
        return self._search(asked, k)

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Take in more vectors (n, dimension) under new ids, without a rebuild."""
        new, table = checked_ids(ids), checked_table(vectors, "vectors", self.dimension)
        check_one_id_a_vector(new, table)
        known = new[np.isin(new, self.ids)]
        if len(known):
            raise DataError(f"ids that are added must be new, but {known[0]} is in the index; remove it first")
        self._add(new, table)

    def remove(self, ids: npt.ArrayLike) -> None:
        """Drop ids, without a rebuild: they are not found from here on."""
        old = checked_ids(ids)
        unknown = old[~np.isin(old, self.ids)]
        if len(unknown):
            raise DataError(f"ids that are removed must be in the index, but {unknown[0]} is not; leave it out")
        self._remove(old)


def checked_ids(ids: npt.ArrayLike) -> Ints:
    """Label ids as int32, none twice, none negative: -1 means no label."""
    given = np.asarray(ids)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise DataError(
            f"ids must be a list of whole numbers, but have shape {given.shape} and type {given.dtype}; "
            "give one number a label"
        )
    if given.size and not 0 <= given.min() <= given.max() < 2**31:
        wrong = given.min() if given.min() < 0 else given.max()
        raise DataError(f"ids must be at least 0 and below 2^31, but one is {wrong}; number the labels from 0")
    ordered = np.sort(given)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(twice):
        raise DataError(f"ids must be unique, but {twice[0]} stands twice; give each label once")
    return given.astype(np.int32)


def checked_table(table: npt.ArrayLike, name: str, dimension: int | None = None) -> Floats:
    """Rows of finite float32; copied only where the given ones are not."""
    with np.errstate(over="ignore"):  # too large for float32 is infinite, and refused below
        rows = np.ascontiguousarray(table, dtype=np.float32)
    if rows.ndim != 2 or (dimension is not None and rows.shape[1] != dimension):
        expected = "two dimensions" if dimension is None else f"rows of {dimension} numbers"
        raise DataError(f"{name} must have {expected}, but have shape {rows.shape}; give one row each")
    # The sum is finite where all numbers are, and costs no table of booleans.
    if not np.isfinite(rows.sum(dtype=np.float64)):
        raise DataError(f"{name} must hold finite numbers, but have NaN or infinity; drop or fill those values")
    return rows


def check_one_id_a_vector(ids: Ints, vectors: Floats) -> None:
    """As many ids as vectors."""
    if len(ids) != len(vectors):
        raise DataError(
            f"there must be one id a vector, but there are {len(ids)} ids for {len(vectors)} vectors; give each its own"
        )
