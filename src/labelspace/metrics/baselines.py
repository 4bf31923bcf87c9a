"""What a model must beat: the most common labels for every document, and labels drawn at random."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from labelspace.metrics.checks import checked_counts, checked_k
from labelspace.metrics.evaluation import DEFAULT_KS, PropensityFrom, evaluate
from labelspace.types import Csr, TopK
from labelspace.types.propensity import DEFAULT_A, DEFAULT_B


def most_common(counts: npt.ArrayLike, n: int, k: int = 5) -> TopK:
    """The k most frequent training labels, for each of n documents; ties go to the smaller label id.

    The scores are the ``counts``. Lists are padded with -1 where there are fewer labels.

    >>> most_common([3, 9, 5], n=1, k=2).labels.tolist()
    [[1, 2]]
    """
    checked = checked_counts(counts, np.size(counts))
    best = TopK.from_scores(checked[None, :], checked_k(k))
    return TopK(np.repeat(best.labels, n, axis=0), np.repeat(best.scores, n, axis=0))


def random_topk(n_labels: int, n: int, k: int = 5, seed: int = 0) -> TopK:
    """K distinct labels drawn uniformly at random, for each of n documents; padded with -1 where there are fewer.

    >>> topk = random_topk(n_labels=3, n=2, k=3)
    >>> np.sort(topk.labels).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    rng = np.random.default_rng(seed)
    n_drawn = min(checked_k(k), n_labels)
    labels = np.full((n, n_drawn), -1, np.int32)
    # Floyd's sampling: the j-th draw is from 0..top; a label drawn before is replaced by top, which cannot have been.
    for rank, top in enumerate(range(n_labels - n_drawn, n_labels)):
        draw = rng.integers(0, top + 1, size=n, dtype=np.int32)
        labels[:, rank] = np.where((labels == draw[:, None]).any(axis=1), top, draw)
    # Floyd's sets are uniform but their order is not: late ranks have large label ids too often.
    labels = rng.permuted(labels, axis=1)
    scores = np.linspace(1.0, 0.0, n_drawn, endpoint=False, dtype=np.float32)
    return TopK(labels, np.broadcast_to(scores, labels.shape)).padded(k)


def evaluate_baselines(
    Y: Csr,
    counts: npt.ArrayLike,
    n_documents: int,
    ks: Sequence[int] = DEFAULT_KS,
    A: float = DEFAULT_A,
    B: float = DEFAULT_B,
    propensity_from: PropensityFrom = "train",
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """The metrics of :func:`evaluate` for both baselines, under ``most_common`` and ``random``.

    >>> import scipy.sparse as sp
    >>> scores = evaluate_baselines(sp.csr_matrix([[1, 1, 0], [0, 0, 1]]), counts=[9, 2, 1], n_documents=10, ks=(1, 3))
    >>> scores["most_common"]["P@1"], scores["random"]["P@3"]
    (50.0, 50.0)
    """
    n, n_labels = Y.shape
    k = max(ks, default=1)
    rankings = {
        "most_common": most_common(checked_counts(counts, n_labels), n, k),
        "random": random_topk(n_labels, n, k, seed),
    }
    return {name: evaluate(Y, topk, counts, n_documents, ks, A, B, propensity_from) for name, topk in rankings.items()}
