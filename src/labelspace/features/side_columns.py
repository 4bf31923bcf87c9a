"""Numbers, categories and vectors that stand beside the texts, as columns of X.

1. A number fills the two knots that it lies between, by its distance from each. Knots are quantiles of the training
   numbers. A smaller or larger number counts as the first or last knot, and a missing number has a column of its own.
2. A category has a column if several training documents have it; other categories, and missing ones, fill no column.
3. A vector is scaled to norm 1; a missing one fills no column.

The text counts 1, a number ``NUMBER``, a category column ``CATEGORY`` and a vector ``VECTOR``: these are shares of the
squared norm of a row, once they are divided by their sum.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from labelspace.errors import DataError
from labelspace.estimator import Stateful, learned
from labelspace.estimator.parameter_constraints import integer, list_of, mapping, optional, text
from labelspace.estimator.state_constraints import are_sorted_spans, array, must, offsets, plain
from labelspace.features.normalize import normalize_rows
from labelspace.features.sparse_matrix import csr_matrix
from labelspace.kernels.normalize import MIN_NORM
from labelspace.types import Csr, Doubles, Floats, Longs, SideColumns, TextWithValues

# Measured by one_vs_rest and neighbors: see docs/data.md.
NUMBER, CATEGORY, VECTOR = 1 / 8, 1 / 2, 1 / 2
N_KNOTS = 8  # of a number: with more, near numbers have less in common; with fewer, bands blur
MANY_DOCUMENTS, MIN_COUNT = 50, 2  # a category of many documents must occur this often, else once
MAX_CATEGORIES = 100_000  # of a column: the most frequent; each takes room in the model


class SideValue(NamedTuple):
    """One value of a document: its name for explanations, and the columns and values of X that it fills."""

    name: str
    columns: Any  # a list or an array
    values: Any


class SideFeatures(Stateful):
    """From the values beside texts to rows of X.

    >>> texts = [TextWithValues("tea", {"price": price, "brand": ["Tata"]}) for price in (1.0, 3.0)]
    >>> made = SideFeatures(SideColumns(numeric=["price"], categorical=["brand"]))
    >>> made.fit_transform(texts).toarray().round(2).tolist()
    [[0.4499..., 0.0, 0.0, 0.8899...], [0.0, 0.4499..., 0.0, 0.8899...]]
    >>> [value.name for value in made.values_of(TextWithValues("tea", {"price": 2.0, "brand": ["Trm"]}))]
    ['price 1 to 3', 'brand = Trm, which is not known']
    """

    name = "side_columns"

    numeric_: list[str] = learned(plain(list_of(text())))
    knots_: Doubles = learned(array("float64", "n_knots"))  # of each numeric column, rising
    knot_starts_: Longs = learned(offsets("n_numeric", into="n_knots"))
    categories_: dict[str, list[str]] = learned(plain(mapping(list_of(text()))))  # of each column
    vectors_: str | None = learned(plain(optional(text())))
    n_dims_: int = learned(plain(integer(0)))  # of a vector

    def __init__(self, columns: SideColumns = SideColumns()) -> None:  # noqa: B008 - frozen
        self._columns = columns

    def sizes(self) -> dict[str, int]:
        """Return the number of numeric columns."""
        return {"n_numeric": len(self.numeric_)}

    def check_state(self) -> None:
        """Check that there are columns, each named once, with knots that rise and categories that differ."""
        names = [*self.numeric_, *self.categories_, *([] if self.vectors_ is None else [self.vectors_])]
        must(0 < len(names) == len(set(names)) and all(names), "columns beside the texts, each named once")
        must(bool((np.diff(self.knot_starts_) > 0).all()), "knots of each numeric column")
        must(are_sorted_spans(self.knots_, self.knot_starts_), "rising knots")
        must(bool((np.abs(self.knots_) <= np.finfo(np.float32).max).all()), "knots of float32")
        must(all(len(set(known)) == len(known) for known in self.categories_.values()), "categories that differ")
        must((self.vectors_ is None) == (self.n_dims_ == 0), "vectors of at least one number")

    @cached_property
    def columns(self) -> SideColumns:
        """The names of the columns."""
        return SideColumns(tuple(self.numeric_), tuple(self.categories_), self.vectors_)

    @property
    def n_features(self) -> int:
        """The number of columns of X: knots, a column for missing numbers, categories, and dimensions of vectors."""
        return len(self.knots_) + len(self.numeric_) + sum(map(len, self.categories_.values())) + self.n_dims_

    @property
    def share(self) -> float:
        """The share of the values in the squared norm of a row."""
        weight = NUMBER * len(self.numeric_) + CATEGORY * len(self.categories_) + VECTOR * (self.vectors_ is not None)
        return weight / (1 + weight)

    def fit_transform(self, texts: Sequence[str]) -> Csr:
        """Learn from the values of the training texts, and return their rows. Shape (n, n_features)."""
        columns = self._columns
        values = [values_beside(each, columns) for each in texts]
        knots = [_knots(name, [each[name] for each in values]) for name in columns.numeric]
        self.numeric_ = list(columns.numeric)
        self.knots_ = np.concatenate([np.empty(0), *knots])
        self.knot_starts_ = np.cumsum([0, *map(len, knots)], dtype=np.int64)
        self.categories_ = {name: _categories([each[name] for each in values]) for name in columns.categorical}
        self.vectors_, self.n_dims_ = columns.vectors, 0
        if columns.vectors is not None:
            self.n_dims_ = _n_dims(columns.vectors, [each[columns.vectors] for each in values])
        self.forget_derived()
        return self.transform(texts)

    def transform(self, texts: Sequence[str]) -> Csr:
        """Return the rows of texts with values, scaled to norm 1. Shape (n, n_features)."""
        found = [list(self.values_of(each)) for each in texts]
        sizes = [sum(len(value.columns) for value in row) for row in found]
        columns = np.fromiter((at for row in found for value in row for at in value.columns), np.int32, sum(sizes))
        values = np.fromiter((at for row in found for value in row for at in value.values), np.float32, sum(sizes))
        return normalize_rows(csr_matrix(columns, values, np.cumsum(sizes, dtype=np.int64), self.n_features))

    def values_of(self, text: str) -> Iterator[SideValue]:
        """Yield each value beside a text, with the columns that it fills, in the order of the columns."""
        values, columns = values_beside(text, self.columns), self._first_columns
        for name, knots in self._knots.items():
            if name in values:
                yield _number(name, values[name], knots, columns[name])
        for name, known in self._known.items():
            given = values.get(name, ())
            ids = sorted((known[value], value) for value in set(given) if value in known)
            weight = math.sqrt(CATEGORY / max(len(ids), 1))
            for at, value in ids:
                yield SideValue(f"{name} = {value}", [columns[name] + at], [weight])
            for value in given:
                if value not in known:
                    yield SideValue(f"{name} = {value}, which is not known", [], [])
        vector = None if self.vectors_ is None else values.get(self.vectors_)
        if self.vectors_ is not None and vector is not None:
            _check_n_dims(self.vectors_, vector, self.n_dims_)
            first = columns[self.vectors_]
            norm = max(float(np.linalg.norm(vector)), float(MIN_NORM))
            scaled = (math.sqrt(VECTOR) / norm * vector).tolist()
            yield SideValue(self.vectors_, range(first, first + self.n_dims_), scaled)

    @cached_property
    def _knots(self) -> dict[str, list[float]]:
        spans = zip(self.numeric_, self.knot_starts_[:-1], self.knot_starts_[1:], strict=True)
        return {name: self.knots_[start:stop].tolist() for name, start, stop in spans}

    @cached_property
    def _known(self) -> dict[str, dict[str, int]]:
        return {name: {value: at for at, value in enumerate(known)} for name, known in self.categories_.items()}

    @cached_property
    def _first_columns(self) -> dict[str, int]:
        sizes = {name: len(knots) + 1 for name, knots in self._knots.items()}
        sizes |= {name: len(known) for name, known in self.categories_.items()}
        starts = np.cumsum([0, *sizes.values()]).tolist()
        return dict(zip([*sizes, self.vectors_ or ""], starts, strict=True))


def values_beside(text: str, columns: SideColumns) -> Mapping[str, Any]:
    """Return the values beside a text, none beside that of a label; raise DataError for a text that lacks some."""
    if isinstance(text, TextWithValues) and (not text.values or text.values.keys() >= set(columns.names)):
        return text.values
    names = ", ".join(columns.names)
    remedy = f'give rows with these columns, such as {{"text": ..., "{columns.names[0]}": ...}}, or a file'
    raise DataError(f"the model reads {names} beside each text, but a text lacks some; {remedy}")


def _number(name: str, value: float, knots: list[float], first: int) -> SideValue:
    """Return the knots that a number lies between, by its distance from each."""
    weight = math.sqrt(NUMBER)
    if math.isnan(value):
        return SideValue(f"{name} is missing", [first + len(knots)], [weight])
    above = bisect_right(knots, value)
    if above in (0, len(knots)):
        at = min(above, len(knots) - 1)
        limit = f"{knots[at]:g} or more" if above else f"below {knots[at]:g}"
        return SideValue(f"{name} {limit}", [first + at], [weight])
    low, high = knots[above - 1], knots[above]
    far = (value - low) / (high - low)
    norm = weight / math.hypot(1 - far, far)
    name = f"{name} {low:g} to {high:g}"
    return SideValue(name, [first + above - 1, first + above], [norm * (1 - far), norm * far])


def _knots(name: str, numbers: Sequence[float]) -> Doubles:
    """Return quantiles of the training numbers, each once."""
    known = np.array(numbers, np.float64)
    known = known[~np.isnan(known)]
    if not len(known):
        rule = f"a numeric column must hold a number, but {name!r} has none in {len(numbers):,} documents"
        raise DataError(f"{rule}; name another column, or leave it out")
    return np.unique(np.quantile(known, np.linspace(0, 1, N_KNOTS), method="nearest"))


def _categories(values: Sequence[Sequence[str]]) -> list[str]:
    """Return the categories that several documents have, the most frequent first."""
    counts = Counter(value for given in values for value in set(given))
    least = MIN_COUNT if len(values) >= MANY_DOCUMENTS else 1
    ranked = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [value for value, count in ranked[:MAX_CATEGORIES] if count >= least]


def _n_dims(name: str, vectors: Sequence[Floats | None]) -> int:
    """Return the length of the vectors of the training documents, which must be the same."""
    present = [vector for vector in vectors if vector is not None]
    if not present:
        rule = f"a column of vectors must hold one, but {name!r} has none in {len(vectors):,} documents"
        raise DataError(f"{rule}; name another column, or leave it out")
    for vector in present:
        _check_n_dims(name, vector, len(present[0]))
    return len(present[0])


def _check_n_dims(name: str, vector: Floats, n_dims: int) -> None:
    if len(vector) != n_dims:
        rule = f"the vectors of {name!r} must have {n_dims} numbers each, as in training"
        raise DataError(f"{rule}, but one has {len(vector)}; make all vectors in the same way")
