"""What a model that writes text has to write of a document: its labels, as one answer for each part of the question.

The labels of a table are named ``column: value``. Columns that the hierarchy links are one part, whose answers are the
paths that training rows take through them; any other column is a part of its own. A column without a value is written
``column: NA``. Of other data there is one part, and each label is an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from labelspace.types import Csr, Hierarchy, Ints, LabelSpace, Longs

MOST_COLUMNS = 32  # that a table is taken to be written in
MISSING = "NA"


@dataclass(frozen=True)
class Answers:
    """All answers that training documents gave, by part."""

    names: Ints  # (n_answers, longest) what is written: labels, then from n_labels on columns without a value; or -1
    starts: Longs  # (n_parts + 1,) the answers of part i are starts[i] to starts[i + 1] - 1
    carries: Csr  # (n_answers, n_labels) the share of an answer's documents that carry each label

    @property
    def n_parts(self) -> int:
        """Parts of the question."""
        return len(self.starts) - 1

    def incidence(self, n_names: int) -> Csr:
        """Which names each answer holds. Shape (n_answers, n_names)."""
        owner, place = np.nonzero(self.names >= 0)
        ones = np.ones(len(owner), np.float32)
        return sp.csr_matrix((ones, (owner, self.names[owner, place])), shape=(len(self.names), n_names))

    def by_part(self) -> list[tuple[Ints, slice]]:
        """The names of the answers of each part, as many for all of them, and where they stand."""
        spans = [slice(*self.starts[i : i + 2].tolist()) for i in range(self.n_parts)]
        return [(self.names[span][:, self.names[span][0] >= 0], span) for span in spans]


def columns_of(labels: LabelSpace) -> list[str]:
    """The columns that the labels of a table are named by; none where they are not.

    >>> columns_of(LabelSpace(["brand: Trm", "L0: Tea", "L0: Rice: white"])), columns_of(LabelSpace(["cat", "a: dog"]))
    (['brand', 'L0'], [])
    """
    columns: dict[str, None] = {}
    for name in labels.names:
        column, colon, _ = name.partition(": ")
        columns[column] = None
        if not colon or len(columns) > MOST_COLUMNS:
            return []
    return list(columns) if len(columns) < len(labels) else []


def build_targets(Y: Csr, labels: LabelSpace) -> tuple[Answers, Csr]:
    """The answers, and which each document gave (n, n_answers); a document without labels gave none."""
    columns = columns_of(labels)
    if not columns:
        return _labels_as_answers(Y, labels.hierarchy)
    index = {column: i for i, column in enumerate(columns)}
    column_of = np.array([index[name.partition(": ")[0]] for name in labels.names], np.int32)
    parts = _parts(column_of, len(columns), labels.hierarchy)
    found = [_paths(Y, column_of, part, labels.hierarchy) for part in parts]
    names = np.full((sum(len(paths) for paths, _ in found), max(map(len, parts))), -1, np.int32)
    starts = np.cumsum([0, *(len(paths) for paths, _ in found)])
    for (paths, _), start in zip(found, starts[:-1], strict=True):
        names[start : start + len(paths), : paths.shape[1]] = paths
    answers = Answers(names, starts, sp.csr_matrix((len(names), len(labels)), dtype=np.float32))
    carries = answers.incidence(len(labels) + len(columns))[:, : len(labels)]
    return replace(answers, carries=carries), sp.hstack([given for _, given in found], format="csr")


def target_names(labels: LabelSpace) -> list[str]:
    """How each of the names that ``Answers.names`` counts is written.

    >>> target_names(LabelSpace(["L0: Tea", "L0: Rice"]))
    ['L0: Tea', 'L0: Rice', 'L0: NA']
    """
    return [*labels.names, *(f"{column}: {MISSING}" for column in columns_of(labels))]


def _labels_as_answers(Y: Csr, hierarchy: Hierarchy | None) -> tuple[Answers, Csr]:
    """Each label that a document has none below of is an answer; those above it come with it as often as they did."""
    lowest = _lowest(Y, hierarchy)
    seen = np.flatnonzero(np.bincount(lowest.indices, minlength=Y.shape[1]))
    given = lowest[:, seen]
    carries = sp.identity(Y.shape[1], np.float32, format="csr")[seen]
    if hierarchy is not None:
        times = (given.T @ Y).multiply(hierarchy.ancestors[seen]).tocsr()
        carries = carries + sp.diags(1.0 / np.asarray(given.sum(axis=0)).ravel()) @ times
    return Answers(
        seen.astype(np.int32)[:, None], np.array([0, len(seen)]), sp.csr_matrix(carries, dtype=np.float32)
    ), given


def _lowest(Y: Csr, hierarchy: Hierarchy | None) -> Csr:
    """The labels of each document that are above none of its others."""
    if hierarchy is None:
        return Y
    above = (Y @ hierarchy.ancestors).multiply(Y)
    above.data[:] = 1.0
    lowest = (Y - above).tocsr()
    lowest.eliminate_zeros()
    return lowest


def _parts(column_of: Ints, n_columns: int, hierarchy: Hierarchy | None) -> list[list[int]]:
    """Columns that the hierarchy links, from its roots down; in the order of the first column of each part."""
    if hierarchy is None or not hierarchy.parents.nnz:
        return [[column] for column in range(n_columns)]
    edges = column_of[hierarchy.edges]
    links = sp.csr_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n_columns, n_columns))
    part_of = connected_components(links, directed=False)[1]
    depth = np.bincount(column_of, hierarchy.levels, n_columns) / np.bincount(column_of, minlength=n_columns)
    order = np.lexsort((np.arange(n_columns), depth))
    return [order[part_of[order] == part].tolist() for part in dict.fromkeys(part_of.tolist())]


def _paths(Y: Csr, column_of: Ints, part: Sequence[int], hierarchy: Hierarchy | None) -> tuple[Longs, Csr]:
    """The distinct paths through some columns, as names, and which of them each document takes.

    A document with several values in a column takes a path for each label that it has none below of.
    """
    n_labels, n = Y.shape[1], Y.shape[0]
    inside = np.flatnonzero(np.isin(column_of, part))
    ones = np.ones(len(inside), np.float32)
    mine = (Y @ sp.csr_matrix((ones, (inside, inside)), shape=(n_labels, n_labels))).tocsr()
    place_of = np.zeros(column_of.max() + 1, np.int64)
    place_of[part] = np.arange(len(part))
    place = place_of[column_of]
    columns = sp.csr_matrix((ones, (inside, place[inside])), shape=(n_labels, len(part)))
    crowded = (mine @ columns).max(axis=1).toarray().ravel() > 1
    labeled = np.flatnonzero((np.diff(Y.indptr) > 0) & ~crowded)
    lowest = _lowest(mine, hierarchy)[crowded].tocoo()
    documents = np.concatenate([labeled, np.flatnonzero(crowded)[lowest.row]])
    itself = sp.identity(n_labels, np.float32, format="csr")
    reach = itself if hierarchy is None else itself + hierarchy.ancestors
    below = mine[documents[len(labeled) :]].multiply(reach[lowest.col])
    taken = sp.vstack([mine[labeled], below], format="csr")
    paths = np.tile(n_labels + np.asarray(part), (len(documents), 1))
    rows = np.repeat(np.arange(len(documents)), np.diff(taken.indptr))
    paths[rows, place[taken.indices]] = taken.indices
    paths, which = np.unique(paths, axis=0, return_inverse=True)
    given = sp.csr_matrix((np.ones(len(documents), np.float32), (documents, which.ravel())), shape=(n, len(paths)))
    given.data[:] = 1.0
    return paths, given
