"""From a trained writer of codes to labels: down the tree of codes with a beam or by chance, or along whole sequences.

At the end of a code stand the labels that have it, with the share of the code's documents that carry each.

This module needs torch: import it only where ``errors.require`` has been asked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import pad

from labelspace.kernels.code_search import draw_codes, search_codes
from labelspace.kernels.quantize import Bytes
from labelspace.kernels.random_numbers import uniform
from labelspace.kernels.sparse_layers import embed_rows
from labelspace.labels.codes import CodeTree
from labelspace.models.secseq.decoder import CodeDecoder, Memory
from labelspace.models.secseq.encoder_inputs import EncoderInputs
from labelspace.models.secseq.objectives import LONGEST, allowed, merged
from labelspace.types import Csr, Floats, Ints, Longs, TopK

NODE_BLOCK = 4096  # prefixes whose states are computed at once


@dataclass(frozen=True)
class DecodingOptions:
    """How labels are found."""

    target: str  # what was learned: "set", "label" or "sequence"
    sampling: bool
    beam: int
    samples: int
    seed: int  # of what is drawn


@dataclass(frozen=True)
class Decoder:
    """A tree of codes and who writes them, ready to answer."""

    writer: CodeDecoder
    tree: CodeTree
    share: Floats  # (n_labels,)
    prefixes: Prefixes | None  # None where sequences are written

    @classmethod
    def of(cls, writer: CodeDecoder, tree: CodeTree, share: Floats) -> Decoder:
        """With what can be computed before a document is seen."""
        return cls(writer, tree, share, None if writer.shape.sequences else Prefixes.of(writer, tree, share))

    def answer(
        self,
        documents: EncoderInputs,
        start: int,
        stop: int,
        vectors: Bytes | Floats,
        scales: Floats,
        listed: int,
        how: DecodingOptions,
    ) -> TopK:
        """The best labels of documents start..stop; their features or words have these vectors, times scales."""
        table, starts = documents.table, documents.starts[start : stop + 1]
        sizes, ends = np.diff(starts).astype(np.int32), table.indptr[starts[0] : starts[-1] + 1]
        embedded = np.empty((len(ends) - 1, vectors.shape[1]), np.float32)
        zeros = np.zeros(vectors.shape[1], np.float32)
        embed_rows(table.data, table.indices, ends, 0, len(embedded), vectors, scales, zeros, embedded)
        with torch.no_grad():
            memory = self.writer.read(torch.from_numpy(embedded), sizes)
            if self.prefixes is None:
                several, seed = (how.samples, how.seed) if how.sampling else (how.beam, None)
                leaves, weights = write_sequences(self.writer, memory, self.tree, several, seed)
                return histogram(leaves, weights, self.tree, self.share, listed)
            vector = self.writer.vector(memory).numpy()
        choose = how.target == "label"
        if how.sampling:
            return self.prefixes.draw(vector, choose, how.samples, listed, how.seed)
        return self.prefixes.search(vector, choose, how.beam, listed)


def shares(tree: CodeTree, Y: Csr, of_documents: bool) -> Floats:
    """Of the documents that have a label's code, which share has the label; or of all labels on them."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    on_leaf = np.bincount(tree.leaf_of, weights=counts, minlength=tree.n_nodes)
    if of_documents:
        on_leaf = np.bincount(merged(Y, tree.leaf_of, tree.n_nodes).indices, minlength=tree.n_nodes)
    found: Floats = (counts / np.maximum(on_leaf[tree.leaf_of], 1)).astype(np.float32)
    return found


