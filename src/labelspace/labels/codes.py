"""Semantic label codes: D digits of K values each; similar labels share prefixes.

Chang et al., "SeCSeq: Semantic Coding for Sequence-to-Sequence based Extreme Multi-label Classification" (2018): the
embedding v of a label is projected on random directions, z = v R with R (P, D) Gaussian, and each z_d is quantized to K
values. Besides the paper's scheme there are two that split the labels of every prefix separately; their codes are
unique as long as there are enough codes.

    K  ``code_size``    D  ``code_length``    P  columns of ``vectors``
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from labelspace.errors import DataError, ParameterError
from labelspace.estimator.parameter_constraints import one_of, real
from labelspace.kernels.kmeans import balanced_2means_dense
from labelspace.kernels.threads import run_blocks
from labelspace.labels.clustering import MAX_ITERATIONS
from labelspace.labels.tree import TreeNodes
from labelspace.types import Csr, Doubles, Floats, Ints, Longs

SCHEMES = ("projection", "tree", "clusters")
QUANTIZERS = ("ordinal", "uniform")


@dataclass(frozen=True)
class Codes:
    """The codes of labels: ``code_length`` digits from 0 to ``code_size`` - 1 each. Labels may share a code.

    >>> Codes(np.array([[0, 1], [2, 0]], np.int32), code_size=3).n_labels
    2
    """

    digits: Ints  # (n_labels, code_length)
    code_size: int

    def __post_init__(self) -> None:
        if self.digits.ndim != 2 or not self.digits.size:
            raise DataError(f"codes must be a matrix (labels, digits), but are of shape {self.digits.shape}; give some")
        low, high = int(self.digits.min()), int(self.digits.max())
        if low < 0 or high >= self.code_size:
            rule = f"digits must be from 0 to {self.code_size - 1}"
            raise DataError(f"{rule}, but are from {low} to {high}; correct them")
        object.__setattr__(self, "digits", np.ascontiguousarray(self.digits, dtype=np.int32))

    @property
    def n_labels(self) -> int:
        """Return the number of labels."""
        return int(self.digits.shape[0])

    @property
    def code_length(self) -> int:
        """Return the number of digits per code."""
        return int(self.digits.shape[1])


def make_codes(
    vectors: Floats | Csr, code_size: int, code_length: int, scheme: str, quantizer: str, seed: int
) -> Codes:
    """Make codes of labels with these embeddings (n_labels, P), which may be sparse with ``projection``.

    Labels with similar embeddings share a prefix.

    ``projection`` is the paper's: a random direction per digit, along which all labels are quantized. ``tree`` draws a
    direction for every prefix and quantizes the labels of that prefix; if these are at most ``code_size``, each gets
    its own digit. ``clusters`` splits the labels of a prefix by balanced 2-means, halved until there are ``code_size``
    clusters.

    ``ordinal`` quantization cuts the ranks into equal parts, ties in the order of their ids; ``uniform`` cuts the range
    of the values into equal parts, and gives digit 0 if all are equal. ``clusters`` has no quantizer.

    With ``clusters``, and with ``tree`` and ``ordinal``, no two labels share a code if there are at most
    ``code_size ** code_length`` labels. Below a prefix of one label, digits are 0.

    >>> vectors = np.array([[1, 0], [0, 1], [0.9, 0.1], [0.1, 0.9]], np.float32)
    >>> codes = make_codes(vectors, code_size=2, code_length=2, scheme="clusters", quantizer="ordinal", seed=0)
    >>> first = codes.digits[:, 0]
    >>> bool(first[0] == first[2]), bool(first[1] == first[3]), bool(first[0] == first[1])
    (True, True, False)
    """
    _check(vectors, code_size, code_length, scheme, quantizer)
    rng = np.random.default_rng(seed)
    if scheme == "clusters" and isinstance(vectors, np.ndarray):
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = (vectors / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    n_labels = vectors.shape[0]
    digits = np.zeros((n_labels, code_length), np.int32)
    order, bounds = np.arange(n_labels, dtype=np.int32), np.array([0, n_labels], np.int64)
    for position in range(code_length):
        if scheme == "clusters" and isinstance(vectors, np.ndarray):
            digit_seed = (seed * 1_000_003 + position * n_labels) % 2**62
            digit = balanced_digits(vectors, order, bounds, code_size, digit_seed)
        else:
            order, digit = quantize_projections(vectors, order, bounds, code_size, quantizer, scheme == "tree", rng)
        digits[order, position] = digit
        if scheme == "projection":
            continue
        bounds = np.union1d(bounds, np.flatnonzero(np.diff(digit)) + 1)
        if len(bounds) > n_labels:  # no two labels share a prefix
            break
    return Codes(digits, code_size)


def _check(vectors: Floats | Csr, code_size: int, code_length: int, scheme: str, quantizer: str) -> None:
    real(at_least=2).check("code_size", code_size)
    real(at_least=1).check("code_length", code_length)
    one_of(*SCHEMES).check("scheme", scheme)
    one_of(*QUANTIZERS).check("quantizer", quantizer)
    if not isinstance(vectors, np.ndarray) and scheme != "projection":
        raise ParameterError(f"sparse vectors need scheme projection, but it is {scheme!r}; give dense ones")
    if vectors.ndim != 2 or not vectors.shape[0]:
        raise DataError(f"vectors must have a row per label, but are of shape {vectors.shape}; give at least one label")


@dataclass(frozen=True)
class CodeTree:
    """The trie of the codes that exist: a node per prefix, numbered by level, then by digits; node 0 is the root.

    >>> tree = CodeTree.from_codes(Codes(np.array([[1, 0], [0, 2], [1, 0], [1, 1]], np.int32), code_size=3))
    >>> tree.first_child.tolist(), tree.last_child.tolist(), tree.digit.tolist()
    ([1, 3, 4, 0, 0, 0], [3, 4, 6, 0, 0, 0], [-1, 0, 1, 2, 0, 1])
    >>> tree.labels.tolist(), tree.label_starts.tolist(), tree.ancestors()[2].tolist()
    ([1, 0, 2, 3], [0, 1, 3, 4], [0, 2, 4])
    """

    first_child: Ints  # (n_nodes,) the children of node i are first_child[i] to last_child[i] - 1; 0 and 0 for a leaf
    last_child: Ints
    digit: Ints  # (n_nodes,) the last digit of each prefix, -1 for the root
    level_starts: Longs  # (code_length + 2,) the nodes of level i are level_starts[i] to level_starts[i + 1] - 1
    labels: Ints  # (n_labels,) sorted by leaf, then by id
    label_starts: Longs  # (n_leaves + 1,) the labels of leaf i are labels[label_starts[i] : label_starts[i + 1]]
    leaf_of: Ints  # (n_labels,) the node where the code of each label ends

    @classmethod
    def from_codes(cls, codes: Codes) -> Self:
        """Build the trie of these codes."""
        order = np.lexsort(codes.digits.T[::-1])  # stable, so labels of one code stay in the order of their ids
        digits = codes.digits[order]
        is_first = np.zeros(codes.n_labels, bool)  # True for a label whose prefix differs from that of the label before
        is_first[0] = True
        firsts = [np.flatnonzero(is_first)]
        for position in range(codes.code_length):
            is_first[1:] |= digits[1:, position] != digits[:-1, position]
            firsts.append(np.flatnonzero(is_first))
        starts = np.cumsum([0, *map(len, firsts)])
        first, last = np.zeros((2, starts[-1]), np.int32)
        digit = np.full(starts[-1], -1, np.int32)
        for level, (here, below) in enumerate(zip(firsts[:-1], firsts[1:], strict=True)):
            nodes = slice(starts[level], starts[level + 1])
            first[nodes] = starts[level + 1] + np.searchsorted(below, here)
            last[nodes] = np.append(first[nodes][1:], starts[level + 2])
            digit[starts[level + 1] : starts[level + 2]] = digits[below, level]
        leaf_of = np.empty(codes.n_labels, np.int32)
        label_starts = np.append(firsts[-1], codes.n_labels)
        leaf_of[order] = np.repeat(np.arange(starts[-2], starts[-1]), np.diff(label_starts))
        return cls(first, last, digit, starts, order.astype(np.int32), label_starts, leaf_of)

    @property
    def n_nodes(self) -> int:
        """Prefixes that exist, including the empty one of the root."""
        return len(self.digit)

    @property
    def code_length(self) -> int:
        """Digits per code: the height of the tree."""
        return len(self.level_starts) - 2

    @cached_property
    def parent(self) -> Ints:
        """Return the node above each node, -1 for the root. Shape (n_nodes,)."""
        sizes = self.last_child - self.first_child
        return np.append(-1, np.repeat(np.arange(self.n_nodes), sizes)).astype(np.int32)

    def child(self, nodes: Longs, digits: Longs) -> Longs:
        """Return the child of each node by a digit; the child must exist."""
        size = self.digit.max() + 1
        keys = self.parent[1:].astype(np.int64) * size + self.digit[1:]
        return np.asarray(1 + np.searchsorted(keys, nodes * size + digits))

    def leaves_of(self, codes: Longs) -> Longs:
        """Return the leaf of each code (..., code_length), whatever its digits; -1 for a code that no label has.

        >>> tree = CodeTree.from_codes(Codes(np.array([[1, 0], [0, 2], [1, 1]], np.int32), code_size=3))
        >>> tree.leaves_of(np.array([[0, 2], [1, 1], [1, 2], [-1, 0]])).tolist()
        [3, 5, -1, -1]
        """
        size = int(self.digit.max()) + 1
        keys = self.parent[1:].astype(np.int64) * size + self.digit[1:]
        nodes, exist = np.zeros(codes.shape[:-1], np.int64), ((codes >= 0) & (codes < size)).all(axis=-1)
        for position in range(self.code_length):
            wanted = nodes * size + codes[..., position]
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            exist &= keys[at] == wanted
            nodes = np.where(exist, 1 + at, 0)
        return np.where(exist, nodes, -1)

    def ancestors(self) -> Ints:
        """Return the path of every label, root first. Shape (n_labels, code_length + 1)."""
        paths = np.zeros((len(self.leaf_of), self.code_length + 1), np.int32)
        paths[:, -1] = self.leaf_of
        for level in range(self.code_length - 1, 0, -1):
            start, stop = self.level_starts[level], self.level_starts[level + 1]
            paths[:, level] = start - 1 + np.searchsorted(self.first_child[start:stop], paths[:, level + 1], "right")
        return paths

    def to_nodes(self) -> TreeNodes:
        """Convert to a tree with a leaf per label: labels that share a code become its children.

        A node above a single label becomes the leaf of that label.

        >>> codes = Codes(np.array([[1, 0], [0, 2], [1, 0], [1, 1]], np.int32), code_size=3)
        >>> nodes = CodeTree.from_codes(codes).to_nodes()
        >>> nodes.first_child.tolist(), nodes.last_child.tolist(), nodes.label.tolist()
        ([1, 0, 3, 5, 0, 0, 0], [3, 0, 5, 7, 0, 0, 0], [-1, 1, -1, -1, 3, 0, 2])
        """
        paths = self.ancestors()
        n_below = np.bincount(paths.ravel(), minlength=self.n_nodes)  # labels below each node
        parent = np.zeros(self.n_nodes, np.int64)
        parent[paths[:, 1:]] = paths[:, :-1]
        kept = (parent == 0) | (n_below[parent] > 1)
        new_id = np.cumsum(kept) - 1
        inner = kept & (n_below > 1)
        inner[0] = True
        collided = inner & (self.last_child == 0)  # codes of several labels
        first = np.where(inner, new_id[self.first_child], 0)
        last = np.where(inner, new_id[self.last_child - 1] + 1, 0)
        last[collided] = kept.sum() + np.cumsum(n_below[collided])
        first[collided] = last[collided] - n_below[collided]
        label = np.full(self.n_nodes, -1, np.int32)
        label[paths] = np.where(inner[paths], -1, np.arange(len(paths))[:, None])
        shared = self.labels[collided[self.leaf_of[self.labels]]]
        parts = ((first, 0 * shared), (last, 0 * shared), (label, shared))
        first, last, label = (np.append(nodes[kept], more).astype(np.int32) for nodes, more in parts)
        return TreeNodes(first, last, label)


def code_summary(codes: Codes) -> dict[str, Any]:
    """Summarize codes: labels that share a code, how evenly digits are used, and how much smaller the output is.

    >>> summary = code_summary(Codes(np.array([[0, 1], [1, 0], [1, 0]], np.int32), code_size=2))
    >>> summary["codes"], summary["collisions"], summary["largest"], summary["occupancy"], summary["outputs"]
    (2, 2, 2, 0.5, 4)
    """
    labels_per_code = np.diff(CodeTree.from_codes(codes).label_starts)
    counts = [np.bincount(column, minlength=codes.code_size) for column in codes.digits.T]
    outputs = codes.code_size * codes.code_length
    return {
        "n_labels": codes.n_labels,
        "width": codes.code_size,
        "digits": codes.code_length,
        "codes": len(labels_per_code),
        "collisions": int(labels_per_code[labels_per_code > 1].sum()),
        "largest": int(labels_per_code.max()),
        "occupancy": len(labels_per_code) / codes.code_size**codes.code_length,
        "used": [int((count > 0).sum()) for count in counts],
        "evenness": [round(_evenness(count), 6) for count in counts],
        "bits_a_label": codes.code_length * float(np.log2(codes.code_size)),
        "outputs": outputs,
        "compression": codes.n_labels / outputs,
    }


def _evenness(counts: Longs) -> float:
    """Return the normalized entropy of digits with these counts: 1 if all are used equally often."""
    shares = counts[counts > 0] / counts.sum()
    return float(abs((shares * np.log(shares)).sum()) / np.log(max(len(counts), 2)))


ROW_BLOCK = 65_536  # rows that are projected at once, which bounds memory


def quantize_projections(
    vectors: Floats | Csr,
    order: Ints,
    bounds: Longs,
    code_size: int,
    quantizer: str,
    split_small: bool,
    rng: np.random.Generator,
) -> tuple[Ints, Ints]:
    """Quantize the labels of each group along a random direction per group; of sparse vectors there is one group.

    Groups are ``order[bounds[i]:bounds[i + 1]]``: labels with the same prefix. Return the labels sorted within their
    groups, and the digit of each; with ``split_small``, every label of a group of at most ``code_size`` labels gets its
    own digit.
    """
    sizes = np.diff(bounds)
    group = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    directions = rng.standard_normal((len(sizes), vectors.shape[1]), np.float32)
    z = np.empty(len(order), np.float32)
    if not isinstance(vectors, np.ndarray):
        z[:] = (vectors @ directions[0])[order]
    for start in range(0, len(order) if isinstance(vectors, np.ndarray) else 0, ROW_BLOCK):
        rows = slice(start, start + ROW_BLOCK)
        # Not by BLAS: a sum in another order could give another rank.
        z[rows] = np.einsum("ij,ij->i", vectors[order[rows]], directions[group[rows]])
    by_value = np.lexsort((order, z, group))
    order, z = order[by_value], z[by_value]
    members, starts = sizes[group], bounds[:-1][group]
    by_rank = (np.arange(len(order)) - starts) * np.minimum(members, code_size) // members
    if quantizer == "ordinal":
        return order, by_rank.astype(np.int32)
    low, high = z[starts].astype(np.float64), z[bounds[1:][group] - 1].astype(np.float64)
    bins: Doubles = np.minimum((z - low) / np.where(high > low, high - low, 1.0) * code_size, code_size - 1)
    return order, np.where((members <= code_size) & split_small, by_rank, bins).astype(np.int32)


def balanced_digits(vectors: Floats, order: Ints, bounds: Longs, code_size: int, seed: int) -> Ints:
    """Split each group into ``code_size`` clusters of equal size, by halving; ``order`` is sorted by cluster in place.

    Return the digit of each label of ``order``. Vectors must have norm 1. Halves are proportional to the number of
    clusters that they will be split into, so ``code_size`` need not be a power of 2.
    """
    size = np.diff(bounds)
    n_clusters = np.minimum(size, code_size)  # still to make of each part
    first_digit = np.zeros(len(size), np.int64)
    while (n_clusters > 1).any():
        n_left = (n_clusters + 1) // 2
        middles = bounds[:-1] + np.where(n_clusters > 1, n_left * size // n_clusters, 0)

        def halve(start: int, stop: int, bounds: Longs = bounds, middles: Longs = middles) -> None:
            for i in range(start, stop):
                if middles[i] > bounds[i]:
                    members, part_seed = order[bounds[i] : bounds[i + 1]], seed + len(bounds) + i
                    half = int(middles[i] - bounds[i])
                    balanced_2means_dense(vectors, members, half, MAX_ITERATIONS, part_seed)

        run_blocks(halve, len(middles), max(1, len(middles) // 64))
        halved = n_clusters > 1
        starts = np.stack([bounds[:-1], middles], 1)[np.stack([np.ones_like(halved), halved], 1)]
        bounds = np.append(starts, bounds[-1])
        parent = np.repeat(np.arange(len(halved)), 1 + halved)
        is_right = np.append(False, parent[1:] == parent[:-1])
        first_digit = first_digit[parent] + np.where(is_right, n_left[parent], 0)
        n_right, n_first = (n_clusters - n_left)[parent], np.where(halved, n_left, n_clusters)[parent]
        n_clusters = np.where(is_right, n_right, n_first)
        size = np.diff(bounds)
    return np.repeat(first_digit, size).astype(np.int32)
