"""The second pass of the stacking model: a document's best candidates, judged by each other.

1. Count the training documents that every two labels share.
2. Take the ``SHORTLIST`` most probable candidates of the first pass.
3. For each, note its log-odds, rank and distance to its neighbors in rank, the sum of the document's probabilities, how
   far the other candidates speak for it (by PMI, and by how often one label comes with the other), and the columns of
   the stacking table that are not of one member.
4. Boosted trees say from that whether the label is right.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from labelspace.estimator.state_constraints import are_sorted_spans, array, ids, must, offsets
from labelspace.kernels.label_context import N_COLUMNS, fill_context
from labelspace.kernels.threads import run_blocks
from labelspace.labels.statistics import cooccurrence_counts
from labelspace.models.blend.stacking import StackingTable
from labelspace.types import Csr, Floats, Ints, Longs

SHORTLIST = 16  # candidates of a document that are judged again
MAX_PAIRS = 1_000_000  # of labels, the most frequent, that are kept
MAX_LABELS = 200  # of a document, above which its pairs are not counted
ROW_BLOCK = 256  # documents per task


@dataclass(frozen=True)
class Cooccurrence:
    """How many documents two labels share; label i has partners[starts[i] : starts[i + 1]], all above i."""

    partners: Annotated[Ints, ids("n_pairs", below="n_labels")]
    shared: Annotated[Floats, array("float32", "n_pairs")]
    starts: Annotated[Longs, offsets("n_labels", into="n_pairs")]
    counts: Annotated[Floats, array("float32", "n_labels")]  # documents of each label
    n_documents: Annotated[Floats, array("float32", 1)]

    @cached_property
    def log_counts(self) -> Floats:
        """log(1 + documents) of each label."""
        return np.log1p(self.counts)

    def check_state(self) -> None:
        """Partners are found by bisection, and all counts are numbers of documents."""
        must(are_sorted_spans(self.partners, self.starts), "the partners of each label in order")
        must(bool((self.shared >= 0).all() and (self.counts >= 0).all()), "numbers of documents of at least 0")
        must(bool(self.n_documents[0] >= 1), "at least one document")


class Shortlist(NamedTuple):
    """The best candidates of some documents: rows of the stacking table, -1 where there are fewer, and context."""

    rows: Ints  # (n, SHORTLIST)
    columns: Floats  # (n, SHORTLIST, N_COLUMNS)

    @property
    def listed(self) -> Longs:
        """The rows of the stacking table, document after document."""
        return self.rows[self.rows >= 0].astype(np.int64)

    @property
    def table(self) -> Floats:
        """The context of these rows."""
        return self.columns[self.rows >= 0]


def count_pairs(Y: Csr) -> Cooccurrence:
    """Step 1.

    >>> pairs = count_pairs(Csr(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], np.float32)))
    >>> pairs.partners.tolist(), pairs.shared.tolist(), pairs.starts.tolist()
    ([1, 2], [2.0, 1.0], [0, 1, 2, 2])
    """
    few = np.diff(Y.indptr) <= MAX_LABELS
    pairs = cooccurrence_counts(Y if few.all() else Y[few]).tocoo()
    kept = np.flatnonzero(pairs.row < pairs.col)
    if len(kept) > MAX_PAIRS:
        kept = np.sort(kept[np.argsort(-pairs.data[kept], kind="stable")[:MAX_PAIRS]])
    order = kept[np.lexsort((pairs.col[kept], pairs.row[kept]))]
    starts = np.concatenate([[0], np.cumsum(np.bincount(pairs.row[order], minlength=Y.shape[1]))])
    counts = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float32)
    size = np.array([max(Y.shape[0], 1)], np.float32)
    return Cooccurrence(
        pairs.col[order].astype(np.int32), pairs.data[order].astype(np.float32), starts.astype(np.int64), counts, size
    )  # fmt: skip


def shortlist(table: StackingTable, probabilities: Floats, pairs: Cooccurrence) -> Shortlist:
    """Steps 2 and 3."""
    n = len(table.ends) - 1
    rows = np.full((n, SHORTLIST), -1, np.int32)
    columns = np.empty((n, SHORTLIST, N_COLUMNS), np.float32)

    def fill(start: int, stop: int) -> None:
        fill_context(
            table.labels, probabilities, table.columns, table.ends, start, stop, pairs.counts,
            float(pairs.n_documents[0]), pairs.partners, pairs.shared, pairs.starts, rows, columns,
        )  # fmt: skip

    run_blocks(fill, n, ROW_BLOCK)
    return Shortlist(rows, columns)
