"""The stacking model: from the stacking table of documents to the probability that a label is right, in two passes.

1. Boosted trees on the rows of the table: what the members say of a label.
2. Boosted trees on each document's best labels of the first pass, with what these say of each other
   (``label_context``).

The second pass must learn from probabilities such as the first has for new documents. So the documents are halved, and
each half gets those of a first pass that was fitted on the other half. In the same way a second pass of each half says
what both passes say of documents that they have not seen, for thresholds on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelspace.estimator.state_constraints import are_sorted_spans, array, ids, must, offsets
from labelspace.kernels.threads import run_blocks
from labelspace.labels.statistics import cooccurrence_counts
from labelspace.models.blend.boosting.forest import BinnedColumns, Forest, fit_forest
from labelspace.models.blend.boosting.kernels import GrowthOptions
from labelspace.models.blend.kernels import N_COLUMNS, LabelPairs, fill_context
from labelspace.models.blend.stacking_table import BELOW, StackingTable
from labelspace.types import Bools, Csr, Floats, Ints, Longs, Progress, TopK

# More leaves fit the held-out documents closer, a larger step needs fewer rounds, a larger weight merges small leaves.
GROWTH = GrowthOptions(max_leaves=16, min_child_weight=3.0, l2=1.0, learning_rate=0.15)
N_FORESTS = 6  # two of halves and one of all documents, for each pass
SHORTLIST = 16  # candidates of a document that are judged again
MAX_PAIRS = 1_000_000  # pairs of labels that are kept, the most frequent: they bound the size of the saved model
MAX_DOCUMENT_LABELS = 200  # a document with more labels is not counted: its pairs grow with the square of their number
ROW_BLOCK = 256  # documents per task of a thread


@dataclass(frozen=True)
class Cooccurrence:
    """Numbers of documents that two labels share; label i has partners[starts[i] : starts[i + 1]], all above i."""

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
        """Check that partners are in order, for bisection, and that all counts are numbers of documents."""
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
    """Count the training documents that every two labels share.

    >>> pairs = count_pairs(Csr(np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]], np.float32)))
    >>> pairs.partners.tolist(), pairs.shared.tolist(), pairs.starts.tolist()
    ([1, 2], [2.0, 1.0], [0, 1, 2, 2])
    """
    counts = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float32)
    return _most_frequent(_shared_documents(Y), counts, max(Y.shape[0], 1))


def add_pairs(pairs: Cooccurrence, Y: Csr) -> Cooccurrence:
    """Return the counts of pairs with further documents; Y may have further labels too.

    >>> pairs = count_pairs(Csr(np.array([[1, 1], [1, 1]], np.float32)))
    >>> more = add_pairs(pairs, Csr(np.array([[1, 0, 1], [1, 1, 0]], np.float32)))
    >>> more.partners.tolist(), more.shared.tolist(), more.counts.tolist(), more.n_documents.tolist()
    ([1, 2], [3.0, 1.0], [4.0, 3.0, 1.0], [4.0])
    """
    n_labels = Y.shape[1]
    n_new = n_labels - len(pairs.counts)
    starts = np.append(pairs.starts, np.full(n_new, pairs.starts[-1]))
    known = sp.csr_matrix((pairs.shared, pairs.partners, starts), shape=(n_labels, n_labels))
    counts = np.append(pairs.counts, np.zeros(n_new, np.float32)) + np.bincount(Y.indices, minlength=n_labels)
    size = int(pairs.n_documents[0]) + Y.shape[0]
    return _most_frequent(known + _shared_documents(Y), counts.astype(np.float32), size)


def _shared_documents(Y: Csr) -> Csr:
    """Count the documents that every two labels share; documents with many labels are not counted."""
    few = np.diff(Y.indptr) <= MAX_DOCUMENT_LABELS
    return cooccurrence_counts(Y if few.all() else Y[few])


def _most_frequent(counted: Csr, counts: Floats, n_documents: int) -> Cooccurrence:
    """Return the most frequent pairs, each once."""
    pairs = counted.tocoo()
    kept = np.flatnonzero(pairs.row < pairs.col)
    if len(kept) > MAX_PAIRS:
        kept = np.sort(kept[np.argsort(-pairs.data[kept], kind="stable")[:MAX_PAIRS]])
    order = kept[np.lexsort((pairs.col[kept], pairs.row[kept]))]
    starts = np.concatenate([[0], np.cumsum(np.bincount(pairs.row[order], minlength=len(counts)))])
    partners, shared = pairs.col[order].astype(np.int32), pairs.data[order].astype(np.float32)
    return Cooccurrence(partners, shared, starts.astype(np.int64), counts, np.array([n_documents], np.float32))


def shortlist(table: StackingTable, probabilities: Floats, pairs: Cooccurrence) -> Shortlist:
    """Find the best candidates of each document, and their context (steps 2 and 3)."""
    n_documents = float(pairs.n_documents[0])
    label_pairs = LabelPairs(pairs.partners, pairs.shared, pairs.starts, pairs.counts, n_documents)
    n = len(table.ends) - 1
    rows = np.full((n, SHORTLIST), -1, np.int32)
    columns = np.empty((n, SHORTLIST, N_COLUMNS), np.float32)

    def fill(start: int, stop: int) -> None:
        fill_context(table, probabilities, start, stop, label_pairs, rows, columns)

    run_blocks(fill, n, ROW_BLOCK)
    return Shortlist(rows, columns)


class Candidates(NamedTuple):
    """The candidates of documents that the members were not trained on."""

    table: StackingTable
    targets: Floats  # whether each candidate is right
    pairs: Cooccurrence  # of the documents that the members were trained on


class Passes(NamedTuple):
    """The stacking model, and the answers of such a model for documents that it was not fitted on."""

    first: Forest
    second: Forest
    unseen: list[TopK]  # the most probable labels of the documents of each group


def fit_passes(
    held: Sequence[Candidates], n_columns: int, n_rounds: int, random_state: int, progress: Progress
) -> Passes:
    """Fit the trees of both passes; without rows they have no trees."""
    columns = np.concatenate([np.zeros((0, n_columns), np.float32), *(part.table.columns for part in held)])
    targets = np.concatenate([np.zeros(0, np.float32), *(part.targets for part in held)])
    half = _halves([len(part.table.ends) - 1 for part in held], random_state)
    in_half = np.concatenate([np.zeros(0, bool), *map(_by_row, held, half)])
    done = 0

    def fit(binned: BinnedColumns, targets: Floats) -> Forest:
        nonlocal done
        before, done = done, done + n_rounds
        return fit_forest(
            binned, targets, n_rounds, GROWTH, lambda step, now, total: progress(step, before + now, N_FORESTS * total)
        )

    def of_other_half(binned: BinnedColumns, rows: Floats, targets: Floats, in_half: Bools) -> Floats:
        """Return the probabilities of rows, by trees that were fitted on the rows of the other half."""
        probabilities = np.empty(len(targets), np.float32)
        for judged in (in_half, ~in_half):
            probabilities[judged] = fit(binned.rows(~judged), targets[~judged]).probabilities(rows[judged])
        return probabilities

    binned = BinnedColumns.of(columns, random_state)
    first = _split(of_other_half(binned, columns, targets, in_half), [len(part.targets) for part in held])
    best = [shortlist(part.table, p, part.pairs) for part, p in zip(held, first, strict=True)]
    contexts = np.concatenate([np.zeros((0, N_COLUMNS), np.float32), *(listed.table for listed in best)])
    judged = [part.targets[listed.listed] for part, listed in zip(held, best, strict=True)]
    right = np.concatenate([np.zeros(0, np.float32), *judged])
    in_half = np.concatenate([np.zeros(0, bool), *(in_half[rows] for rows in _listed_rows(held, best))])
    second = BinnedColumns.of(contexts, random_state)
    unseen = _split(of_other_half(second, contexts, right, in_half), list(map(len, judged)))
    return Passes(fit(binned, targets), fit(second, right), list(map(_ranked, held, best, unseen)))


def second_pass(table: StackingTable, first: Floats, forest: Forest, pairs: Cooccurrence) -> Floats:
    """Return the probabilities of the second pass; labels outside the shortlist stay below it."""
    best = shortlist(table, first, pairs)
    listed = best.rows >= 0
    judged = forest.probabilities(best.columns[listed])
    by_document = np.ones(best.rows.shape, np.float32)
    by_document[listed] = judged
    n_candidates = table.ends[1:] - table.ends[:-1]  # np.diff takes several times as long for one document
    out: Floats = np.minimum(first, np.repeat(by_document.min(axis=1), n_candidates) * BELOW)
    out[best.rows[listed]] = judged
    return out


def _halves(sizes: Sequence[int], random_state: int) -> list[Bools]:
    """Return, for each of several groups of documents, which are in the first half."""
    rng = np.random.default_rng(random_state)
    return [rng.permutation(n) < n / 2 for n in sizes]


def _by_row(part: Candidates, half: Bools) -> Bools:
    return np.repeat(half, np.diff(part.table.ends))


def _split(values: Floats, sizes: Sequence[int]) -> list[Floats]:
    """Split values by group of documents."""
    return np.split(values, np.cumsum(sizes))[:-1]


def _listed_rows(held: Sequence[Candidates], best: Sequence[Shortlist]) -> list[Longs]:
    """Return the rows of the shortlists of each group, among the rows of all groups."""
    begins = np.cumsum([0, *(len(part.targets) for part in held)])
    return [begin + listed.listed for begin, listed in zip(begins, best, strict=False)]


def _ranked(part: Candidates, best: Shortlist, probabilities: Floats) -> TopK:
    """Return the labels of shortlists, the most probable first."""
    top = TopK.empty(len(best.rows), SHORTLIST)
    top.labels[best.rows >= 0], top.scores[best.rows >= 0] = part.table.labels[best.listed], probabilities
    order = np.argsort(-top.scores, axis=1, kind="stable")
    return TopK(np.take_along_axis(top.labels, order, axis=1), np.take_along_axis(top.scores, order, axis=1))