@dataclass(frozen=True)
class Prefixes:
    """All prefixes that exist, with what a writer makes of each: what the kernels of ``codes`` go down."""

    outputs: Floats  # (digits, width, hidden)
    gates: Floats  # (prefixes with several digits after them, hidden)
    gate: Ints  # (n_nodes,) the place of a prefix there, or -1
    digit: Ints
    prior: Floats  # (n_nodes,)
    fixed: Floats  # (n_nodes,)
    first_child: Ints
    last_child: Ints
    label: Ints

    @classmethod
    def of(cls, writer: CodeDecoder, tree: CodeTree, share: Floats) -> Prefixes:
        """The states of all prefixes, level by level; labels that share a code become children of its leaf."""
        first, last, label, digit, odds = _with_labels(tree, share)
        n_children = last - first
        branches = np.flatnonzero(n_children[: tree.level_starts[-2]] > 1)  # leaves do not branch
        gate = np.full(len(first), -1, np.int32)
        gate[branches] = np.arange(len(branches))
        gates = np.empty((len(branches), writer.shape.hidden), np.float32)
        prior = np.zeros(len(first), np.float32)
        deepest = branches.max(initial=-1)
        with torch.no_grad():
            p = writer.blank(1)
            for level in range(tree.digits):
                begin, end = tree.level_starts[level : level + 2]
                if begin > deepest:
                    break
                gates_here, priors_here = _by_blocks(writer, p, level)
                mine = np.arange(begin, end)[gate[begin:end] >= 0]
                gates[gate[mine]] = gates_here[mine - begin]
                children = np.arange(tree.level_starts[level + 1], tree.level_starts[level + 2])
                prior[children] = priors_here[tree.parent[children] - begin, digit[children]]
                following = torch.from_numpy(digit[children].astype(np.int64))
                p = p[tree.parent[children] - begin] + writer.of_digits(following, level)
        seen = np.bincount(tree.ancestors().ravel(), np.repeat(share > 0, tree.digits + 1), tree.n_nodes) > 0
        prior[: tree.n_nodes][~seen] = -np.inf  # there is no document to suggest it by
        outputs = np.stack([layer.weight.detach().numpy()[: writer.shape.width] for layer in writer.outputs])  # type: ignore[operator]
        return cls(outputs, gates, gate, digit, prior, odds, first, last, label)

    def search(self, documents: Floats, choose: bool, beam: int, listed: int) -> TopK:
        """The best labels of documents (n, hidden) by a beam."""
        top = TopK.empty(len(documents), listed)
        search_codes(
            documents, self.outputs, self.gates, self.gate, self.digit, self.prior, self.fixed, self.first_child,
            self.last_child, self.label, choose, beam, top.labels, top.scores,
        )  # fmt: skip
        return top

    def draw(self, documents: Floats, choose: bool, samples: int, listed: int, seed: int) -> TopK:
        """The labels of documents (n, hidden) that are drawn most often."""
        top = TopK.empty(len(documents), listed)
        draw_codes(
            documents, self.outputs, self.gates, self.gate, self.digit, self.prior, self.fixed, self.first_child,
            self.last_child, self.label, choose, samples, seed, top.labels, top.scores,
        )  # fmt: skip
        return top


def _with_labels(tree: CodeTree, share: Floats) -> tuple[Ints, Ints, Ints, Ints, Floats]:
    """The tree with labels at its ends: first and last child, label, digit, and the log-odds of what is not scored.

    A leaf is the label that has its code; of several, each is a child of the leaf.
    """
    n_leaves = len(tree.label_starts) - 1
    leaves = np.arange(tree.n_nodes - n_leaves, tree.n_nodes)
    sizes = np.diff(tree.label_starts)
    label = np.full(tree.n_nodes, -1, np.int32)
    label[leaves[sizes == 1]] = tree.labels[tree.label_starts[:-1][sizes == 1]]
    crowded = leaves[sizes > 1]
    shared = tree.labels[np.repeat(sizes, sizes) > 1]
    first, last = tree.first_child.copy(), tree.last_child.copy()
    last[crowded] = tree.n_nodes + np.cumsum(sizes[sizes > 1])
    first[crowded] = last[crowded] - sizes[sizes > 1]
    label, digit = np.append(label, shared), np.append(tree.digit, np.zeros(len(shared), np.int32))
    alone = np.full(tree.n_nodes, np.inf, np.float32)  # a digit without others is certain
    seen = share[shared] > 0
    with np.errstate(divide="ignore"):
        odds = np.log(share[shared] / (1.0 - np.minimum(share[shared], 1.0)))
    odds[~seen] = -np.inf
    return first, last, label, digit, np.append(alone, odds).astype(np.float32)


def _by_blocks(writer: CodeDecoder, p: Tensor, level: int) -> tuple[Floats, Floats]:
    """The gates and priors of states, some at a time."""
    bias, blocks = writer.outputs[level].bias, torch.split(p, NODE_BLOCK)
    priors = [(writer.priors[level](block) + bias).numpy() for block in blocks]
    return np.concatenate([writer.gates[level](block).numpy() for block in blocks]), np.concatenate(priors)


