"""Shared data types: Dataset (with Columns), LabelSpace (with Hierarchy), TopK."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.limits import ANCESTORS_PER_LABEL, MAX_ANCESTORS, MAX_LEVELS, MAX_PATH_CHARACTERS

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Csr: TypeAlias = sp.csr_matrix
"""A SciPy CSR matrix; rows are documents unless a name says otherwise."""

PATH_SEPARATOR = " > "
SHOWN_OF_CYCLE = 10  # labels in an error message

Progress = Callable[[str, int, int], None]
"""Called as ``progress(step, done, total)`` by long computations."""


def no_progress(step: str, done: int, total: int) -> None:
    """Report nothing."""


@runtime_checkable
class OverallProgress(Protocol):
    """A ``Progress`` that can also show a training of many steps as one."""

    def overall(self, phase: str, step: str, share: float, seconds_left: float | None) -> None:
        """What is done now, the share of the whole that is done, and the seconds left where they are known."""


@dataclass(frozen=True)
class TopK:
    """The k best labels of each document, best first, padded with -1 / -inf.

    >>> TopK.from_scores(np.array([[0.1, 0.9, 0.5]]), k=2).labels
    array([[1, 2]], dtype=int32)
    """

    labels: Ints  # (n, k) int32
    scores: Floats  # (n, k) float32

    def __post_init__(self) -> None:
        if self.labels.ndim != 2 or self.labels.shape != self.scores.shape:
            raise DataError(
                f"labels and scores of a TopK must be 2-dimensional and of equal shape, but have shapes "
                f"{self.labels.shape} and {self.scores.shape}; pass one score per label"
            )
        object.__setattr__(self, "labels", np.ascontiguousarray(self.labels, dtype=np.int32))
        object.__setattr__(self, "scores", np.ascontiguousarray(self.scores, dtype=np.float32))

    def __len__(self) -> int:
        return int(self.labels.shape[0])

    @property
    def k(self) -> int:
        """Labels per document."""
        return int(self.labels.shape[1])

    @staticmethod
    def empty(n: int, k: int) -> TopK:
        """A TopK of padding only."""
        return TopK(np.full((n, k), -1, np.int32), np.full((n, k), -np.inf, np.float32))

    @staticmethod
    def from_scores(scores: npt.ArrayLike, k: int) -> TopK:
        """The k best of dense scores (n, n_labels); ties go to the smaller label id, -inf is no label."""
        table = np.asarray(scores, dtype=np.float32)
        order = np.argsort(-table, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(table, order, axis=1)
        return TopK(np.where(best > -np.inf, order, -1).astype(np.int32), best).padded(k)

    @staticmethod
    def from_sparse(scores: Csr, k: int) -> TopK:
        """Take the k largest values above 0 of each row of a sparse score table (n, n_labels).

        >>> table = sp.csr_matrix(np.array([[0.0, 0.2, 0.7], [0.5, 0.0, 0.0]], np.float32))
        >>> TopK.from_sparse(table, k=2).labels.tolist()
        [[2, 1], [0, -1]]
        """
        rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
        order = np.lexsort((scores.indices, -scores.data, rows))
        rank = np.arange(len(order)) - scores.indptr[rows]  # order has the rows one after the other
        kept = (rank < k) & (scores.data[order] > 0)
        top = TopK.empty(scores.shape[0], k)
        top.labels[rows[kept], rank[kept]] = scores.indices[order[kept]]
        top.scores[rows[kept], rank[kept]] = scores.data[order[kept]]
        return top

    def padded(self, k: int) -> TopK:
        """The same with exactly k labels per document: truncated, or padded with -1 / -inf."""
        if self.k >= k:
            return TopK(self.labels[:, :k], self.scores[:, :k])
        out = TopK.empty(len(self), k)
        out.labels[:, : self.k] = self.labels
        out.scores[:, : self.k] = self.scores
        return out

    def at_least(self, score: float) -> TopK:
        """The same without labels of a lower score.

        >>> TopK.from_scores([[0.9, 0.1]], k=2).at_least(0.5).labels.tolist()
        [[0, -1]]
        """
        low = self.scores < score
        return TopK(np.where(low, -1, self.labels), np.where(low, -np.inf, self.scores))

    def among(self, allowed: Bools, k: int) -> TopK:
        """The first k that are allowed (n_labels,), of each document.

        >>> TopK.from_scores([[0.9, 0.1, 0.5]], k=3).among(np.array([False, True, True]), k=3).labels.tolist()
        [[2, 1, -1]]
        """
        kept = (self.labels >= 0) & allowed[self.labels]
        order = np.argsort(~kept, axis=1, kind="stable")[:, :k]
        labels, scores = np.where(kept, self.labels, -1), np.where(kept, self.scores, -np.inf)
        return TopK(np.take_along_axis(labels, order, 1), np.take_along_axis(scores, order, 1)).padded(k)

    def to_csr(self, n_labels: int) -> Csr:
        """The labels as a 0/1 matrix (n, n_labels)."""
        is_label = self.labels >= 0
        indptr = np.concatenate([[0], np.cumsum(is_label.sum(axis=1))])
        ones = np.ones(int(indptr[-1]), np.float32)
        matrix = sp.csr_matrix((ones, self.labels[is_label], indptr), shape=(len(self), n_labels))
        matrix.sort_indices()
        return matrix


@dataclass(frozen=True)
class Hierarchy:
    """Edges child -> parent between label ids: a tree, or a DAG where a label has several parents.

    >>> tree = Hierarchy.from_edges(np.array([[1, 0], [2, 1]]), n_labels=3)
    >>> tree.levels.tolist(), tree.ancestors[2].indices.tolist()
    ([0, 1, 2], [0, 1])
    """

    parents: Csr  # (n_labels, n_labels), row = child, columns = its parents

    @staticmethod
    def from_edges(edges: npt.ArrayLike, n_labels: int, names: Sequence[str] | None = None) -> Hierarchy:
        """Build from rows (child, parent); a cycle is an error that names its labels."""
        pairs = np.unique(np.asarray(edges, dtype=np.int64).reshape(-1, 2), axis=0)
        ones = np.ones(len(pairs), np.float32)
        hierarchy = Hierarchy(sp.csr_matrix((ones, (pairs[:, 0], pairs[:, 1])), shape=(n_labels, n_labels)))
        cycle = hierarchy.find_cycle()
        if cycle:
            shown = [str(label) if names is None else names[label] for label in cycle[:SHOWN_OF_CYCLE]]
            more = [f"({len(cycle) - len(shown)} more)"] if len(shown) < len(cycle) else []
            path = " -> ".join([*shown, *more, shown[0]])
            raise DataError(f"a hierarchy must have no cycle, but {path} is one; remove one of these edges")
        return hierarchy

    @property
    def edges(self) -> Ints:
        """Rows (child, parent), sorted. Shape (n_edges, 2)."""
        coo = self.parents.tocoo()
        return np.stack([coo.row, coo.col], axis=1).astype(np.int32)

    def without(self, label: int) -> Hierarchy:
        """The same with the edges of a label removed: its children become children of its parents.

        >>> Hierarchy.from_edges([[1, 0], [2, 1]], n_labels=3).without(1).edges.tolist()
        [[2, 0]]
        """
        edges = self.edges
        children, parents = edges[edges[:, 1] == label, 0], edges[edges[:, 0] == label, 1]
        bridges = np.stack([np.repeat(children, len(parents)), np.tile(parents, len(children))], axis=1)
        others = edges[(edges != label).all(axis=1)]
        return Hierarchy.from_edges(np.concatenate([others, bridges]), self.parents.shape[0])

    def find_cycle(self) -> list[int]:
        """The labels of one cycle, each followed by one of its parents; empty where there is none."""
        unresolved = self._levels[1]
        if not unresolved.any():
            return []
        # Every unresolved label has an unresolved parent, so walking up from any of them must end in a cycle.
        label, visited = int(np.flatnonzero(unresolved)[0]), {}
        walk: list[int] = []
        while label not in visited:
            visited[label] = len(walk)
            walk.append(label)
            parents = self.parents.indices[self.parents.indptr[label] : self.parents.indptr[label + 1]]
            label = int(parents[unresolved[parents]][0])
        return walk[visited[label] :]

    def is_forest(self) -> bool:
        """Whether every label has one parent at most, and a root above it: then there is no cycle."""
        n = self.parents.shape[0]
        if np.diff(self.parents.indptr).max(initial=0) > 1:
            return False
        above = np.full(n + 1, n, np.int32)  # n stands for what is above a root
        above[:-1][np.diff(self.parents.indptr) == 1] = self.parents.indices
        for _ in range(n.bit_length() + 1):
            if (above == n).all():
                return True
            above = above[above]  # twice as far up
        return False

    @cached_property
    def _levels(self) -> tuple[Ints, Bools]:
        """Longest distance from a root, and which labels are on or below a cycle."""
        n = self.parents.shape[0]
        level = np.zeros(n, np.int32)
        waiting = np.diff(self.parents.indptr).astype(np.int64)  # number of unresolved parents
        children = self.parents.T.tocsr()
        frontier = np.flatnonzero(waiting == 0)
        resolved = np.zeros(n, bool)
        depth = 0
        while frontier.size:
            if depth == MAX_LEVELS.value:
                raise too_many_levels(depth)
            resolved[frontier], level[frontier] = True, depth
            below = children[frontier].indices
            np.subtract.at(waiting, below, 1)
            below = np.unique(below)
            frontier, depth = below[waiting[below] == 0], depth + 1
        return level, ~resolved

    @property
    def levels(self) -> Ints:
        """Depth of each label: 0 for a root, else one more than its deepest parent. Shape (n_labels,)."""
        return self._levels[0]

    @cached_property
    def ancestors(self) -> Csr:
        """Row l marks all ancestors of l, without l itself. Shape (n_labels, n_labels).

        Level by level: the ancestors of a label are its parents and their ancestors.
        """
        levels, n = self.levels, self.parents.shape[0]
        found = np.zeros(0, np.int32)  # the ancestors of all labels so far, a label after the other; grows by doubling
        begins, sizes, filled = np.zeros(n, np.int64), np.zeros(n, np.int64), 0
        order = np.argsort(levels, kind="stable")
        starts = np.searchsorted(levels[order], np.arange(1, levels.max(initial=0) + 2))
        for labels in np.split(order, starts)[1:-1]:
            parents = self.parents[labels]
            # At least those of the parent with the most; exactly, in a tree.
            least = np.maximum.reduceat(sizes[parents.indices] + 1, parents.indptr[:-1]).sum()
            check_ancestors(filled + int(least), n)
            above, at = np.unique(parents.indices, return_inverse=True)
            of_above = rows_of(found, begins[above], sizes[above], n)
            steps = sp.csr_matrix((parents.data, at, parents.indptr), shape=(len(labels), len(above)))
            block = (parents + steps @ of_above).tocsr()
            block.sort_indices()
            if filled + block.nnz > len(found):
                found = np.concatenate([found, np.zeros(max(len(found), block.nnz), np.int32)])
            found[filled : filled + block.nnz] = block.indices
            begins[labels], sizes[labels] = filled + block.indptr[:-1], np.diff(block.indptr)
            filled += block.nnz
        return rows_of(found, begins, sizes, n)

    def closed(self, Y: Csr) -> Csr:
        """The 0/1 label matrix with the ancestors of all its labels added."""
        check_ancestors(int(np.diff(self.ancestors.indptr)[Y.indices].sum(dtype=np.int64)), Y.nnz)
        closure = (Y + Y @ self.ancestors).tocsr()
        closure.data = np.ones_like(closure.data, dtype=np.float32)
        closure.sort_indices()
        return closure


def rows_of(indices: Ints, begins: Longs, sizes: Longs, n_columns: int) -> Csr:
    """The matrix of ones whose row i has the columns ``indices[begins[i] : begins[i] + sizes[i]]``.

    >>> rows_of(np.array([4, 0, 1]), np.array([1, 0]), np.array([2, 1]), 5).toarray().tolist()
    [[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    """
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    columns = indices[np.arange(indptr[-1]) + np.repeat(begins - indptr[:-1], sizes)]
    return sp.csr_matrix((np.ones(len(columns), np.float32), columns, indptr), shape=(len(sizes), n_columns))


def check_ancestors(n_pairs: int, n_labels: int) -> None:
    """A deep hierarchy has quadratically many pairs of a label and an ancestor; too many are an error."""
    limit = max(MAX_ANCESTORS.value, ANCESTORS_PER_LABEL * n_labels)
    if n_pairs > limit:
        raise DataError(
            f"the labels must have at most {limit} ancestors in all, but have {n_pairs} or more; use a hierarchy of "
            f"fewer levels, or {MAX_ANCESTORS.raise_it}"
        )


def too_many_levels(n: int, what: str = "a hierarchy") -> DataError:
    """The error for something of more than n levels."""
    return DataError(f"{what} must have at most {n} levels, but has more; use fewer levels, or {MAX_LEVELS.raise_it}")


@dataclass(frozen=True)
class LabelSpace:
    """All labels: names in the order of their ids, synonyms, training counts, hierarchy.

    >>> space = LabelSpace(["cat", "dog"])
    >>> len(space), space.index["dog"]
    (2, 1)
    """

    names: Sequence[str]
    synonyms: Sequence[Sequence[str]] | None = None  # one list per label
    counts: Longs | None = None  # (n_labels,) training documents per label
    n_documents: int = 0  # number of training documents
    hierarchy: Hierarchy | None = None

    def __post_init__(self) -> None:
        n = len(self.names)
        for what, values in (("synonym lists", self.synonyms), ("counts", self.counts)):
            if values is not None and len(values) != n:
                raise DataError(
                    f"there must be as many {what} as labels, but there are {len(values)} for {n} labels; "
                    "give one per label"
                )

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> dict[str, int]:
        """Name -> id. Duplicate names are an error."""
        index = {name: i for i, name in enumerate(self.names)}
        if len(index) != len(self.names):
            seen: set[str] = set()
            duplicate = next(name for name in self.names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise DataError(f"label names must be unique, but {duplicate!r} occurs twice; rename or merge the two")
        return index

    @property
    def are_named(self) -> bool:
        """Whether the names are words, not numbers: some of the first thousand have a letter.

        >>> LabelSpace(["cat", "dog"]).are_named, LabelSpace.numbered(2).are_named
        (True, False)
        """
        return any(any(map(str.isalpha, name)) for name in self.names[:1000])

    @property
    def are_paths(self) -> bool:
        """Whether the names are paths: at least half of them have a parent.

        >>> LabelSpace(["food", "food > bread"]).are_paths, LabelSpace(["food", "bread"]).are_paths
        (True, False)
        """
        n_paths = sum(PATH_SEPARATOR in name and bool(_steps(name)) for name in self.names)
        return 0 < len(self) <= 2 * n_paths

    def with_paths(self, separator: str = PATH_SEPARATOR) -> LabelSpace:
        """The same with the hierarchy of the names as paths; prefixes that are not labels yet are appended.

        Documents often have leaf labels only: without the prefixes there would be one level.

        >>> space = LabelSpace(["food > bread > rye", "food > fish"]).with_paths()
        >>> space.names[2:], space.hierarchy.levels.tolist()
        (['food > bread', 'food'], [2, 1, 1, 0])
        """
        flat = replace(self, hierarchy=None)
        space = flat.extended(self._all_prefixes(separator))
        return replace(space, hierarchy=Hierarchy.from_edges(space._path_edges(space.names, separator), len(space)))

    def _all_prefixes(self, separator: str) -> Iterator[str]:
        """The prefixes of all names, each once."""
        seen: set[str] = set()
        left = MAX_PATH_CHARACTERS.value
        for name in self.names:
            for prefix in prefixes(name, separator):
                if prefix in seen:  # and so are its own
                    break
                left -= len(prefix)
                if left < 0:
                    raise DataError(
                        f"the prefixes of all paths must have at most {MAX_PATH_CHARACTERS.value} characters, but have "
                        f"more; use fewer or shorter steps, or {MAX_PATH_CHARACTERS.raise_it}"
                    )
                seen.add(prefix)
                yield prefix

    def _path_edges(self, names: Iterable[str], separator: str = PATH_SEPARATOR) -> Ints:
        """Rows (child, parent): the nearest prefix of a name that is a label is its parent."""
        nearest = ((name, next(filter(self.index.__contains__, prefixes(name, separator)), None)) for name in names)
        pairs = [(self.index[name], self.index[parent]) for name, parent in nearest if parent is not None]
        return np.array(pairs, np.int32).reshape(-1, 2)

    def texts(self) -> list[str]:
        """Each label's name and synonyms as one text."""
        return [
            ". ".join([name, *also]) for name, also in zip(self.names, self.synonyms or [[]] * len(self), strict=True)
        ]

    @staticmethod
    def numbered(n_labels: int) -> LabelSpace:
        """Labels without names: they are called '0', '1', ..."""
        return LabelSpace([str(i) for i in range(n_labels)])

    def counted(self, Y: Csr) -> LabelSpace:
        """The same with the counts of the training labels Y (n, n_labels)."""
        counts = np.bincount(Y.indices, minlength=len(self)).astype(np.int64)
        return replace(self, counts=counts, n_documents=int(Y.shape[0]))

    def extended(self, names: Iterable[str]) -> LabelSpace:
        """The same with unknown names appended (no synonyms, count 0); existing ids do not change.

        In a hierarchy of paths, the parent of a new path is its nearest prefix; otherwise a new label has no parent.
        """
        new = [name for name in dict.fromkeys(names) if name not in self.index]
        if not new:
            return self
        space = LabelSpace(
            [*self.names, *new],
            None if self.synonyms is None else [*self.synonyms, *([] for _ in new)],
            None if self.counts is None else np.concatenate([self.counts, np.zeros(len(new), np.int64)]),
            self.n_documents,
        )
        if self.hierarchy is None:
            return space
        edges = np.concatenate([self.hierarchy.edges, space._path_edges(new if self.are_paths else [])])
        return replace(space, hierarchy=Hierarchy.from_edges(edges, len(space)))


def prefixes(path: str, separator: str = PATH_SEPARATOR) -> Iterator[str]:
    """The prefixes of a path, longest first, each made when asked for; none where a step of the path is blank.

    >>> list(prefixes("food > bread > rye"))
    ['food > bread', 'food']
    """
    steps = _steps(path, separator)
    if len(steps) > MAX_LEVELS.value:
        raise too_many_levels(MAX_LEVELS.value, f"the path {path[:40] + '...'!r}")
    end = len(path)
    for step in reversed(steps[1:]):
        end -= len(separator) + len(step)
        yield path[:end]


def _steps(path: str, separator: str = PATH_SEPARATOR) -> list[str]:
    """The steps of a path; none where one is blank."""
    steps = path.split(separator)
    return steps if all(map(str.strip, steps)) else []


@dataclass(frozen=True)
class Columns:
    """The input and output columns of a table; a label of an output column is called ``column: value``.

    ``outputs`` are groups of columns: one column, or the levels of a category path, root first.

    >>> columns = Columns(("title", "price"), (("brand",), ("L0", "L1")))
    >>> columns.output_names, columns.split_label("L1: Tea"), columns.split_label("Tea")
    (('brand', 'L0', 'L1'), (2, 'Tea'), (-1, 'Tea'))
    """

    inputs: tuple[str, ...]
    outputs: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", tuple(self.inputs))
        object.__setattr__(self, "outputs", tuple(map(tuple, self.outputs)))
        names = self.inputs + self.output_names
        if not all(isinstance(name, str) for name in names):
            raise DataError(f"columns must be named by texts, but are {names}; write for example title")
        for what, given in (("inputs", self.inputs), ("outputs", self.outputs)):
            if not given or not all(given):
                raise DataError(f"{what} must name at least one column, but one is empty; write for example title")
        duplicates = [name for name in names if names.count(name) > 1]
        if duplicates:
            raise DataError(
                f"each column must be named once, as input or output, but {duplicates[0]!r} is named twice; remove one"
            )
        for name in self.output_names:  # else a label's column would be ambiguous
            longer = [other for other in self.output_names if other.startswith(name + ": ")]
            if longer:
                raise DataError(
                    f"no output may start with another and ': ', but {longer[0]!r} starts with {name!r}; rename one"
                )

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """The output columns of all groups."""
        return tuple(name for group in self.outputs for name in group)

    def split_label(self, label: str) -> tuple[int, str]:
        """The index of the output column, and the value, of a label; -1 where it belongs to none."""
        for index, column in enumerate(self.output_names):
            if label.startswith(column + ": "):
                return index, label[len(column) + 2 :]
        return -1, label

    def masks(self, labels: Iterable[str]) -> dict[str, Bools]:
        """Which labels belong to each output column. Shape (n_labels,) each.

        >>> Columns(("title",), (("brand",), ("L0",))).masks(["brand: Tata", "L0: Tea"])["L0"].tolist()
        [False, True]
        """
        indices = np.array([self.split_label(label)[0] for label in labels])
        return {name: indices == index for index, name in enumerate(self.output_names)}


@dataclass(frozen=True)
class Dataset:
    """Documents with their labels: texts, or ready-made features X, or both; Y is 0/1 of shape (n, n_labels)."""

    Y: Csr
    labels: LabelSpace
    texts: Sequence[str] | None = None
    X: Csr | None = None
    ids: Sequence[str] | None = None
    name: str = ""
    columns: Columns | None = None  # where the documents are rows of a table

    def __post_init__(self) -> None:
        if self.texts is None and self.X is None:
            raise DataError("a data set must have texts or features, but has neither; pass texts=... or X=...")
        if self.Y.shape[1] != len(self.labels):
            raise DataError(
                f"Y must have one column per label, but has {self.Y.shape[1]} for {len(self.labels)} labels; "
                "pass the LabelSpace that Y was built with"
            )
        n = self.Y.shape[0]
        sizes = {
            "texts": None if self.texts is None else len(self.texts),
            "feature rows": None if self.X is None else self.X.shape[0],
            "ids": None if self.ids is None else len(self.ids),
        }
        for what, size in sizes.items():
            if size is not None and size != n:
                raise DataError(
                    f"there must be as many {what} as documents, but there are {size} for {n}; give one per document"
                )

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    @property
    def inputs(self) -> Csr | Sequence[str]:
        """The input of a model: ready-made features where there are any, else the texts."""
        return self.X if self.X is not None else (self.texts or [])

    def rows(self, index: npt.ArrayLike) -> Dataset:
        """The documents with these row numbers, in this order."""
        at = np.asarray(index, dtype=np.int64)
        texts, ids = (None if values is None else [values[i] for i in at] for values in (self.texts, self.ids))
        return replace(self, Y=self.Y[at], texts=texts, X=None if self.X is None else self.X[at], ids=ids)
