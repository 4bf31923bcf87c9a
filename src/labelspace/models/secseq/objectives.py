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
from labelspace.models.secseq.decoder import CodeDecoder, Memory
from labelspace.types import Bools, Csr, Doubles, Ints, Longs

ORDERS = ("frequent", "rare", "random")
LONGEST = 50  # labels of a document that are written one after the other


class Objective(ABC):
    """The codes of the labels of all training documents."""

    tree: CodeTree
    tokens: int
    """Digits that are taught in one pass over them."""

    @abstractmethod
    def loss(self, writer: CodeDecoder, memory: Memory, rows: Ints) -> tuple[Tensor, int]:
        """The loss on some documents as they were read, their mean; and how many digits were to be written."""

    @abstractmethod
    def begin(self, writer: CodeDecoder) -> None:
        """Let the biases of digits begin at what is frequent, so that it need not be learned."""


class PrefixObjective(Objective):
    """After each prefix of a document's labels, which digits follow.

    Each digit is right or wrong by itself (binary cross-entropy), or, with ``choose``, one label is drawn and its
    digits written (cross-entropy, summed over its labels). Where only one digit exists there is nothing to learn.
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

    def loss(self, writer: CodeDecoder, memory: Memory, rows: Ints) -> tuple[Tensor, int]:
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

    def begin(self, writer: CodeDecoder) -> None:
        """Give each digit the log-odds of following where it can."""
        tree = self.tree
        above = np.array([self.levels[0].shape[0]] if self.levels else [])  # documents of each node of a level
        for level, table in enumerate(self.levels):
            nodes = np.arange(*tree.level_starts[level + 1 : level + 3])
            here = np.bincount(table.indices, minlength=len(nodes))
            failed = above[tree.parent[nodes] - tree.level_starts[level]] - here
            among = self.n_children[tree.parent[nodes]] > 1  # others: a digit without them is certain
            digits = tree.digit[nodes[among]]
            odds = [np.bincount(digits, times[among], self.width) + 0.5 for times in (here, failed)]
            _set_bias(writer, level, np.log(odds[0] / odds[1]))
            above = here

    def _lost(self, scores: Tensor, truth: Tensor, exists: Tensor) -> Tensor:
        if self.choose:
            return -(scores.masked_fill(~exists, -1e9).log_softmax(1) * truth).sum()
        return binary_cross_entropy_with_logits(scores, truth.clamp(max=1.0), exists.float(), reduction="sum")


class SequenceObjective(Objective):
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

    def begin(self, writer: CodeDecoder) -> None:
        """Give each digit, and the end, the logarithm of how often it is written."""
        for place, column in enumerate(self.digits.T):
            times = np.bincount(column[self.labels], minlength=self.width) + 0.5
            times = np.append(times, len(self.ends) - 0.5) if place == 0 else times
            _set_bias(writer, place, np.log(times / len(self.ends)))

    def loss(self, writer: CodeDecoder, memory: Memory, rows: Ints) -> tuple[Tensor, int]:
        """The loss on some documents as they were read, their mean; and how many digits were to be written."""
        document, step, label = self._steps(rows)
        at = torch.from_numpy(document), torch.from_numpy(step)
        real = label >= 0
        digits, nodes = self.digits[label[real]], self.nodes[label[real]]
        vectors = [writer.of_digits(torch.from_numpy(digits[:, place]), place) for place in range(self.tree.digits)]
        codes = writer.blank(len(rows), int(step.max(initial=0)) + 1)
        codes = codes.index_put((at[0][real], at[1][real]), torch.stack(vectors).sum(0))
        history = torch.cat([writer.blank(len(rows), 1), writer.after_codes(codes)], 1)
        a, p = writer.attend(memory, history)[at], history[at]  # a row a step
        ends = np.where(real, 0, self.width)
        ends[real] = digits[:, 0]
        total = self._lost(writer.scores(a, p, 0), np.zeros(len(label), np.int64), ends, step > 0)
        a, p = a[real], p[real]
        for place in range(1, self.tree.digits):
            p = p + vectors[place - 1]
            total = total + self._lost(writer.scores(a, p, place), nodes[:, place], digits[:, place])
        return total / len(rows), int(real.sum()) * self.tree.digits

    def _steps(self, rows: Ints) -> tuple[Longs, Longs, Longs]:
        """What is written of some documents: of which one, as its how-manieth, and which label; -1 is the end.

        There is no end where labels are left out, and nothing at all to write of a document without labels.
        """
        sizes = np.diff(self.ends)[rows]
        taught = np.minimum(sizes, LONGEST)
        steps = taught + ((sizes > 0) & (sizes <= LONGEST))
        document = np.repeat(np.arange(len(rows)), steps)
        step = np.arange(len(document)) - (np.cumsum(steps) - steps)[document]
        label = np.full(len(document), -1)
        real = step < taught[document]
        label[real] = self.labels[(self.ends[rows][document] + step)[real]]
        return document, step, label

    def _lost(self, scores: Tensor, nodes: Longs, truth: Longs, may_end: Bools | None = None) -> Tensor:
        """The cross-entropy of digits after some prefixes, among those that exist."""
        known, which = np.unique(nodes, return_inverse=True)
        exists = allowed(self.tree, known, scores.shape[1])[which]
        if may_end is not None:
            exists[:, self.width] = may_end
        chances = scores.masked_fill(torch.from_numpy(~exists), -1e9).log_softmax(1)
        return -chances[torch.arange(len(truth)), torch.from_numpy(truth)].sum()


def _set_bias(writer: CodeDecoder, place: int, values: Doubles) -> None:
    with torch.no_grad():
        writer.outputs[place].bias.copy_(torch.from_numpy(values))  # type: ignore[operator]


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
