"""Synthetic data of any size with a planted relation between features and labels, so that methods can learn it.

1. Labels are the nodes of a hidden tree: the parent of label i is label (i - 1) // branching.
2. Label frequencies follow Zipf's law, with ranks shuffled over the tree.
3. A document has a main label, and more labels: its parent, a sibling, or one drawn by frequency.
4. Every label has a signature of a few features. A document has features from the signatures of its labels, fewer from
   those of their parents, and some noise features.

The signatures are computed from the label id by a hash, not stored: a million labels need no memory.
"""

import numpy as np
import scipy.sparse as sp

from labelspace.errors import ParameterError
from labelspace.types import Csr, Dataset, Hierarchy, Ints, LabelSpace, Longs

SIGNATURE = 8  # features in the signature of a label
OWN_DRAWS = 5  # draws from the signature of each label of a document
PARENT_DRAWS = 1  # draws from the signature of each label's parent


def planted(
    n: int,
    d: int,
    l: int,  # noqa: E741 - the field's letter for the number of labels
    *,
    labels_per_document: float = 2.5,
    branching: int = 10,
    zipf: float = 1.0,
    noise: int = 3,
    texts: bool = False,
    seed: int = 0,
) -> Dataset:
    """Draw n documents with d features and l labels; with ``texts``, also texts of words (``w12 w7 ...``).

    >>> data = planted(n=100, d=500, l=20, seed=3)
    >>> data.X.shape, data.Y.shape, data.labels.hierarchy.levels.max().item()
    ((100, 500), (100, 20), 2)
    """
    for name, value in (("n", n), ("d", d), ("l", l), ("branching", branching)):
        if value < 1:
            raise ParameterError(f"{name} must be at least 1, but is {value}; set 1 or more")
    rng = np.random.default_rng(seed)
    document, label = _draw_labels(rng, n, l, labels_per_document, branching, zipf)
    rows, features = _draw_features(rng, document, label, n, d, branching, noise)
    Y = _count_matrix(document, label, (n, l))
    Y.data[:] = 1.0
    counts = _count_matrix(rows, features, (n, d))
    X = counts.copy()
    X.data = (1.0 + np.log(X.data)).astype(np.float32)
    children = np.arange(1, l)
    tree = Hierarchy.from_edges(np.stack([children, (children - 1) // branching], axis=1), l)
    space = LabelSpace([f"label {i}" for i in range(l)], hierarchy=tree)
    words = [" ".join(f"w{f}" for f in np.repeat(*row)) for row in _rows(counts)] if texts else None
    return Dataset(Y, space, texts=words, X=X, name=f"planted-{n}-{d}-{l}")


def _draw_labels(
    rng: np.random.Generator, n: int, n_labels: int, mean: float, branching: int, zipf: float
) -> tuple[Longs, Longs]:
    """Draw pairs (document, label), main labels first: steps 2 and 3."""
    by_rank = rng.permutation(n_labels)
    cumulative = np.cumsum(np.arange(1, n_labels + 1, dtype=np.float64) ** -zipf)

    def by_frequency(size: int) -> Longs:
        rank = np.searchsorted(cumulative, rng.random(size) * cumulative[-1])
        return np.asarray(by_rank[np.minimum(rank, n_labels - 1)], np.int64)

    main = by_frequency(n)
    document = np.repeat(np.arange(n), rng.poisson(max(mean - 1.0, 0.0), n))
    parent = np.maximum((main[document] - 1) // branching, 0)
    sibling = np.minimum(parent * branching + 1 + rng.integers(0, branching, len(document)), n_labels - 1)
    kind = rng.random(len(document))
    more = np.where(kind < 0.3, parent, np.where(kind < 0.7, sibling, by_frequency(len(document))))
    return np.concatenate([np.arange(n), document]), np.concatenate([main, more])


def _draw_features(
    rng: np.random.Generator, document: Longs, label: Longs, n: int, d: int, branching: int, noise: int
) -> tuple[Longs, Longs]:
    """Draw pairs (document, feature), repeated if a feature is drawn twice: step 4."""
    signature = _signature(np.repeat(label, OWN_DRAWS), rng.integers(0, SIGNATURE, OWN_DRAWS * len(label)), d)
    parent = np.maximum((label - 1) // branching, 0)
    inherited = _signature(np.repeat(parent, PARENT_DRAWS), rng.integers(0, SIGNATURE, PARENT_DRAWS * len(label)), d)
    background = (d * rng.random(noise * n) ** 3).astype(np.int64)  # small ids more often, like common words
    rows = [np.repeat(document, OWN_DRAWS), np.repeat(document, PARENT_DRAWS), np.repeat(np.arange(n), noise)]
    return np.concatenate(rows), np.concatenate([signature, inherited, background])


def _signature(label: Longs, index: Longs, d: int) -> Longs:
    """Return one feature of a label's signature: the splitmix64 hash of label and index."""
    x = (label * SIGNATURE + index).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) % np.uint64(d)).astype(np.int64)


def _count_matrix(rows: Longs, columns: Longs, shape: tuple[int, int]) -> Csr:
    matrix = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def _rows(counts: Csr) -> list[tuple[Ints, Longs]]:
    """Return features and their counts, row by row."""
    spans = zip(counts.indptr[:-1], counts.indptr[1:], strict=True)
    return [(counts.indices[a:b], counts.data[a:b].astype(np.int64)) for a, b in spans]
