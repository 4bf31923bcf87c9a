"""How often labels matched in documents, and how often they were right: what training counts, to count on later."""

from collections.abc import Iterable
from typing import Annotated, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from labelspace.estimator.state_constraints import are_sorted_spans, array, must, offsets
from labelspace.kernels.knn import LabelSets
from labelspace.models.lexical import kernels
from labelspace.models.lexical.kernels import N_BUCKETS, N_LEVELS
from labelspace.types import Bools, Csr, Ints, Longs

N_CELLS = N_BUCKETS * N_LEVELS
MAX_COUNT = 2**31  # of the matches of a label
MAX_BUCKET_COUNT = 2**40  # larger sums would leave nothing of the regularization of the grades' weights
FIRST_SLOTS = 2**12  # of the hash table in which a thread counts


class Counts(NamedTuple):
    """Matches and hits by bucket, over a sample of the documents, and by label, bucket and level, over all of them.

    A cell is a bucket and a level: ``bucket * N_LEVELS + level``. Only cells in which a label matched are kept.
    """

    by_bucket: Annotated[Longs, array("int64", N_BUCKETS, 2, at_least=0, below=MAX_BUCKET_COUNT)]
    starts: Annotated[Longs, offsets("n_labels", into="n_cells")]  # where the cells of each label begin
    cells: Annotated[npt.NDArray[np.uint16], array("uint16", "n_cells", below=N_CELLS)]
    matches: Annotated[Ints, array("int32", "n_cells", at_least=1)]
    hits: Annotated[Ints, array("int32", "n_cells", at_least=0)]

    def check_state(self) -> None:
        """Check that the cells of a label rise, and that there are no more hits than matches."""
        must(are_sorted_spans(self.cells, self.starts), "the cells of each label in order")
        must((self.hits <= self.matches).all(), "at most as many hits as matches of a label")
        must((self.by_bucket[:, 1] <= self.by_bucket[:, 0]).all(), "at most as many hits as matches in a bucket")

    @classmethod
    def nothing(cls, n_labels: int) -> Self:
        """Return the counts of no documents."""
        none = np.empty(0, np.int64)
        return cls._of(np.zeros((N_BUCKETS, 2), np.int64), none, none, none, n_labels)

    @classmethod
    def of_tallies(cls, tallies: Iterable["Tally"], n_labels: int) -> Self:
        """Return the counts of all threads; integers have the same sum in any order."""
        tallies = [Tally(), *tallies]
        counted = [part for tally in tallies for part in tally.counted()]
        keys = np.concatenate([keys for keys, _ in counted])
        amounts = np.concatenate([amounts for _, amounts in counted])
        by_bucket = np.sum([tally.by_bucket for tally in tallies], axis=0)
        return cls._of(by_bucket, keys // 2, amounts, amounts * (keys % 2), n_labels)

    @classmethod
    def _of(cls, by_bucket: Longs, cells: Longs, matches: Longs, hits: Longs, n_labels: int) -> Self:
        """Return counts of cells that are numbered through all labels, and may be named more than once."""
        known, at = np.unique(cells, return_inverse=True)
        sums = [np.bincount(at, counts, known.size).clip(max=MAX_COUNT - 1) for counts in (matches, hits)]
        return cls(
            by_bucket.clip(max=MAX_BUCKET_COUNT - 1),
            np.searchsorted(known, np.arange(n_labels + 1) * N_CELLS).astype(np.int64),
            (known % N_CELLS).astype(np.uint16),
            sums[0].astype(np.int32),
            sums[1].astype(np.int32),
        )

    def plus(self, other: "Counts") -> "Counts":
        """Return the counts of the documents of both; the other may know more labels."""
        return Counts._of(
            self.by_bucket + other.by_bucket,
            np.concatenate([self._numbered(), other._numbered()]),
            np.concatenate([self.matches, other.matches]),
            np.concatenate([self.hits, other.hits]),
            other.starts.size - 1,
        )

    def _numbered(self) -> Longs:
        """Return the cells, numbered through all labels."""
        labels = np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))
        return labels * N_CELLS + self.cells

    def by_label(self, expected: Longs) -> Longs:
        """Return matches, hits and expected hits by label and level, from the ``expected`` hits of a match in a bucket.

        Shape (n_labels, N_LEVELS, 3).
        """
        n_labels = self.starts.size - 1
        labels = np.repeat(np.arange(n_labels), np.diff(self.starts))
        bucket, level = np.divmod(self.cells, N_LEVELS)
        at = labels * N_LEVELS + level
        summed = (self.matches, self.hits, self.matches * expected[bucket])
        by_label = np.stack([np.bincount(at, numbers, n_labels * N_LEVELS) for numbers in summed], axis=1)
        return by_label.astype(np.int64).reshape(n_labels, N_LEVELS, 3)


class Tally:
    """Counts on one thread, in a hash table: few of the possible cells of a label ever match."""

    def __init__(self) -> None:
        self.by_bucket = np.zeros((N_BUCKETS, 2), np.int64)
        self._full: list[tuple[Longs, Longs]] = []
        self._start_table(FIRST_SLOTS)

    def _start_table(self, n_slots: int) -> None:
        self._table = np.zeros((n_slots, 2), np.int64)
        self._table[:, 0] = -1
        self._n_used = 0

    def add(self, found: Ints, ends: Longs, truth: LabelSets, n_labels: int, in_sample: Bools) -> None:
        """Count what ``find_matches`` found in documents with the labels ``truth``."""
        is_true = np.zeros(n_labels, np.bool_)
        keys = kernels.match_keys(found, ends, truth, is_true, in_sample, self.by_bucket)
        at = 0
        while True:
            at, self._n_used = kernels.tally_keys(keys, at, self._table, self._n_used)
            if at == len(keys):
                return
            self._full.append(self._counted_in_table())
            self._start_table(4 * len(self._table))

    def counted(self) -> list[tuple[Longs, Longs]]:
        """Return keys of ``match_keys``, and how often each came; a key may be in several tables."""
        return [*self._full, self._counted_in_table()]

    def _counted_in_table(self) -> tuple[Longs, Longs]:
        used = self._table[self._table[:, 0] >= 0]
        return used[:, 0], used[:, 1]


def matches_among(found: Ints, ends: Longs, pairs: Csr) -> tuple[Ints, Longs]:
    """Keep what ``find_matches`` found of pairs of a document and a label (n, n_labels).

    >>> import scipy.sparse as sp
    >>> found, ends = np.array([[0, 9, 1], [1, 9, 1], [0, 9, 1]], np.int32), np.array([2, 3])
    >>> kept, ends = matches_among(found, ends, sp.csr_matrix([[0, 1], [0, 0]]))
    >>> kept.tolist(), ends.tolist()
    ([[1, 9, 1]], [1, 1])
    """
    n_labels = pairs.shape[1]
    documents = np.repeat(np.arange(ends.size), np.diff(ends, prepend=0))
    wanted = np.repeat(np.arange(ends.size), np.diff(pairs.indptr)) * n_labels + pairs.indices
    kept = np.flatnonzero(np.isin(documents * n_labels + found[:, 0], wanted))
    return found[kept], np.searchsorted(kept, ends)