@dataclass
class Written:
    """Sequences of codes as far as they are written: several for each document."""

    scores: Tensor  # (n, several) logarithms of their chances
    history: Tensor  # (n, several, memory) the state after the codes that are written
    context: Tensor  # (n, several, hidden) what the document has to say to it
    p: Tensor  # (n, several, memory)
    nodes: Tensor  # (n, several) the prefix of the code that is being written
    certain: Tensor  # (n, several) the chance of this prefix
    ended: Tensor  # (n, several)
    leaves: Tensor  # (n, several, LONGEST) codes written, or -1
    chances: Tensor  # (n, several, LONGEST) the chance of each when it was written

    @classmethod
    def blank(cls, writer: CodeDecoder, n: int, several: int) -> Written:
        """Nothing is written."""
        memory, hidden = writer.blank(n, several), torch.zeros(n, several, writer.shape.hidden)
        return cls(
            torch.zeros(n, several), memory, hidden, memory, torch.zeros(n, several, dtype=torch.long),
            torch.ones(n, several), torch.zeros(n, several, dtype=torch.bool),
            torch.full((n, several, LONGEST), -1), torch.zeros(n, several, LONGEST),
        )  # fmt: skip

    def take(self, which: Tensor) -> Written:
        """Of each document these sequences (n, several), of which one may stand twice."""
        rows = torch.arange(len(which))[:, None]
        return Written(*(getattr(self, field.name)[rows, which] for field in fields(self)))


def write_sequences(
    writer: CodeDecoder, memory: Memory, tree: CodeTree, several: int, seed: int | None = None
) -> tuple[Longs, Floats]:
    """Write sequences for each document: the most probable ones by a beam, or, with a seed, by chance.

    Returns the leaves that are written (n, several, LONGEST), -1 after the last, and what each counts for: the chance
    of the sequence, of all that are kept, times that of the code in it; of what is drawn, 1 over the number of draws.
    """
    state = Written.blank(writer, len(memory.states), several)
    if seed is None:
        state.scores[:, 1:] = -torch.inf  # all sequences begin as one
    for n_codes in range(LONGEST):
        state.context, state.p = writer.attend(memory, state.history), state.history
        state.nodes, state.certain = torch.zeros_like(state.nodes), torch.ones_like(state.certain)
        for place in range(tree.digits):
            chances = _chances(writer, tree, state, place, n_codes)
            if seed is None:
                which, digits = _best(state.scores, chances)
            else:
                which, digits = _drawn(chances, seed, n_codes * tree.digits + place)
            chosen = chances[torch.arange(len(which))[:, None], which, digits]
            state = state.take(which)
            state.scores = state.scores + chosen
            _put(state, writer, tree, digits, chosen.exp(), place)
        _close(state, writer, tree, n_codes)
        if bool(state.ended.all()):
            break
    counted = (state.leaves >= 0) / several if seed is not None else state.chances * state.scores.softmax(1)[:, :, None]
    return state.leaves.numpy(), counted.numpy()


def _chances(writer: CodeDecoder, tree: CodeTree, state: Written, place: int, n_codes: int) -> Tensor:
    """The logarithms of the chances of each next digit; the last one is the end. Shape (n, several, width + 1)."""
    width = writer.shape.width
    scores = writer.scores(state.context, state.p, place)
    known, which = np.unique(state.nodes.numpy(), return_inverse=True)
    exists = torch.from_numpy(allowed(tree, known, width + 1))[which.reshape(state.nodes.shape)]
    if place == 0:
        exists[:, :, width] = n_codes > 0
    else:
        scores = pad(scores, (0, 1))
    if n_codes:
        _leave_out_written(exists, tree, state, place, n_codes)
    chances = scores.masked_fill(~exists, -torch.inf).log_softmax(2).masked_fill(~exists, -torch.inf)
    chances[state.ended] = -torch.inf
    chances[:, :, width][state.ended] = 0.0
    return chances


def _leave_out_written(exists: Tensor, tree: CodeTree, state: Written, place: int, n_codes: int) -> None:
    """No code twice: digits that lead to codes which are all written do not exist any more."""
    written = state.leaves[:, :, :n_codes].numpy()
    above = written
    for _ in range(tree.digits - 1 - place):
        above = tree.parent[above]
    first, last = above, above + 1
    for _ in range(tree.digits - 1 - place):
        first, last = tree.first_child[first], tree.last_child[last - 1]
    mine = (written >= 0) & (tree.parent[above] == state.nodes.numpy()[:, :, None])
    counts = ((above[:, :, :, None] == above[:, :, None]) & mine[:, :, None]).sum(3)
    full = mine & (counts >= last - first)
    rows, sequences, _ = np.nonzero(full)
    exists[rows, sequences, tree.digit[above[full]]] = False


