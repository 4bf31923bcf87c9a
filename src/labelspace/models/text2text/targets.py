"""Target sequences: the label sequences that the decoder learns to write for a document.

Labels of a table are named ``column: value``. Columns that the hierarchy links form one group, whose targets are the
paths that training rows take through them; any other column is a group by itself. A column without a value is written
``column: NA``. Other data has one group, and each label is a target.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from labelspace.errors import ParameterError
from labelspace.estimator.state_constraints import array, must, offsets, sparse
from labelspace.types import Csr, Floats, Hierarchy, Ints, LabelSpace, Longs

MAX_COLUMNS = 32  # of a table: labels with more prefixes are not those of a table
MISSING = "NA"


@dataclass(frozen=True)
class Targets:
    """All targets of the training documents, by column group."""

    # The labels of each target; n_labels + i for NA in column i; -1 for padding.
    label_ids: Annotated[Ints, array("int32", "n_targets", "longest", at_least=-1, below=f"n_labels + {MAX_COLUMNS}")]
    group_starts: Annotated[Longs, offsets("n_groups", into="n_targets")]  # where the targets of each group begin
    label_shares: Annotated[Csr, sparse("float32", "n_targets", "n_labels")]  # of a target's documents with the label
    counts: Annotated[Floats, array("float32", "n_targets")]  # documents of each target

    def check_state(self) -> None:
        """Check that every group has targets, and every target a label."""
        must(self.n_groups > 0 and (np.diff(self.group_starts) > 0).all(), "targets in each group")
        must(self.label_ids.shape[1] > 0 and (self.label_ids[:, 0] >= 0).all(), "a label in each target")

    @property
    def n_groups(self) -> int:
        """Return the number of column groups."""
        return len(self.group_starts) - 1

    @property
    def group_spans(self) -> list[slice]:
        """Return the span of the targets of each column group."""
        return [slice(*self.group_starts[i : i + 2].tolist()) for i in range(self.n_groups)]

    def by_group(self) -> list[tuple[Ints, slice]]:
        """Return the label ids of each group's targets, without padding, and the span of the targets."""
        return [(self.label_ids[span][:, self.label_ids[span][0] >= 0], span) for span in self.group_spans]


def table_columns(labels: LabelSpace) -> list[str]:
    """Return the columns that the labels of a table belong to; none unless labels are named ``column: value``.

    >>> table_columns(LabelSpace(["brand: Trm", "L0: Tea", "L0: Rice: white"]))
    ['brand', 'L0']
    >>> table_columns(LabelSpace(["cat", "a: dog"]))
    []
    """
    columns: dict[str, None] = {}
    for name in labels.names:
        column, colon, _ = name.partition(": ")
        columns[column] = None
        if not colon or len(columns) > MAX_COLUMNS:
            return []
    return list(columns) if len(columns) < len(labels) else []


def target_names(labels: LabelSpace) -> list[str]:
    """Return the text of each id in ``Targets.label_ids``.

    >>> target_names(LabelSpace(["L0: Tea", "L0: Rice"]))
    ['L0: Tea', 'L0: Rice', 'L0: NA']
    """
    return [*labels.names, *(f"{column}: {MISSING}" for column in table_columns(labels))]


def build_targets(Y: Csr, labels: LabelSpace, one_sequence: bool = False) -> tuple[Targets, Csr]:
    """Build the targets, and which of them each document has (n, n_targets); a document without labels has none.

    With ``one_sequence`` all columns of a table are one group: a target has the values of a whole row.
    """
    columns = table_columns(labels)
    if one_sequence and not columns:
        raise ParameterError(
            "one_sequence of text2text must be false where labels are not those of a table, named column: value, but "
            "is true; set it so"
        )
    if not columns:
        return _label_targets(Y, labels.hierarchy)
    index = {column: i for i, column in enumerate(columns)}
    column_of = np.array([index[name.partition(": ")[0]] for name in labels.names], np.int32)
    groups = _column_groups(column_of, len(columns), labels.hierarchy)
    by_group = [_paths(Y, column_of, group, labels.hierarchy) for group in groups]
    if one_sequence:
        by_group, groups = [_joined(by_group, groups)], [list(range(len(columns)))]
    label_ids = np.full((sum(len(paths) for paths, _ in by_group), max(map(len, groups))), -1, np.int32)
    starts = np.cumsum([0, *(len(paths) for paths, _ in by_group)])
    for (paths, _), start in zip(by_group, starts[:-1], strict=True):
        label_ids[start : start + len(paths), : paths.shape[1]] = paths
    label_shares = label_incidence(label_ids, len(labels) + len(columns))[:, : len(labels)]
    Y_targets = sp.hstack([of_group for _, of_group in by_group], format="csr")
    return Targets(label_ids, starts, label_shares, _counts(Y_targets)), Y_targets


def _label_targets(Y: Csr, hierarchy: Hierarchy | None) -> tuple[Targets, Csr]:
    """A target for each label that is the most specific one of some document; its ancestors get their shares."""
    specific = _most_specific(Y, hierarchy)
    seen = np.flatnonzero(np.bincount(specific.indices, minlength=Y.shape[1]))
    Y_targets = specific[:, seen]
    shares = sp.identity(Y.shape[1], np.float32, format="csr")[seen]
    if hierarchy is not None:
        together = (Y_targets.T @ Y).multiply(hierarchy.ancestors[seen]).tocsr()
        shares = shares + sp.diags(1.0 / np.asarray(Y_targets.sum(axis=0)).ravel()) @ together
    starts, label_shares = np.array([0, len(seen)]), sp.csr_matrix(shares, dtype=np.float32)
    return Targets(seen.astype(np.int32)[:, None], starts, label_shares, _counts(Y_targets)), Y_targets


