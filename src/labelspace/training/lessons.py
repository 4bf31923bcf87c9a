"""What a writer of codes is taught of each document: the digits after every prefix, or its labels one after the other.

This module needs torch: import it only where ``errors.require`` has been asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from labelspace.labels.codes import Codes, CodeTree
from labelspace.training.writer import Memory, Writer
from labelspace.types import Bools, Csr, Ints, Longs

ORDERS = ("frequent", "rare", "random")
LONGEST = 50  # labels of a document that are written one after the other


class Lesson(ABC):
    """The codes of the labels of all training documents."""

    tree: CodeTree
    tokens: int
    """Digits that are taught in one pass over them."""

    @abstractmethod
    def loss(self, writer: Writer, memory: Memory, rows: Ints) -> tuple[Tensor, int]:
        """The loss on some documents as they were read, their mean; and how many digits were to be written."""


class PrefixLesson(Lesson):
    """After each prefix of a document's labels, which digits follow.

    Each digit is right or wrong by itself (binary cross-entropy), or, with ``choose``, one label is drawn and its
    digits written (cross-entropy; the mean over all draws). Where only one digit exists there is nothing to learn.
    """

    def __init__(self, codes: Codes, Y: Csr, choose: bool) -> None:
        self.tree = tree = CodeTree.of(codes)
        self.width, self.choose = codes.width, choose
        self.n_children = tree.last_child - tree.first_child
        last = np.flatnonzero(self.n_children > 1).max(initial=-1)  # of the prefixes with something to learn
        n_levels = int(np.searchsorted(tree.level_starts, last, "right"))
        self.levels = [_counts(Y, tree, level) for level in range(1, n_levels + 1)]
        begins = tree.level_starts[1 : n_levels + 1]
        parents = [tree.parent[counts.indices + begin] for counts, begin in zip(self.levels, begins, strict=True)]
        self.tokens = sum(int((self.n_children[nodes] > 1).sum()) for nodes in parents)

    def loss(self, writer: Writer, memory: Memory, rows: Ints) -> tuple[Tensor, int]:
        """The loss on some documents as they were read, their mean; and how many digits were to be written."""
        a, tree = writer.vector(memory), self.tree
        documents, nodes = np.arange(len(rows)), np.zeros(len(rows), np.int64)
        known, which, p = np.zeros(1, np.int64), nodes, writer.blank(1)  # the prefixes of the batch, and their states
        total, written = torch.zeros(()), 0
        for level, counts in enumerate(self.levels):
            below = counts[rows]
            owner = np.repeat(np.arange(len(rows)), np.diff(below.indptr))
            child = below.indices + tree.level_starts[level + 1]
            parent = tree.parent[child]
            pair = np.searchsorted(documents * tree.n_nodes + nodes, owner * tree.n_nodes + parent)
            is_open = self.n_children[nodes] > 1
            if is_open.any():
                asked = np.cumsum(is_open) - 1
                taught = is_open[pair]
                truth = torch.zeros(int(is_open.sum()), self.width)
                truth[asked[pair[taught]], tree.digit[child[taught]]] = torch.from_numpy(below.data[taught])
                gates, priors = writer.gates[level](p), writer.priors[level](p)
                mine = which[is_open]
                scores = writer.outputs[level](a[documents[is_open]] * gates[mine]) + priors[mine]
                total = total + self._lost(scores, truth, torch.from_numpy(allowed(tree, known, self.width)[mine]))
                written += int(taught.sum())
            documents, nodes = owner, child
            if level + 1 < len(self.levels):
                above = known
                known, which = np.unique(nodes, return_inverse=True)
                digits = torch.from_numpy(tree.digit[known].astype(np.int64))
                p = p[np.searchsorted(above, tree.parent[known])] + writer.of_digits(digits, level)
        return total / len(rows), written

    def _lost(self, scores: Tensor, truth: Tensor, exists: Tensor) -> Tensor:
        if self.choose:
            return -(scores.masked_fill(~exists, -1e9).log_softmax(1) * truth).sum()
        return binary_cross_entropy_with_logits(scores, truth.clamp(max=1.0), exists.float(), reduction="sum")


class SequenceLesson(Lesson):
    """The codes of a document's labels, written one after the other in one order, and the end."""

    def __init__(self, codes: Codes, Y: Csr, order: str, rng: np.random.Generator) -> None:
        self.tree, self.width = CodeTree.of(codes), codes.width
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        keys = {"frequent": -counts, "rare": counts, "random": rng.permutation(Y.shape[1])}
        by_place = np.argsort(keys[order], kind="stable")
        place = np.argsort(by_place)
        ordered = sp.csr_matrix((Y.data, place[Y.indices], Y.indptr), shape=Y.shape).sorted_indices()
        labels, owner = by_place[ordered.indices], np.repeat(np.arange(Y.shape[0]), np.diff(ordered.indptr))
        once = np.sort(np.unique(owner * self.tree.n_nodes + self.tree.leaf_of[labels], return_index=True)[1])
        self.labels = labels[once]  # of those that share a code the first: no code is written twice
        self.ends = np.append(0, np.cumsum(np.bincount(owner[once], minlength=Y.shape[0])))
        self.digits = codes.digits.astype(np.int64)
        self.nodes = self.tree.ancestors().astype(np.int64)  # (n_labels, digits + 1)
        self.tokens = int(np.minimum(np.diff(self.ends), LONGEST).sum()) * codes.n_digits

    def loss(self, writer: Writer, memory: Memory, rows: Ints) -> tuple[Tensor, int]:
        """The loss on some documents as they were read, their mean; and how many digits were to be written."""
        sizes = np.minimum(np.diff(self.ends)[rows], LONGEST)
        there = np.arange(max(sizes.max(), 1)) < sizes[:, None]  # (n, longest)
        at = np.repeat(self.ends[rows], sizes) + np.concatenate([np.arange(size) for size in sizes])
        labels = np.zeros(there.shape, np.int64)
        labels[there] = self.labels[at]
        digits = torch.from_numpy(self.digits[labels])  # (n, longest, digits)
        vectors = [writer.of_digits(digits[:, :, place], place) for place in range(self.tree.digits)]
        history = torch.cat([writer.blank(len(rows), 1), writer.after_codes(torch.stack(vectors).sum(0))], 1)
        a, p, total = writer.attend(memory, history), history, torch.zeros(())
        for place in range(self.tree.digits):
            if place == 1:
                a, p = a[:, :-1], p[:, :-1]
            if place:
                p = p + vectors[place - 1]
            scores = writer.scores(a, p, place)  # (n, longest [+ 1], width [+ 1])
            nodes, truth, asked = self.nodes[labels, place], self.digits[labels, place], there
            if place == 0:  # one more step, where the end may be written, though not before a label
                nodes = np.zeros(scores.shape[:2], np.int64)
                truth = np.append(np.where(there, truth, self.width), np.full((len(rows), 1), self.width), axis=1)
                asked = np.arange(scores.shape[1]) <= sizes[:, None]
            known, which = np.unique(nodes, return_inverse=True)
            exists = torch.from_numpy(allowed(self.tree, known, scores.shape[2]))[which.reshape(nodes.shape)]
            if place == 0:
                exists[:, 1:, self.width] = True
                exists[:, 0, self.width] = torch.from_numpy(sizes == 0)
            chosen = scores.masked_fill(~exists, -1e9).log_softmax(2)
            chosen = chosen.gather(2, torch.from_numpy(truth)[:, :, None])[:, :, 0]
            total = total - chosen[torch.from_numpy(asked)].sum()
        return total / len(rows), int(sizes.sum()) * self.tree.digits


def allowed(tree: CodeTree, nodes: Longs, width: int) -> Bools:
    """Which digits exist after some prefixes. Shape (len(nodes), width)."""
    first, last = tree.first_child[nodes], tree.last_child[nodes]
    found = np.zeros((len(nodes), width), bool)
    sizes = last - first
    children = np.repeat(first - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    found[np.repeat(np.arange(len(nodes)), sizes), tree.digit[children]] = True
    return found


def _counts(Y: Csr, tree: CodeTree, level: int) -> Csr:
    """How many labels of each document are below each node of a level. Shape (n, nodes of the level)."""
    begin, end = tree.level_starts[level : level + 2]
    nodes = tree.ancestors()[:, level] - begin
    return merged(Y, nodes, end - begin)


def merged(Y: Csr, group: Ints, n_groups: int) -> Csr:
    """How many labels of each group each document has. Shape (n, n_groups)."""
    below = sp.csr_matrix((Y.data.copy(), group[Y.indices], Y.indptr.copy()), shape=(Y.shape[0], n_groups))
    below.sum_duplicates()  # in place, so of copies
    return below
