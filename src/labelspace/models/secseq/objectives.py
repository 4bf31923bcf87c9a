"""Training objectives: the targets that a decoder learns from each document's labels, and the loss.

``PrefixObjective``: after each prefix of the labels' codes, the digits that follow. ``SequenceObjective``: the codes of
all labels as one sequence. Both have the code ``tree`` and ``n_tokens``, the target digits of all documents.
"""

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
import torch  # so import this module only after ``errors.require``
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from labelspace.labels.codes import Codes, CodeTree
from labelspace.models.secseq.network import CodeDecoder, EncoderStates, SequenceDecoder
from labelspace.types import Bools, Csr, Doubles, Ints, Longs, Rng

MASKED = -1e9  # logit of a digit that does not exist; minus infinity times a target of 0 would be NaN


class PrefixObjective:
    """After each prefix of a document's labels, the digits that follow.

    Each digit is a binary target (binary cross-entropy); with ``softmax``, the target is one label drawn at random
    (cross-entropy in expectation: summed over the labels). A prefix with a single possible digit has no loss.
    """

    def __init__(self, codes: Codes, Y: Csr, softmax: bool) -> None:
        self.tree = tree = CodeTree.from_codes(codes)
        self.code_size, self.softmax = codes.code_size, softmax
        self.n_children = tree.last_child - tree.first_child
        last_branching = np.flatnonzero(self.n_children > 1).max(initial=-1)
        n_levels = int(np.searchsorted(tree.level_starts, last_branching, "right"))
        ancestors, starts = tree.ancestors(), tree.level_starts
        self.levels = [  # per document, the number of its labels below each node of a level
            group_counts(Y, ancestors[:, level] - starts[level], starts[level + 1] - starts[level])
            for level in range(1, n_levels + 1)
        ]
        parents = [tree.parent[counts.indices + starts[level]] for level, counts in enumerate(self.levels, 1)]
        self.n_tokens = sum(int((self.n_children[nodes] > 1).sum()) for nodes in parents)

    def loss(self, decoder: SequenceDecoder, encoder_states: EncoderStates, rows: Ints) -> tuple[Tensor, int]:
        """Return the mean loss over a batch of documents, and the number of its target digits."""
        assert isinstance(decoder, CodeDecoder), "others learn sequences"
        a, tree = decoder.initial_context(encoder_states), self.tree
        documents, nodes = np.arange(len(rows)), np.zeros(len(rows), np.int64)  # pairs of a document and a prefix
        prefixes, prefix_of, p = np.zeros(1, np.int64), nodes, decoder.initial_state(1)  # the prefixes of all pairs
        total, n_tokens = torch.zeros(()), 0
        for level, counts in enumerate(self.levels):
            targets = counts[rows]
            document = np.repeat(np.arange(len(rows)), np.diff(targets.indptr))
            child = targets.indices + tree.level_starts[level + 1]
            pair = np.searchsorted(documents * tree.n_nodes + nodes, document * tree.n_nodes + tree.parent[child])
            branches = self.n_children[nodes] > 1
            if branches.any():
                row, is_target = np.cumsum(branches) - 1, branches[pair]
                truth = torch.zeros(int(branches.sum()), self.code_size)
                truth[row[pair[is_target]], tree.digit[child[is_target]]] = torch.from_numpy(targets.data[is_target])
                gates, priors = decoder.gates[level](p), decoder.priors[level](p)
                prefix = prefix_of[branches]
                logits = decoder.outputs[level](a[documents[branches]] * gates[prefix]) + priors[prefix]
                mask = torch.from_numpy(digit_mask(tree, prefixes, self.code_size)[prefix])
                total = total + self._cross_entropy(logits, truth, mask)
                n_tokens += int(is_target.sum())
            documents, nodes = document, child
            if level + 1 < len(self.levels):
                above = prefixes
                prefixes, prefix_of = np.unique(nodes, return_inverse=True)
                digits = torch.from_numpy(tree.digit[prefixes].astype(np.int64))
                p = p[np.searchsorted(above, tree.parent[prefixes])] + decoder.embed_digits(digits, level)
        return total / len(rows), n_tokens

    def init_biases(self, decoder: SequenceDecoder) -> None:
        """Start each digit at the log-odds of following a prefix that it can follow: they need not be learned."""
        tree = self.tree
        above = np.array([self.levels[0].shape[0]] if self.levels else [])  # documents of each node of a level
        positives, negatives = [], []
        for level, counts in enumerate(self.levels):
            nodes = np.arange(*tree.level_starts[level + 1 : level + 3])
            positive = np.bincount(counts.indices, minlength=len(nodes))
            negative = above[tree.parent[nodes] - tree.level_starts[level]] - positive
            has_siblings = self.n_children[tree.parent[nodes]] > 1  # else the digit is certain
            digits = tree.digit[nodes[has_siblings]]
            positives.append(np.bincount(digits, positive[has_siblings], self.code_size) + 0.5)
            negatives.append(np.bincount(digits, negative[has_siblings], self.code_size) + 0.5)
            above = positive
        if decoder.config.shared_outputs and positives:
            positives, negatives = [np.sum(positives, axis=0)], [np.sum(negatives, axis=0)]
        for level, (n_positive, n_negative) in enumerate(zip(positives, negatives, strict=True)):
            _set_biases(decoder, level, np.log(n_positive / n_negative))

    def _cross_entropy(self, logits: Tensor, truth: Tensor, mask: Tensor) -> Tensor:
        if self.softmax:
            return -(logits.masked_fill(~mask, MASKED).log_softmax(1) * truth).sum()
        return binary_cross_entropy_with_logits(logits, truth.clamp(max=1.0), mask.float(), reduction="sum")


