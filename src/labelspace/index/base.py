"""The interface of an index: ``search(queries, k)``, ``vectors(ids)``, ``add(ids, vectors)``, ``remove(ids)``."""

from abc import abstractmethod
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError
from labelspace.estimator import Stateful, learned
from labelspace.estimator.parameter_constraints import anything, integer, mapping, text
from labelspace.estimator.state_constraints import plain
from labelspace.types import Bools, Floats, Ints, Longs, TopK


class Index(Stateful):
    """Vectors by label id; a search returns the ids of largest score, ties go to the smaller id.

    The score is the inner product, unless a subclass says otherwise.
    """

    copied_in_part: ClassVar[bool] = False  # whether ``_remove`` makes new arrays

    kind: str = learned(plain(text()))
    storage: str = learned(plain(text()))
    dimension: int = learned(plain(integer(0)))
    report: dict[str, Any] = learned(plain(mapping(anything())))  # what was chosen and measured

    def __init__(self, kind: str, storage: str, dimension: int) -> None:
        self.kind, self.storage, self.dimension = kind, storage, int(dimension)
        self.report = {"kind": kind, "storage": storage}

    def sizes(self) -> dict[str, int]:
        """Return the length of a vector, by the name that constraints refer to."""
        return {"dimension": self.dimension}

    @property
    @abstractmethod
    def ids(self) -> Ints:
        """Return the ids in the index, in no particular order. Shape (n,)."""

    @abstractmethod
    def _search(self, queries: Floats, k: int) -> TopK: ...

    @abstractmethod
    def _add(self, ids: Ints, vectors: Floats) -> None: ...

    @abstractmethod
    def _remove(self, ids: Ints) -> None: ...

    @abstractmethod
    def _vectors(self, at: Longs) -> Floats: ...

    def __len__(self) -> int:
        return len(self.ids)

    def search(self, queries: npt.ArrayLike, k: int = 5) -> TopK:
        """Return the k ids of largest score for each query (m, dimension), padded with -1 / -inf."""
        if k < 1:
            raise ParameterError(f"k must be at least 1, but is {k}; ask for k=1 or more")
        vectors = checked_vectors(queries, "queries", self.dimension)
        return self._search(vectors, k) if len(vectors) else TopK.empty(0, k)

    def vectors(self, ids: npt.ArrayLike) -> Floats:
        """Return the vectors of some ids as the index stores them, mostly rounded. Shape (len(ids), dimension)."""
        wanted, known = checked_ids(ids), self.ids
        at = np.flatnonzero(np.isin(known, wanted))
        if len(at) < len(wanted):
            unknown = wanted[~np.isin(wanted, known)][0]
            raise DataError(f"ids must be in the index, but {unknown} is not; leave it out")
        at = at[np.argsort(known[at])]
        return self._vectors(at[np.searchsorted(known[at], wanted)])

    def among(self, allowed: Bools) -> Self | None:
        """Return a copy of only the allowed ids, with the same scores; None if this kind cannot be copied in part."""
        return self.part(allowed) if self.copied_in_part else None

    def part(self, allowed: Bools) -> Self:
        """Return a copy of only the allowed ids; ``allowed`` has a boolean for each id up to the largest."""
        other = copy(self)
        other._remove(self.ids[~allowed[self.ids]])  # makes new arrays, so that this index stays as it is
        return other

    def with_vectors(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> Self:
        """Return a copy in which these ids, known or new, have these vectors (n, dimension); this index stays."""
        rows = checked_vectors(vectors, "vectors", self.dimension)
        given = checked_ids(ids, rows)
        other = self._copy()
        other._remove(given[np.isin(given, self.ids)])
        other._add(given, rows)
        return other

    def _copy(self) -> Self:
        """Return a copy; a change of it must not change this index."""
        return copy(self)

    def add(self, ids: npt.ArrayLike, vectors: npt.ArrayLike) -> None:
        """Add vectors (n, dimension) under new ids, without a rebuild."""
        rows = checked_vectors(vectors, "vectors", self.dimension)
        new = checked_ids(ids, rows)
        known = new[np.isin(new, self.ids)]
        if len(known):
            raise DataError(f"added ids must be new, but {known[0]} is in the index; remove it first")
        self._add(new, rows)

    def remove(self, ids: npt.ArrayLike) -> None:
        """Remove ids, without a rebuild."""
        old = checked_ids(ids)
        unknown = old[~np.isin(old, self.ids)]
        if len(unknown):
            raise DataError(f"removed ids must be in the index, but {unknown[0]} is not; leave it out")
        self._remove(old)


def checked_ids(ids: npt.ArrayLike, vectors: Floats | None = None) -> Ints:
    """Return label ids as int32 after checking that they are unique, not negative, and as many as the vectors."""
    given = np.asarray(ids)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        problem = f"ids must be a list of integers, but have shape {given.shape} and type {given.dtype}"
        raise DataError(f"{problem}; pass one integer per vector")
    if given.size and not 0 <= given.min() <= given.max() < 2**31:
        wrong = given.min() if given.min() < 0 else given.max()
        raise DataError(f"ids must be at least 0 and below 2^31, but one is {wrong}; number the labels from 0")
    ordered = np.sort(given)
    duplicates = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(duplicates):
        raise DataError(f"ids must be unique, but {duplicates[0]} occurs twice; give each label once")
    if vectors is not None and len(given) != len(vectors):
        numbers = f"{len(given)} ids for {len(vectors)} vectors"
        raise DataError(f"there must be one id per vector, but there are {numbers}; pass one each")
    return given.astype(np.int32)


def checked_vectors(vectors: npt.ArrayLike, name: str, dimension: int | None = None) -> Floats:
    """Return rows of float32 after checking that they are finite; they are copied only if necessary."""
    with np.errstate(over="ignore"):  # a number too large for float32 becomes infinite, and is rejected below
        rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2 or (dimension is not None and rows.shape[1] != dimension):
        expected = "two dimensions" if dimension is None else f"rows of {dimension} numbers"
        raise DataError(f"{name} must have {expected}, but have shape {rows.shape}; pass one row per vector")
    # The sum is finite if all numbers are, and needs no array of booleans.
    if not np.isfinite(rows.sum(dtype=np.float64)):
        raise DataError(f"{name} must hold finite numbers, but have NaN or infinity; drop or fill those values")
    return rows
