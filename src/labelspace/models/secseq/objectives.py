"""Training objectives: the targets that a decoder learns from each document's labels, and the loss.

``PrefixObjective``: after each prefix of the labels' codes, the digits that follow. ``SequenceObjective``: the codes of
all labels as one sequence. Both have the code ``tree`` and ``n_tokens``, the target digits of all documents.
"""

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp
import torch  # so import this module only after ``errors.require``
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from labelspace.labels.codes import Codes, CodeTree
from labelspace.models.secseq.decoder import CodeDecoder, EncoderStates
from labelspace.types import Bools, Csr, Doubles, Ints, Longs

MAX_LABELS = 50  # labels of a document in its sequence
MASKED = -1e9  # logit of a digit that does not exist


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

    def loss(self, decoder: CodeDecoder, encoder_states: EncoderStates, rows: Ints) -> tuple[Tensor, int]:
        """The mean loss over a batch of documents, and the number of its target digits."""
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

    def init_biases(self, decoder: CodeDecoder) -> None:
        """Start each digit at the log-odds of following a prefix where it can: these need not be learned then."""
        tree = self.tree
        above = np.array([self.levels[0].shape[0]] if self.levels else [])  # documents of each node of a level
        for level, counts in enumerate(self.levels):
            nodes = np.arange(*tree.level_starts[level + 1 : level + 3])
            positive = np.bincount(counts.indices, minlength=len(nodes))
            negative = above[tree.parent[nodes] - tree.level_starts[level]] - positive
            has_siblings = self.n_children[tree.parent[nodes]] > 1  # else the digit is certain
            digits = tree.digit[nodes[has_siblings]]
            n_positive = np.bincount(digits, positive[has_siblings], self.code_size) + 0.5
            n_negative = np.bincount(digits, negative[has_siblings], self.code_size) + 0.5
            _set_biases(decoder, level, np.log(n_positive / n_negative))
            above = positive

    def _cross_entropy(self, logits: Tensor, truth: Tensor, mask: Tensor) -> Tensor:
        if self.softmax:
            return -(logits.masked_fill(~mask, MASKED).log_softmax(1) * truth).sum()
        return binary_cross_entropy_with_logits(logits, truth.clamp(max=1.0), mask.float(), reduction="sum")