def _best(scores: Tensor, chances: Tensor) -> tuple[Tensor, Tensor]:
    """The most probable ways to go on: which sequences, and with which digits."""
    where = (scores[:, :, None] + chances).flatten(1).topk(scores.shape[1], 1).indices
    return where // chances.shape[2], where % chances.shape[2]


def _drawn(chances: Tensor, seed: int, step: int) -> tuple[Tensor, Tensor]:
    """Every sequence with a digit by chance, which goes by the seed, the sequence and the step alone."""
    several = chances.shape[1]
    drawn = [uniform(np.uint64((seed * LONGEST * 64 + step) * several + draw)) for draw in range(several)]
    ladder = chances.exp().cumsum(2)
    goals = torch.tensor(drawn, dtype=ladder.dtype)[None, :, None] * ladder[:, :, -1:]
    digits = (ladder <= goals).sum(2).clamp(max=chances.shape[2] - 1)
    return torch.arange(several).expand(len(chances), several), digits


def _put(state: Written, writer: CodeDecoder, tree: CodeTree, digits: Tensor, chances: Tensor, place: int) -> None:
    """Write the next digits; a sequence ends with the one after the last value."""
    state.ended = state.ended | (digits == writer.shape.width)
    known = digits.clamp(max=writer.shape.width - 1)
    state.p = state.p + writer.of_digits(known, place)
    state.certain = state.certain * chances
    nodes, wanted = state.nodes.numpy(), known.numpy()
    below = np.zeros_like(nodes)
    going = ~state.ended.numpy() & np.isfinite(state.scores.numpy())
    below[going] = child_of(tree, nodes[going], wanted[going])
    state.nodes = torch.from_numpy(below)


def _close(state: Written, writer: CodeDecoder, tree: CodeTree, n_codes: int) -> None:
    """The codes that are complete become part of the history."""
    whole = (state.nodes > 0) & ~state.ended
    state.leaves[:, :, n_codes] = torch.where(whole, state.nodes, -1)
    state.chances[:, :, n_codes] = torch.where(whole, state.certain, 0.0)
    codes, before = state.p - state.history, state.history
    after = writer.after_codes(codes.flatten(0, 1)[:, None], before.flatten(0, 1))
    state.history = after.view_as(before)


def child_of(tree: CodeTree, nodes: Longs, digits: Longs) -> Longs:
    """The nodes that are reached by a digit each; it must exist."""
    keys = tree.parent[1:].astype(np.int64) * (tree.digit.max() + 1) + tree.digit[1:]
    found: Longs = 1 + np.searchsorted(keys, nodes * (tree.digit.max() + 1) + digits)
    return found


def histogram(leaves: Longs, weights: Floats, tree: CodeTree, share: Floats, listed: int) -> TopK:
    """The labels of leaves (n, ...) that are written, scored by the sum of what these count for times their share."""
    n = len(leaves)
    there = leaves >= 0
    rows = np.broadcast_to(np.arange(n)[:, None], (n, leaves[0].size)).reshape(leaves.shape)[there]
    places = leaves[there] - tree.level_starts[-2]
    on_leaves = sp.csr_matrix((weights[there], (rows, places)), shape=(n, len(tree.label_starts) - 1))
    shape = (on_leaves.shape[1], len(share))
    of_leaves = sp.csr_matrix((share[tree.labels], tree.labels, tree.label_starts), shape=shape)
    return best_of_rows((on_leaves @ of_leaves).tocsr(), listed)


def best_of_rows(scores: Csr, k: int) -> TopK:
    """The k best of those that each row of a sparse table has, above 0.

    >>> best_of_rows(sp.csr_matrix(np.array([[0.0, 0.2, 0.7], [0.5, 0.0, 0.0]], np.float32)), k=2).labels.tolist()
    [[2, 1], [0, -1]]
    """
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    order = np.lexsort((scores.indices, -scores.data, rows))
    place = np.arange(len(order)) - scores.indptr[rows]  # order keeps rows together
    kept = (place < k) & (scores.data[order] > 0)
    top = TopK.empty(scores.shape[0], k)
    top.labels[rows[kept], place[kept]] = scores.indices[order[kept]]
    top.scores[rows[kept], place[kept]] = scores.data[order[kept]]
    return top
