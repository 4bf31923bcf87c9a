"""From a trained decoder to labels: the codes of each document, and the labels at their leaves.

The decoder proposes codes by beam search or sampling: along the table of all prefixes (``score_prefixes``) for targets
``set`` and ``label``, as whole sequences (``sequence_search``) for target ``sequence``. A leaf of the code tree has the
labels with that code, each with its share of the code's training documents, or another weight (``leaf_histogram``). The
scores of several trees are averaged; counts are summed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch  # so import this module only after ``errors.require``

from labelspace.kernels.beam_search import average_tree_lists
from labelspace.kernels.quantize import Int8s
from labelspace.kernels.threads import run_blocks, search_in_blocks
from labelspace.labels.codes import CodeTree
from labelspace.models.secseq.config import EncoderInputs
from labelspace.models.secseq.kernels import CodeScores, sample_codes, search_codes
from labelspace.models.secseq.network import CodeDecoder, EncoderStates, SequenceDecoder
from labelspace.models.secseq.objectives import group_counts
from labelspace.models.secseq.sequence_search import Generation, generate_free, generate_sequences
from labelspace.training.sparse_layers import embedded
from labelspace.types import Csr, Doubles, Floats, Ints, Longs, TopK

if TYPE_CHECKING:
    from labelspace.models.secseq.model import SequenceModel

ROW_BLOCK = 64  # documents per task: the hidden states of all words of more documents would take too much memory
LABELS_PER_TREE = 50  # labels of each of several trees, at least: the mean may rank a label first that no tree does
NODE_BLOCK = 4096  # prefixes whose states are computed at once, which bounds memory


class LabelDecoder:
    """The trained decoder of one code tree, ready to predict.

    ``embeddings`` (n_features or n_tokens, word_dim) have a scale per row; ``label_shares`` is (n_labels,).
    """

    def __init__(
        self, decoder: SequenceDecoder, tree: CodeTree, label_shares: Floats, embeddings: Int8s | Floats, scales: Floats
    ) -> None:
        self.decoder, self.tree, self.label_shares = decoder, tree, label_shares
        self.embeddings, self.scales = embeddings, scales
        self.prefixes: CodeScores | None = None
        if isinstance(decoder, CodeDecoder) and not decoder.config.sequences:
            self.prefixes = score_prefixes(decoder, tree, label_shares)

    def topk(self, inputs: EncoderInputs, start: int, stop: int, k: int, params: SequenceModel) -> TopK:
        """Return the k best labels of documents start to stop - 1."""
        if self.prefixes is None:
            return TopK.from_sparse(self.histogram(inputs, start, stop, params), k)
        assert isinstance(self.decoder, CodeDecoder)
        with torch.no_grad():
            contexts = self.decoder.initial_context(self._encode(inputs, start, stop)).numpy()
        softmax, seed = params.target == "label", _seed(params)
        top = TopK.empty(len(contexts), k)
        if seed is None:
            beam_size = min(params.beam_size, len(self.prefixes.label))
            search_codes(contexts, self.prefixes, softmax, beam_size, top.labels, top.scores)
        else:
            sample_codes(contexts, self.prefixes, softmax, params.n_samples, seed, top.labels, top.scores)
        return top

    def histogram(self, inputs: EncoderInputs, start: int, stop: int, params: SequenceModel) -> Csr:
        """Score, or count, the labels in the sequences of documents start to stop - 1. Shape (n, n_labels)."""
        seed = _seed(params)
        m = params.beam_size if seed is None else params.n_samples
        generate = generate_sequences if params.constrained else generate_free
        with torch.no_grad():
            encoder_states = self._encode(inputs, start, stop)
            options = Generation(m, params.max_sequence * self.tree.code_length, seed)
            leaves, weights = generate(self.decoder, encoder_states, self.tree, options, params.scores == "count")
        return leaf_histogram(leaves, weights, self.tree, self.label_shares)

    def _encode(self, inputs: EncoderInputs, start: int, stop: int) -> EncoderStates:
        X, starts = inputs.table, inputs.starts[start : stop + 1]
        rows = (X.data, X.indices, X.indptr[starts[0] : starts[-1] + 1])
        words = embedded(rows, self.embeddings, self.scales, None, block=len(rows[2]))
        return self.decoder.encode(torch.from_numpy(words), np.diff(starts).astype(np.int32))


def _seed(params: SequenceModel) -> int | None:
    return params.random_state if params.decoding == "sampling" else None


def predict_topk(decoders: list[LabelDecoder], inputs: EncoderInputs, k: int, params: SequenceModel) -> TopK:
    """Return the k labels of each document with the best mean score, or count, over all trees."""
    if params.target == "sequence" and params.scores == "count":

        def count(rows: slice, labels: Ints, scores: Floats) -> None:
            counts = [decoder.histogram(inputs, rows.start, rows.stop, params) for decoder in decoders]
            best = TopK.from_sparse(sum(counts), k)
            labels[:], scores[:] = best.labels, best.scores

        return search_in_blocks(count, inputs.n, k, ROW_BLOCK)
    n_trees = len(decoders)
    n_listed = k if n_trees == 1 else max(k, LABELS_PER_TREE)
    lists, shape = TopK.empty(n_trees * inputs.n, n_listed), (n_trees, inputs.n, n_listed)
    labels, scores = lists.labels.reshape(shape), lists.scores.reshape(shape)

    def predict_block(start: int, stop: int) -> None:
        for tree, decoder in enumerate(decoders):
            top = decoder.topk(inputs, start, stop, n_listed, params)
            labels[tree, start:stop], scores[tree, start:stop] = top.labels, top.scores

    run_blocks(predict_block, inputs.n, ROW_BLOCK)
    if n_trees == 1:
        return lists
    top = TopK.empty(inputs.n, k)
    average_tree_lists(labels, scores, top.labels, top.scores)
    return top


def leaf_counts(kind: str, tree: CodeTree, Y: Csr, of_documents: bool) -> Floats:
    """Return what a label counts at the leaf of its code: its ``shares``, 1 (``labels``), or its ``documents``.

    Shares are those in the documents, or else in the labels, with its code. Shape (n_labels,).
    """
    counts: Doubles = np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float64)
    if kind == "labels":
        counts = np.minimum(counts, 1)
    elif kind == "shares":
        leaves = group_counts(Y, tree.leaf_of, tree.n_nodes).indices if of_documents else tree.leaf_of[Y.indices]
        counts = counts / np.maximum(np.bincount(leaves, minlength=tree.n_nodes)[tree.leaf_of], 1)
    return np.asarray(counts, np.float32)


def leaf_histogram(leaves: Longs, weights: Floats, tree: CodeTree, shares: Floats) -> Csr:
    """Sum over a document's leaves (n, ...) the leaf's weight times the shares of its labels. Shape (n, n_labels)."""
    n, is_leaf, n_leaves = len(leaves), leaves >= 0, len(tree.label_starts) - 1
    rows = np.broadcast_to(np.arange(n)[:, None], (n, leaves[0].size)).reshape(leaves.shape)[is_leaf]
    columns = leaves[is_leaf] - tree.level_starts[-2]
    leaf_weights = sp.csr_matrix((weights[is_leaf], (rows, columns)), shape=(n, n_leaves))
    leaf_labels = sp.csr_matrix((shares[tree.labels], tree.labels, tree.label_starts), shape=(n_leaves, len(shares)))
    return (leaf_weights @ leaf_labels).tocsr()


def score_prefixes(decoder: CodeDecoder, tree: CodeTree, label_shares: Floats) -> CodeScores:
    """Compute the decoder's gates and priors of all prefixes, level by level.

    They do not depend on the document, so the kernels then need the context vector of a document only. Labels are
    leaves; labels that share a code are children of its leaf, with the log-odds of their share.
    """
    first_child, last_child, label, digit, fixed_logit = _add_labels(tree, label_shares)
    n_inner = tree.level_starts[-2]
    branching = np.flatnonzero(last_child[:n_inner] - first_child[:n_inner] > 1)
    gate_row, prior = np.full(len(first_child), -1, np.int32), np.zeros(len(first_child), np.float32)
    gate_row[branching] = np.arange(len(branching))
    gates = np.empty((len(branching), decoder.config.hidden_dim), np.float32)
    with torch.no_grad():
        p = decoder.initial_state(1)
        for level in range(tree.code_length):
            start, stop = tree.level_starts[level : level + 2]
            if start > branching.max(initial=-1):
                break
            blocks, bias = torch.split(p, NODE_BLOCK), decoder.outputs[level].bias
            level_gates = np.concatenate([decoder.gates[level](block).numpy() for block in blocks])
            level_priors = np.concatenate([(decoder.priors[level](block) + bias).numpy() for block in blocks])
            nodes = np.arange(start, stop)[gate_row[start:stop] >= 0]
            gates[gate_row[nodes]] = level_gates[nodes - start]
            children = np.arange(tree.level_starts[level + 1], tree.level_starts[level + 2])
            prior[children] = level_priors[tree.parent[children] - start, digit[children]]
            digits = torch.from_numpy(digit[children].astype(np.int64))
            p = p[tree.parent[children] - start] + decoder.embed_digits(digits, level)
    has_documents = np.repeat(label_shares > 0, tree.code_length + 1)
    seen = np.bincount(tree.ancestors().ravel(), has_documents, tree.n_nodes) > 0
    prior[: tree.n_nodes][~seen] = -np.inf  # no training document has a label below
    code_size = decoder.config.code_size  # without the end token
    outputs = np.stack([layer.weight.detach().numpy()[:code_size] for layer in decoder.outputs])  # type: ignore[operator]
    return CodeScores(outputs, gates, gate_row, digit, prior, fixed_logit, first_child, last_child, label)


def _add_labels(tree: CodeTree, label_shares: Floats) -> tuple[Ints, Ints, Ints, Ints, Floats]:
    """Add labels as leaves: return first and last child, label, digit, and the logits of nodes that are not scored."""
    n_labels = np.diff(tree.label_starts)
    leaves = np.arange(tree.n_nodes - len(n_labels), tree.n_nodes)
    label = np.full(tree.n_nodes, -1, np.int32)
    label[leaves[n_labels == 1]] = tree.labels[tree.label_starts[:-1][n_labels == 1]]
    shared_leaves = leaves[n_labels > 1]
    sharing = tree.labels[np.repeat(n_labels, n_labels) > 1]  # labels that share a code
    first_child, last_child = tree.first_child.copy(), tree.last_child.copy()
    last_child[shared_leaves] = tree.n_nodes + np.cumsum(n_labels[n_labels > 1])
    first_child[shared_leaves] = last_child[shared_leaves] - n_labels[n_labels > 1]
    label, digit = np.append(label, sharing), np.append(tree.digit, np.zeros(len(sharing), np.int32))
    certain = np.full(tree.n_nodes, np.inf, np.float32)  # a digit without siblings
    shares = label_shares[sharing]
    with np.errstate(divide="ignore"):
        log_odds = np.log(shares / (1.0 - np.minimum(shares, 1.0)))
    log_odds[shares <= 0] = -np.inf
    return first_child, last_child, label, digit, np.append(certain, log_odds).astype(np.float32)