class SequenceObjective:
    """The codes of a document's labels as one sequence in a fixed order, and its end (eq. 3 of the paper)."""

    def __init__(self, codes: Codes, Y: Csr, label_order: str, rng: np.random.Generator) -> None:
        self.tree, self.code_size = CodeTree.from_codes(codes), codes.code_size
        counts = np.bincount(Y.indices, minlength=Y.shape[1])
        keys = {"frequent": -counts, "rare": counts, "random": rng.permutation(Y.shape[1])}
        by_rank = np.argsort(keys[label_order], kind="stable")
        ordered = sp.csr_matrix((Y.data, np.argsort(by_rank)[Y.indices], Y.indptr), shape=Y.shape).sorted_indices()
        labels, document = by_rank[ordered.indices], np.repeat(np.arange(Y.shape[0]), np.diff(ordered.indptr))
        leaves = document * self.tree.n_nodes + self.tree.leaf_of[labels]
        first = np.sort(np.unique(leaves, return_index=True)[1])
        self.labels = labels[first]  # of labels that share a code the first: no code occurs twice in a sequence
        self.starts = np.append(0, np.cumsum(np.bincount(document[first], minlength=Y.shape[0])))
        self.digits = codes.digits.astype(np.int64)
        self.nodes = self.tree.ancestors().astype(np.int64)  # (n_labels, code_length + 1)
        self.n_tokens = int(np.minimum(np.diff(self.starts), MAX_LABELS).sum()) * codes.code_length

    def init_biases(self, decoder: CodeDecoder) -> None:
        """Start each digit, and the end, at the logarithm of its frequency."""
        for d, column in enumerate(self.digits.T):
            counts = np.bincount(column[self.labels], minlength=self.code_size) + 0.5
            counts = np.append(counts, len(self.starts) - 0.5) if d == 0 else counts
            _set_biases(decoder, d, np.log(counts / len(self.starts)))

    def loss(self, decoder: CodeDecoder, encoder_states: EncoderStates, rows: Ints) -> tuple[Tensor, int]:
        """The mean loss over a batch of documents, and the number of its target digits."""
        document, step, label = self._targets(rows)
        index = torch.from_numpy(document), torch.from_numpy(step)
        is_code = label >= 0  # else the end
        digits, nodes = self.digits[label[is_code]], self.nodes[label[is_code]]
        embeddings = [decoder.embed_digits(torch.from_numpy(digits[:, d]), d) for d in range(self.tree.code_length)]
        codes = decoder.initial_state(len(rows), int(step.max(initial=0)) + 1)
        codes = codes.index_put((index[0][is_code], index[1][is_code]), torch.stack(embeddings).sum(0))
        h = torch.cat([decoder.initial_state(len(rows), 1), decoder.code_states(codes)], 1)
        a, p = decoder.attend(encoder_states, h)[index], h[index]  # a row per step
        first, root = np.full(len(label), self.code_size), np.zeros(len(label), np.int64)
        first[is_code] = digits[:, 0]
        total = self._cross_entropy(decoder.digit_logits(a, p, 0), root, first, step > 0)
        a, p = a[is_code], p[is_code]
        for d in range(1, self.tree.code_length):
            p = p + embeddings[d - 1]
            total = total + self._cross_entropy(decoder.digit_logits(a, p, d), nodes[:, d], digits[:, d])
        return total / len(rows), int(is_code.sum()) * self.tree.code_length

    def _targets(self, rows: Ints) -> tuple[Longs, Longs, Longs]:
        """The steps of a batch of sequences: document, number of the step, and label; -1 is the end.

        A sequence that is cut at ``MAX_LABELS`` has no end, and a document without labels has no steps.
        """
        n_labels = np.diff(self.starts)[rows]
        n_codes = np.minimum(n_labels, MAX_LABELS)
        n_steps = n_codes + ((n_labels > 0) & (n_labels <= MAX_LABELS))
        document = np.repeat(np.arange(len(rows)), n_steps)
        step = np.arange(len(document)) - (np.cumsum(n_steps) - n_steps)[document]
        label = np.full(len(document), -1)
        is_code = step < n_codes[document]
        label[is_code] = self.labels[(self.starts[rows][document] + step)[is_code]]
        return document, step, label

    def _cross_entropy(self, logits: Tensor, nodes: Longs, truth: Longs, may_end: Bools | None = None) -> Tensor:
        """The cross-entropy of the digits after some prefixes, among those that exist."""
        prefixes, prefix_of = np.unique(nodes, return_inverse=True)
        mask = digit_mask(self.tree, prefixes, logits.shape[1])[prefix_of]
        if may_end is not None:
            mask[:, self.code_size] = may_end
        log_probabilities = logits.masked_fill(torch.from_numpy(~mask), MASKED).log_softmax(1)
        return -log_probabilities[torch.arange(len(truth)), torch.from_numpy(truth)].sum()


Objective: TypeAlias = PrefixObjective | SequenceObjective


def build_objective(target: str, codes: Codes, Y: Csr, label_order: str, seed: list[int]) -> Objective:
    """The objective of a ``target``; ``seed`` is that of a random label order."""
    if target == "sequence":
        return SequenceObjective(codes, Y, label_order, np.random.default_rng(seed))
    return PrefixObjective(codes, Y, softmax=target == "label")


def _set_biases(decoder: CodeDecoder, d: int, values: Doubles) -> None:
    with torch.no_grad():
        decoder.outputs[d].bias.copy_(torch.from_numpy(values))  # type: ignore[operator]


def digit_mask(tree: CodeTree, nodes: Longs, width: int) -> Bools:
    """Which digits exist after each of some prefixes. Shape (len(nodes), width)."""
    first, n_children = tree.first_child[nodes], tree.last_child[nodes] - tree.first_child[nodes]
    children = np.repeat(first - np.cumsum(n_children) + n_children, n_children) + np.arange(n_children.sum())
    mask = np.zeros((len(nodes), width), bool)
    mask[np.repeat(np.arange(len(nodes)), n_children), tree.digit[children]] = True
    return mask


def group_counts(Y: Csr, group: Ints, n_groups: int) -> Csr:
    """The number of labels of each group per document. Shape (n, n_groups)."""
    counts = sp.csr_matrix((Y.data.copy(), group[Y.indices], Y.indptr.copy()), shape=(Y.shape[0], n_groups))
    counts.sum_duplicates()  # in place, so on copies
    return counts
