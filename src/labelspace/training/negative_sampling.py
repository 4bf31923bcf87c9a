"""The labels that a batch is trained on: all, or its positives with sampled negatives where there are too many."""

from dataclasses import dataclass

import numpy as np

from labelspace.types import Csr, Floats, Ints

MAX_UNSAMPLED_LABELS = 20_000  # up to this many labels, a step trains on all of them


@dataclass(frozen=True)
class SampledLabels:
    """The labels of a step, each once, and which of them are the positives of each document."""

    ids: Ints  # (n,)
    columns: Ints  # the positives of document i are ids[columns[indptr[i] : indptr[i + 1]]]
    indptr: Ints
    weights: Floats | None = None  # (n,) the number of labels that each stands for
    n_fixed: int = 0  # the first ids are not sampled: positives and hard negatives, sorted

    @property
    def covers_all(self) -> bool:
        """Whether these are all candidate labels, in their order."""
        return self.weights is None


def sample_labels(
    Y: Csr, candidates: Ints, n_negatives: int, rng: np.random.Generator, hard_negatives: Ints | None = None
) -> SampledLabels:
    """The positives of a batch, its hard negatives (-1 is none), and uniform negatives shared by all documents.

    A sampled label is weighted by the number of labels it stands for, so sums over labels stay the same in expectation.
    """
    listed = [Y.indices] if hard_negatives is None else [Y.indices, hard_negatives.ravel()]
    fixed = np.unique(np.concatenate(listed))
    fixed = fixed[fixed >= 0]
    sampled = np.setdiff1d(candidates[rng.integers(0, len(candidates), n_negatives)], fixed)
    weights = np.ones(len(fixed) + len(sampled), np.float32)
    weights[len(fixed) :] = (len(candidates) - len(fixed)) / max(len(sampled), 1)
    ids = np.concatenate([fixed, sampled])
    return SampledLabels(ids, np.searchsorted(fixed, Y.indices).astype(np.int32), Y.indptr, weights, len(fixed))


def seen_labels(Y: Csr) -> Ints:
    """The labels with a training document."""
    return np.unique(Y.indices).astype(np.int32)