class SequenceObjective:
    """The codes of a document's labels as one sequence in a fixed order, and its end (eq. 3 of the paper).

    A sequence is cut after ``max_sequence`` codes. With ``masked`` the softmax of a digit is over the values that exist
    after its prefix, else over all. With ``repeated``, labels that share a code each give it; else it occurs once.
    """

    def __init__(
        self, codes: Codes, Y: Csr, order: str, rng: Rng, max_sequence: int, masked: bool = True, repeated: bool = False
    ) -> None:
        self.tree, self.code_size = CodeTree.from_codes(codes), codes.code_size
        self.max_sequence, self.masked = max_sequence, masked
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        keys = {"frequent": -counts, "rare": counts, "random": rng.permutation(Y.shape[1])}
        by_rank = np.argsort(keys[order], kind="stable")
        ordered = sp.csr_matrix((Y.data, np.argsort(by_rank)[Y.indices], Y.indptr), shape=Y.shape).sorted_indices()
        labels, document = by_rank[ordered.indices], np.repeat(np.arange(Y.shape[0]), np.diff(ordered.indptr))
        leaves = document * self.tree.n_nodes + self.tree.leaf_of[labels]
        kept = slice(None) if repeated else np.sort(np.unique(leaves, return_index=True)[1])
        self.labels = labels[kept]  # of labels that share a code the first, unless it may be repeated
        self.starts = np.append(0, np.cumsum(np.bincount(document[kept], minlength=Y.shape[0])))
        self.digits = codes.digits.astype(np.int64)
        self.nodes = self.tree.ancestors().astype(np.int64)  # (n_labels, code_length + 1)
        self.n_tokens = int(np.minimum(np.diff(self.starts), max_sequence).sum()) * codes.code_length

    def init_biases(self, decoder: SequenceDecoder) -> None:
        """Start each digit, and the end, at the logarithm of its frequency."""
        counts = [np.bincount(column[self.labels], minlength=self.code_size) + 0.5 for column in self.digits.T]
        if decoder.config.shared_outputs:
            counts = [np.sum(counts, axis=0)]
        counts[0] = np.append(counts[0], len(self.starts) - 0.5)
        for d, n_times in enumerate(counts):
            _set_biases(decoder, d, np.log(n_times / len(self.starts)))

    def loss(self, decoder: SequenceDecoder, encoder_states: EncoderStates, rows: Ints) -> tuple[Tensor, int]:
        """Return the mean loss over a batch of documents, and the number of its target digits."""
        document, step, label = self._targets(rows)
        is_code = label >= 0  # else the end
        digits, nodes = self.digits[label[is_code]], self.nodes[label[is_code]]
        first, root = np.full(len(label), self.code_size), np.zeros(len(label), np.int64)
        first[is_code] = digits[:, 0]
        total = torch.zeros(())
        for d, logits in enumerate(decoder.sequence_logits(encoder_states, document, step, is_code, digits)):
            if d == 0:
                total = self._cross_entropy(logits, root, first, step > 0)
            else:
                total = total + self._cross_entropy(logits, nodes[:, d], digits[:, d])
        return total / len(rows), int(is_code.sum()) * self.tree.code_length

    def _targets(self, rows: Ints) -> tuple[Longs, Longs, Longs]:
        """Return the steps of a batch of sequences: document, number of the step, and label; -1 is the end.

        A sequence that is cut at ``max_sequence`` has no end, and a document without labels has no steps.
        """
        n_labels = np.diff(self.starts)[rows]
        n_codes = np.minimum(n_labels, self.max_sequence)
        n_steps = n_codes + ((n_labels > 0) & (n_labels <= self.max_sequence))
        document = np.repeat(np.arange(len(rows)), n_steps)
        step = np.arange(len(document)) - (np.cumsum(n_steps) - n_steps)[document]
        label = np.full(len(document), -1)
        is_code = step < n_codes[document]
        label[is_code] = self.labels[(self.starts[rows][document] + step)[is_code]]
        return document, step, label

    def _cross_entropy(self, logits: Tensor, nodes: Longs, truth: Longs, may_end: Bools | None = None) -> Tensor:
        """Return the cross-entropy of the digits after some prefixes; with ``masked``, among those that exist."""
        if not self.masked:
            return cross_entropy(logits, torch.from_numpy(truth), reduction="sum")
        prefixes, prefix_of = np.unique(nodes, return_inverse=True)
        mask = digit_mask(self.tree, prefixes, logits.shape[1])[prefix_of]
        if may_end is not None:
            mask[:, self.code_size] = may_end
        log_probabilities = logits.masked_fill(torch.from_numpy(~mask), MASKED).log_softmax(1)
        return -log_probabilities[torch.arange(len(truth)), torch.from_numpy(truth)].sum()


Objective: TypeAlias = PrefixObjective | SequenceObjective


def _set_biases(decoder: SequenceDecoder, d: int, values: Doubles) -> None:
    with torch.no_grad():
        decoder.outputs[d].bias.copy_(torch.from_numpy(values))  # type: ignore[operator]


def digit_mask(tree: CodeTree, nodes: Longs, width: int) -> Bools:
    """Return a mask of the digits that exist after each of some prefixes. Shape (len(nodes), width)."""
    first, n_children = tree.first_child[nodes], tree.last_child[nodes] - tree.first_child[nodes]
    children = np.repeat(first - np.cumsum(n_children) + n_children, n_children) + np.arange(n_children.sum())
    mask = np.zeros((len(nodes), width), bool)
    mask[np.repeat(np.arange(len(nodes)), n_children), tree.digit[children]] = True
    return mask


def group_counts(Y: Csr, group: Ints, n_groups: int) -> Csr:
    """Count the labels of each group per document. Shape (n, n_groups)."""
    counts = sp.csr_matrix((Y.data.copy(), group[Y.indices], Y.indptr.copy()), shape=(Y.shape[0], n_groups))
    counts.sum_duplicates()  # in place, so on copies
    return counts
