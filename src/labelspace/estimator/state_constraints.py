"""Constraints on each part of a saved state: kind, dtype, shape, range, order, finiteness.

A model folder may come from a stranger, and kernels index memory with the numbers in it. So every learned attribute is
declared with one of these constraints, and ``labelspace.store`` checks them all when it loads.

Shapes and bounds are sizes: a number, a name, or a name plus a number, as ``"n_features + 1"``. A name stands for one
number within a state: the one in ``Stateful.sizes``, or the length of the first array that has the name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from labelspace.estimator.parameter_constraints import Constraint

Array: TypeAlias = npt.NDArray[Any]
Size = int | str
Kind = type | Callable[[str], type]
"""A class, or a function that gives the class for the name that a part was saved under."""
BLOCK_BYTES = 2**20  # an array is checked in blocks that stay in the processor's cache
LARGEST_FLOAT = 1e12  # the product of three such numbers is finite in 32 bits, so that answers and shares are too
IDS = "uint16 int32"  # ids in 16 bits where they suffice
OFFSETS = "int32 int64"


class StateError(Exception):
    """A state that breaks a constraint: the message follows its name, as in "must be ..., but ..."."""


def must(condition: bool | np.bool_, rule: str) -> None:
    """Raise a ``StateError`` unless a condition on a loaded state is true; ``rule`` names the condition."""
    if not condition:
        raise StateError(f"must have {rule}, but does not")


class Sizes:
    """The named sizes of a state, or of a part of it, which has names of its own for some sizes of the state."""

    def __init__(self, outer: Sizes | None = None, shared: Mapping[str, str] | None = None) -> None:
        self._known: dict[str, int] = {}
        self._outer, self._shared = outer, shared or {}

    def set(self, known: Mapping[str, int]) -> None:
        """Set the numbers that some names stand for."""
        self._known |= known

    def get(self, size: Size) -> int | None:
        """Return the number that a size stands for; None if its name is not known yet."""
        if isinstance(size, int):
            return size
        name, _, added = size.partition(" + ")
        if name in self._shared and self._outer is not None:
            known = self._outer.get(self._shared[name])
        else:
            known = self._known.get(name)
        return None if known is None else known + int(added or 0)

    def bind(self, size: Size, length: int) -> bool:
        """Return whether a length is this size; a name that is not known yet stands for the length from now on."""
        known = self.get(size)
        if known is not None:
            return known == length
        name, _, added = str(size).partition(" + ")
        if name in self._shared and self._outer is not None:
            return self._outer.bind(self._shared[name], length - int(added or 0))
        self._known[name] = length - int(added or 0)
        return self._known[name] >= 0

    def number(self, size: Size) -> int:
        """Return the number that a size stands for; raise StateError if its name is not known."""
        known = self.get(size)
        if known is None:
            raise StateError(f"must have a size {size!r}, but no array or value gives it")
        return known


@dataclass(frozen=True)
class ArrayConstraint:
    """An array of one of some dtypes, with a shape, and for integers a range; floats must be finite by default."""

    dtypes: tuple[str, ...]
    shape: tuple[Size, ...]
    at_least: Size | None = None
    below: Size | None = None
    finite: bool = True
    optional: bool = False  # None in place of the array

    def bind(self, array: Array, sizes: Sizes) -> None:
        """Check dtype and shape."""
        if array.dtype.name not in self.dtypes:
            raise StateError(f"must be of dtype {' or '.join(self.dtypes)}, but is {array.dtype.name}")
        agree = array.ndim == len(self.shape) and all(map(sizes.bind, self.shape, array.shape))
        if not agree:
            wanted = ((size, sizes.get(size)) for size in self.shape)
            expected = ", ".join(str(size if length is None else length) for size, length in wanted)
            raise StateError(f"must have shape ({expected}), but has {array.shape}")

    def check(self, array: Array, sizes: Sizes) -> None:
        """Check every number."""
        if array.dtype.kind == "f":
            if self.finite:
                for block in blocks(array):
                    _check_floats(block)
        elif array.dtype.kind == "b":  # any other byte is neither true nor false, and kernels would disagree
            _check_range(array.view(np.uint8), None, 2)
        low = None if self.at_least is None else sizes.number(self.at_least)
        high = None if self.below is None else sizes.number(self.below)
        if low is not None or high is not None:
            _check_range(array, low, high)


@dataclass(frozen=True)
class OffsetsConstraint:
    """The positions where n spans begin in an array, and where the last span ends: 0, ..., the length of the array."""

    n: Size
    into: Size

    def bind(self, array: Array, sizes: Sizes) -> None:
        """Check dtype and length."""
        more = f"{self.n} + 1" if isinstance(self.n, str) else self.n + 1
        ArrayConstraint(tuple(OFFSETS.split()), (more,)).bind(array, sizes)

    def check(self, array: Array, sizes: Sizes) -> None:
        """Check that the offsets begin at 0, never fall, and end at the length."""
        end = sizes.number(self.into)
        if array[0] != 0 or array[-1] != end or not is_sorted(array):
            raise StateError(f"must rise from 0 to {self.into}={end}, but does not")


@dataclass(frozen=True)
class SparseConstraint:
    """A csr or csc matrix; the indices of a row (or column) are in range, in any order."""

    dtype: str
    rows: Size
    columns: Size
    layout: str = "csr"


@dataclass(frozen=True)
class PlainConstraint:
    """A plain value of ``model.json``."""

    constraint: Constraint


@dataclass(frozen=True)
class PartConstraint:
    """A part with fields or a state of its own, or a list or dict of them."""

    kind: Kind
    count: str | None = None  # the size that is the length of a list; NAMED for a dict
    optional: bool = False
    shared: Mapping[str, str] = field(default_factory=dict)  # the part's names of sizes of the whole


@dataclass(frozen=True)
class ArraysConstraint:
    """A dict of arrays, each of which may be left out."""

    arrays: Mapping[str, ArrayConstraint]


StateConstraint = (
    ArrayConstraint | OffsetsConstraint | SparseConstraint | PlainConstraint | PartConstraint | ArraysConstraint
)
NAMED = "named"
offsets = OffsetsConstraint  # the positions where n spans begin in an array of length ``into``, and that length
sparse = SparseConstraint
plain = PlainConstraint  # a plain value that satisfies the constraint of a parameter


def array(
    dtypes: str,
    *shape: Size,
    at_least: Size | None = None,
    below: Size | None = None,
    finite: bool = True,
    optional: bool = False,
) -> ArrayConstraint:
    """Require an array of one of the dtypes, which are separated by spaces."""
    return ArrayConstraint(tuple(dtypes.split()), shape, at_least, below, finite, optional)


def ids(n: Size, below: Size, at_least: Size = 0, dtypes: str = "int32") -> ArrayConstraint:
    """Require numbers that index something of the size ``below``; with ``at_least=-1``, -1 stands for none."""
    return ArrayConstraint(tuple(dtypes.split()), (n,), at_least, below)


def arrays(**constraints: ArrayConstraint) -> ArraysConstraint:
    """Require some of these arrays, by name."""
    return ArraysConstraint(constraints)


def part(kind: Kind, optional: bool = False, **shared: str) -> PartConstraint:
    """Require a part; ``shared`` are sizes of the whole, by the names that the part has for them."""
    return PartConstraint(kind, None, optional, shared)


def parts(kind: Kind, count: str, **shared: str) -> PartConstraint:
    """Require a list of ``count`` parts."""
    return PartConstraint(kind, count, shared=shared)


def named_parts(kind: Kind, **shared: str) -> PartConstraint:
    """Require a dict of parts by name."""
    return PartConstraint(kind, NAMED, shared=shared)


def blocks(array: Array, overlap: int = 0) -> Iterator[Array]:
    """Yield the numbers of an array in blocks; each starts with the last ``overlap`` numbers of the block before."""
    flat = array.reshape(-1)
    step = max(1, BLOCK_BYTES // array.itemsize)
    for start in range(0, flat.size, step):
        yield flat[max(0, start - overlap) : start + step]


def is_sorted(array: Array) -> bool:
    """Return whether no number is below the number before it."""
    return all(bool((block[1:] >= block[:-1]).all()) for block in blocks(array, overlap=1))


def are_sorted_spans(array: Array, starts: Array) -> bool:
    """Return whether numbers rise within each span, without repetition; spans begin at ``starts`` (checked offsets)."""
    begin = 0
    for block in blocks(array, overlap=1):
        falls = np.flatnonzero(block[1:] <= block[:-1]) + 1 + begin  # where a span must begin
        if not (starts[np.searchsorted(starts, falls)] == falls).all():
            return False
        begin += len(block) - 1
    return True


def _check_floats(block: Array) -> None:
    if block.dtype == np.float16:  # it has no fast minimum, and no number that is too large
        are_finite = int((block.view(np.uint16) & 0x7C00).max()) < 0x7C00
    elif -LARGEST_FLOAT <= block.min() and block.max() <= LARGEST_FLOAT:  # NaN is in no range
        return
    else:
        are_finite = bool(np.isfinite(block).all())
        must(not are_finite, f"numbers of at most {LARGEST_FLOAT:.0e}")
    if not are_finite:
        raise StateError("must hold finite numbers, but holds NaN or infinity")


def _check_range(array: Array, low: int | None, high: int | None) -> None:
    for block in blocks(array):
        smallest, largest = block.min(), block.max()
        if low is not None and smallest < low:
            raise StateError(f"must be at least {low}, but one is {smallest}")
        if high is not None and largest >= high:
            raise StateError(f"must be below {high}, but one is {largest}")
