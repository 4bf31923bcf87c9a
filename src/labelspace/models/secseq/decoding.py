"""From a trained decoder to labels: the codes of each document, and the labels at their leaves.

The decoder proposes codes by beam search or sampling (``prefix_search``, ``sequence_search``). A leaf of the code tree
has the labels with that code, each with its share of the code's training documents. The scores of several trees are
averaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
import torch  # so import this module only after ``errors.require``

from labelspace.kernels.code_search import average_tree_lists
from labelspace.kernels.quantize import Int8s
from labelspace.kernels.sparse_layers import embed_rows
from labelspace.kernels.threads import run_blocks
from labelspace.labels.codes import CodeTree
from labelspace.models.secseq.decoder import CodeDecoder
from labelspace.models.secseq.encoder_inputs import EncoderInputs
from labelspace.models.secseq.objectives import group_counts
from labelspace.models.secseq.prefix_search import PrefixTable
from labelspace.models.secseq.sequence_search import generate_sequences
from labelspace.types import Csr, Floats, Longs, TopK

if TYPE_CHECKING:
    from labelspace.models.secseq.model import SequenceModel

ROW_BLOCK = 64  # documents per task: the hidden states of the words of all would be too many
LABELS_PER_TREE = 50  # that enter the mean over several trees, at least


class LabelDecoder:
    """The trained decoder of one code tree, ready to predict.

    ``embeddings`` (n_features or n_tokens, word_dim) have a scale per row; ``label_shares`` is (n_labels,).
    """

    def __init__(
        self, decoder: CodeDecoder, tree: CodeTree, label_shares: Floats, embeddings: Int8s | Floats, scales: Floats
    ) -> None:
        self.decoder, self.tree, self.label_shares = decoder, tree, label_shares
        self.embeddings, self.scales = embeddings, scales
        self.prefixes = None if decoder.config.sequences else PrefixTable.build(decoder, tree, label_shares)

    def topk(self, inputs: EncoderInputs, start: int, stop: int, k: int, params: SequenceModel) -> TopK:
        """The k best labels of documents start to stop - 1."""
        X, starts, width = inputs.table, inputs.starts[start : stop + 1], self.embeddings.shape[1]
        lengths, indptr = np.diff(starts).astype(np.int32), X.indptr[starts[0] : starts[-1] + 1]
        embedded, zeros = np.empty((len(indptr) - 1, width), np.float32), np.zeros(width, np.float32)
        embed_rows(X.data, X.indices, indptr, 0, len(embedded), self.embeddings, self.scales, zeros, embedded)
        seed = params.random_state if params.decoding == "sampling" else None
        with torch.no_grad():
            encoder_states = self.decoder.encode(torch.from_numpy(embedded), lengths)
            if self.prefixes is None:
                m = params.beam_size if seed is None else params.n_samples
                leaves, weights = generate_sequences(self.decoder, encoder_states, self.tree, m, seed)
                return leaf_histogram(leaves, weights, self.tree, self.label_shares, k)
            contexts = self.decoder.initial_context(encoder_states).numpy()
        softmax = params.target == "label"
        if seed is None:
            return self.prefixes.beam_search(contexts, softmax, params.beam_size, k)
        return self.prefixes.sample(contexts, softmax, params.n_samples, k, seed)


def predict_topk(decoders: list[LabelDecoder], inputs: EncoderInputs, k: int, params: SequenceModel) -> TopK:
    """The k labels of the best mean score over all trees, per document, searched as the parameters are now."""
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


def label_shares(tree: CodeTree, Y: Csr, of_documents: bool) -> Floats:
    """The share of each label in the documents with its code; else, in all labels with its code. Shape (n_labels,)."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    leaf_counts = np.bincount(tree.leaf_of, weights=counts, minlength=tree.n_nodes)
    if of_documents:
        leaf_counts = np.bincount(group_counts(Y, tree.leaf_of, tree.n_nodes).indices, minlength=tree.n_nodes)
    shares: Floats = (counts / np.maximum(leaf_counts[tree.leaf_of], 1)).astype(np.float32)
    return shares


def leaf_histogram(leaves: Longs, weights: Floats, tree: CodeTree, shares: Floats, k: int) -> TopK:
    """The k best labels by the sum over a document's leaves (n, ...) of the leaf's weight times the label's share."""
    n, is_leaf, n_leaves = len(leaves), leaves >= 0, len(tree.label_starts) - 1
    rows = np.broadcast_to(np.arange(n)[:, None], (n, leaves[0].size)).reshape(leaves.shape)[is_leaf]
    columns = leaves[is_leaf] - tree.level_starts[-2]
    leaf_weights = sp.csr_matrix((weights[is_leaf], (rows, columns)), shape=(n, n_leaves))
    leaf_labels = sp.csr_matrix((shares[tree.labels], tree.labels, tree.label_starts), shape=(n_leaves, len(shares)))
    return TopK.from_sparse((leaf_weights @ leaf_labels).tocsr(), k)
