"""Labels as short codes: D digits of K values each, so that labels which are alike begin alike.

Chang et al., "SeCSeq: Semantic Coding for Sequence-to-Sequence based Extreme Multi-label Classification" (2018): the
vector v of a label is projected on random directions, z = v R with R (P, D) Gaussian, and each z_d is quantized to K
values. Beside the paper's scheme stand two that cut every prefix anew, where labels get codes of their own as long as
there are codes enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labelspace.errors import DataError, ParameterError
from labelspace.labels.quantization import clustered, projected
from labelspace.labels.tree import Nodes
from labelspace.types import Floats, Ints, Longs

SCHEMES = ("projection", "tree", "clusters")
QUANTIZERS = ("ordinal", "uniform")


@dataclass(frozen=True)
class Codes:
    """The code of each label: as many digits for all, each from 0 to ``width`` - 1. Labels may share a code.

    >>> Codes(np.array([[0, 1], [2, 0]], np.int32), width=3).n_labels
    2
    """

    digits: Ints  # (n_labels, n_digits)
    width: int

    def __post_init__(self) -> None:
        if self.digits.ndim != 2 or not self.digits.size:
            raise DataError(
                f"codes must be a table with a row a label and a column a digit, but have the shape "
                f"{self.digits.shape}; give at least one label and one digit"
            )
        low, high = int(self.digits.min()), int(self.digits.max())
        if low < 0 or high >= self.width:
            raise DataError(
                f"digits must be from 0 to {self.width - 1}, but go from {low} to {high}; give digits below the width"
            )
        object.__setattr__(self, "digits", np.ascontiguousarray(self.digits, dtype=np.int32))

    @property
    def n_labels(self) -> int:
        """Labels that have a code."""
        return int(self.digits.shape[0])

    @property
    def n_digits(self) -> int:
        """Digits a code."""
        return int(self.digits.shape[1])


def make_codes(vectors: Floats, width: int, digits: int, scheme: str, quantizer: str, seed: int) -> Codes:
    """Codes of labels with these vectors (n_labels, P); labels with vectors that are near begin with the same digits.

    ``projection`` is the paper's: a random direction a digit, along which all labels are quantized. ``tree`` draws a
    direction for every prefix and quantizes only the labels that begin so; as many labels as digits, or fewer, get one
    each. ``clusters`` parts the labels of a prefix by balanced 2-means, halved until there are ``width`` parts.

    ``ordinal`` cuts the ranks into equal parts, equals in the order of their ids; ``uniform`` cuts the range from the
    smallest to the largest value into equal parts, and all equal give digit 0. It does not matter with ``clusters``.

    With ``clusters``, and with ``tree`` and ``ordinal``, no two labels share a code where there are at most
    ``width ** digits``. Below a prefix of one label, digits are 0.

    >>> vectors = np.array([[1, 0], [0, 1], [0.9, 0.1], [0.1, 0.9]], np.float32)
    >>> first = make_codes(vectors, width=2, digits=2, scheme="clusters", quantizer="ordinal", seed=0).digits[:, 0]
    >>> bool(first[0] == first[2]), bool(first[1] == first[3]), bool(first[0] == first[1])
    (True, True, False)
    """
    _check(vectors, width, digits, scheme, quantizer)
    rng = np.random.default_rng(seed)
    if scheme == "clusters":
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = (vectors / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    found = np.zeros((len(vectors), digits), np.int32)
    order, bounds = np.arange(len(vectors), dtype=np.int32), np.array([0, len(vectors)], np.int64)
    for place in range(digits):
        if scheme == "clusters":
            digit = clustered(vectors, order, bounds, width, (seed * 1_000_003 + place * len(vectors)) % 2**62)
        else:
            order, digit = projected(vectors, order, bounds, width, quantizer, scheme == "tree", rng)
        found[order, place] = digit
        if scheme == "projection":
            continue
        bounds = np.union1d(bounds, np.flatnonzero(np.diff(digit)) + 1)
        if len(bounds) > len(vectors):  # each label has its own prefix
            break
    return Codes(found, width)


def _check(vectors: Floats, width: int, digits: int, scheme: str, quantizer: str) -> None:
    for name, value, least in (("width", width, 2), ("digits", digits, 1)):
        if value < least:
            raise ParameterError(f"{name} must be at least {least}, but is {value}; ask for {least} or more")
    for name, given, known in (("scheme", scheme, SCHEMES), ("quantizer", quantizer, QUANTIZERS)):
        if given not in known:
            raise ParameterError(f"{name} must be one of {', '.join(known)}, but is {given!r}; set it so")
    if vectors.ndim != 2 or not len(vectors):
        raise DataError(
            f"vectors must be a table with a row a label, but have the shape {vectors.shape}; give at least one label"
        )


@dataclass(frozen=True)
class CodeTree:
    """The tree of the codes that exist: a node a prefix, numbered level by level and by digits; node 0 is the root.

    >>> tree = CodeTree.of(Codes(np.array([[1, 0], [0, 2], [1, 0], [1, 1]], np.int32), width=3))
    >>> tree.first_child.tolist(), tree.last_child.tolist(), tree.digit.tolist()
    ([1, 3, 4, 0, 0, 0], [3, 4, 6, 0, 0, 0], [-1, 0, 1, 2, 0, 1])
    >>> tree.labels.tolist(), tree.label_starts.tolist(), tree.path(2).tolist()
    ([1, 0, 2, 3], [0, 1, 3, 4], [0, 2, 4])
    """

    first_child: Ints  # (n_nodes,) the children of node i are first_child[i] to last_child[i] - 1; 0 and 0 for a leaf
    last_child: Ints
    digit: Ints  # (n_nodes,) the last digit of each prefix, -1 for the root
    level_starts: Longs  # (digits + 2,) the nodes of level i are level_starts[i] to level_starts[i + 1] - 1
    labels: Ints  # (n_labels,) by leaf, then by id
    label_starts: Longs  # (n_leaves + 1,) the labels of leaf i are labels[label_starts[i] : label_starts[i + 1]]
    leaf_of: Ints  # (n_labels,) the node where the code of each label ends

    @staticmethod
    def of(codes: Codes) -> CodeTree:
        """The tree of these codes."""
        order = np.lexsort(codes.digits.T[::-1])  # stable, so labels of one code stay in the order of their ids
        digits = codes.digits[order]
        begins = np.zeros(codes.n_labels, bool)  # where a prefix begins that is not the one before
        begins[0] = True
        firsts = [np.flatnonzero(begins)]
        for place in range(codes.n_digits):
            begins[1:] |= digits[1:, place] != digits[:-1, place]
            firsts.append(np.flatnonzero(begins))
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
        return CodeTree(first, last, digit, starts, order.astype(np.int32), label_starts, leaf_of)

    @property
    def n_nodes(self) -> int:
        """Prefixes that exist, the empty one of the root among them."""
        return len(self.digit)

    @property
    def digits(self) -> int:
        """Digits a code, which is the height of the tree."""
        return len(self.level_starts) - 2

    @cached_property
    def parent(self) -> Ints:
        """The node above each node, -1 for the root. Shape (n_nodes,)."""
        sizes = self.last_child - self.first_child
        return np.append(-1, np.repeat(np.arange(self.n_nodes), sizes)).astype(np.int32)

    def child(self, nodes: Longs, digits: Longs) -> Longs:
        """The child of each node by a digit, which must exist."""
        size = self.digit.max() + 1
        keys = self.parent[1:].astype(np.int64) * size + self.digit[1:]
        children: Longs = 1 + np.searchsorted(keys, nodes * size + digits)
        return children

    def path(self, label: int) -> Ints:
        """The nodes from the root to the leaf of a label. Shape (digits + 1,)."""
        path: Ints = self._above(self.leaf_of[label : label + 1])[0]
        return path

    def ancestors(self) -> Ints:
        """The path of every label, root first. Shape (n_labels, digits + 1)."""
        return self._above(self.leaf_of)

    def to_nodes(self) -> Nodes:
        """The tree with a leaf a label: labels of one code become its children, and what only one label is below, it.

        >>> nodes = CodeTree.of(Codes(np.array([[1, 0], [0, 2], [1, 0], [1, 1]], np.int32), width=3)).to_nodes()
        >>> nodes.first_child.tolist(), nodes.last_child.tolist(), nodes.label.tolist()
        ([1, 0, 3, 5, 0, 0, 0], [3, 0, 5, 7, 0, 0, 0], [-1, 1, -1, -1, 3, 0, 2])
        """
        above = self.ancestors()
        below = np.bincount(above.ravel(), minlength=self.n_nodes)  # labels below each node
        parent = np.zeros(self.n_nodes, np.int64)
        parent[above[:, 1:]] = above[:, :-1]
        kept = (parent == 0) | (below[parent] > 1)
        number = np.cumsum(kept) - 1
        parted = kept & (below > 1)
        parted[0] = True
        crowded = parted & (self.last_child == 0)
        first = np.where(parted, number[self.first_child], 0)
        last = np.where(parted, number[self.last_child - 1] + 1, 0)
        last[crowded] = kept.sum() + np.cumsum(below[crowded])
        first[crowded] = last[crowded] - below[crowded]
        label = np.full(self.n_nodes, -1, np.int32)
        label[above] = np.where(parted[above], -1, np.arange(len(above))[:, None])
        shared = self.labels[crowded[self.leaf_of[self.labels]]]
        first, last, label = (
            np.append(nodes[kept], more).astype(np.int32)
            for nodes, more in ((first, 0 * shared), (last, 0 * shared), (label, shared))
        )
        return Nodes(first, last, label)

    def _above(self, leaves: Ints) -> Ints:
        found = np.zeros((len(leaves), self.digits + 1), np.int32)
        found[:, -1] = leaves
        for level in range(self.digits - 1, 0, -1):
            begin, end = self.level_starts[level], self.level_starts[level + 1]
            found[:, level] = begin - 1 + np.searchsorted(self.first_child[begin:end], found[:, level + 1], "right")
        return found


def code_summary(codes: Codes) -> dict[str, Any]:
    """Codes in figures: how many labels share one, how even the digits are used, and how much shorter outputs are.

    >>> summary = code_summary(Codes(np.array([[0, 1], [1, 0], [1, 0]], np.int32), width=2))
    >>> summary["codes"], summary["collisions"], summary["largest"], summary["occupancy"], summary["outputs"]
    (2, 2, 2, 0.5, 4)
    """
    on_code = np.diff(CodeTree.of(codes).label_starts)
    tables = [np.bincount(column, minlength=codes.width) for column in codes.digits.T]
    outputs = codes.width * codes.n_digits
    return {
        "n_labels": codes.n_labels,
        "width": codes.width,
        "digits": codes.n_digits,
        "codes": len(on_code),
        "collisions": int(on_code[on_code > 1].sum()),
        "largest": int(on_code.max()),
        "occupancy": len(on_code) / codes.width**codes.n_digits,
        "used": [int((table > 0).sum()) for table in tables],
        "evenness": [round(_evenness(table), 6) for table in tables],
        "bits_a_label": codes.n_digits * float(np.log2(codes.width)),
        "outputs": outputs,
        "compression": codes.n_labels / outputs,
    }


def _evenness(table: Longs) -> float:
    """The entropy of the digits counted in a table, over the largest possible: 1 where all are used alike."""
    shares = table[table > 0] / table.sum()
    return float(abs((shares * np.log(shares)).sum()) / np.log(max(len(table), 2)))