def _most_specific(Y: Csr, hierarchy: Hierarchy | None) -> Csr:
    """The labels of each document that are ancestors of none of its others."""
    if hierarchy is None:
        return Y
    ancestors = (Y @ hierarchy.ancestors).multiply(Y)
    ancestors.data[:] = 1.0
    specific = (Y - ancestors).tocsr()
    specific.eliminate_zeros()
    return specific


def _column_groups(column_of: Ints, n_columns: int, hierarchy: Hierarchy | None) -> list[list[int]]:
    """Groups of columns that the hierarchy links, roots first; ordered by the first column of each group."""
    if hierarchy is None or not hierarchy.parents.nnz:
        return [[column] for column in range(n_columns)]
    edges = column_of[hierarchy.edges]
    links = sp.csr_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n_columns, n_columns))
    group_of = connected_components(links, directed=False)[1]
    depth = np.bincount(column_of, hierarchy.levels, n_columns) / np.bincount(column_of, minlength=n_columns)
    order = np.lexsort((np.arange(n_columns), depth))
    return [order[group_of[order] == group].tolist() for group in dict.fromkeys(group_of.tolist())]


def _paths(Y: Csr, column_of: Ints, group: Sequence[int], hierarchy: Hierarchy | None) -> tuple[Longs, Csr]:
    """Return the distinct paths through a group of columns, as label ids, and which of them each document has.

    A document with several values in a column has a path for each of its most specific labels.
    """
    n, n_labels = Y.shape
    labels = np.flatnonzero(np.isin(column_of, group))
    ones = np.ones(len(labels), np.float32)
    Y_group = (Y @ sp.csr_matrix((ones, (labels, labels)), shape=(n_labels, n_labels))).tocsr()
    level_of_column = np.zeros(column_of.max() + 1, np.int64)
    level_of_column[group] = np.arange(len(group))
    level = level_of_column[column_of]
    levels = sp.csr_matrix((ones, (labels, level[labels])), shape=(n_labels, len(group)))
    multi_valued = (Y_group @ levels).max(axis=1).toarray().ravel() > 1
    single_valued = np.flatnonzero((np.diff(Y.indptr) > 0) & ~multi_valued)
    specific = _most_specific(Y_group, hierarchy)[multi_valued].tocoo()
    documents = np.concatenate([single_valued, np.flatnonzero(multi_valued)[specific.row]])
    identity = sp.identity(n_labels, np.float32, format="csr")
    closure = identity if hierarchy is None else identity + hierarchy.ancestors
    branches = Y_group[documents[len(single_valued) :]].multiply(closure[specific.col])
    on_path = sp.vstack([Y_group[single_valued], branches], format="csr")
    paths = np.tile(n_labels + np.asarray(group), (len(documents), 1))  # NA, where there is no label
    rows = np.repeat(np.arange(len(documents)), np.diff(on_path.indptr))
    paths[rows, level[on_path.indices]] = on_path.indices
    return _distinct(paths, documents, n)


def _joined(by_group: Sequence[tuple[Longs, Csr]], groups: Sequence[Sequence[int]]) -> tuple[Longs, Csr]:
    """Join the paths of all groups into one, in the order of columns.

    The i-th path of a document in each group is its i-th sequence; a group with fewer paths starts again.
    """
    n_paths = np.array([np.diff(of_group.indptr) for _, of_group in by_group])  # (n_groups, n)
    n_sequences = n_paths.max(axis=0)
    document = np.repeat(np.arange(len(n_sequences)), n_sequences)
    rank = np.arange(len(document)) - np.repeat(np.cumsum(n_sequences) - n_sequences, n_sequences)
    parts = []
    for (paths, of_group), n in zip(by_group, n_paths, strict=True):
        parts.append(paths[of_group.indices[of_group.indptr[document] + rank % n[document]]])
    rows = np.hstack(parts)
    order = np.argsort(np.concatenate(groups))
    return _distinct(rows[:, order], document, len(n_sequences))


def _distinct(rows: Longs, document: Longs, n: int) -> tuple[Longs, Csr]:
    """Return the distinct rows, and which of them each of n documents has, given the document of each row."""
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    ones = np.ones(len(document), np.float32)
    Y_rows = sp.csr_matrix((ones, (document, which.ravel())), shape=(n, len(distinct)))
    Y_rows.data[:] = 1.0
    return distinct, Y_rows


def label_incidence(label_ids: Ints, n_ids: int) -> Csr:
    """Return which label ids each target has, as ones. Shape (n_targets, n_ids)."""
    target, position = np.nonzero(label_ids >= 0)
    ones = np.ones(len(target), np.float32)
    return sp.csr_matrix((ones, (target, label_ids[target, position])), shape=(len(label_ids), n_ids))


def _counts(Y_targets: Csr) -> Floats:
    return np.asarray(Y_targets.sum(axis=0), np.float32).ravel()
