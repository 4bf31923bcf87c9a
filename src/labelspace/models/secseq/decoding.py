"""From a trained decoder to labels: the codes of each document, and the labels at their leaves.

The decoder proposes codes by beam search or sampling (``prefix_search``, ``sequence_search``). A leaf of the code tree
has the labels with that code, each with its share of the code's training documents. The scores of several trees are
averaged.

This module needs torch: import it only after ``errors.require``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch

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

ROW_BLOCK = 64  # documents per task: the hidden states of the words of all would be too many
LABELS_PER_TREE = 50  # that enter the mean over several trees, at least


@dataclass(frozen=True)
class DecodingOptions:
    """How codes are searched; may differ from call to call."""

    target: str  # what was learned: "set", "label" or "sequence"
    sampling: bool
    beam_size: int
    n_samples: int
    random_state: int


@dataclass(frozen=True)
class LabelDecoder:
    """The trained decoder of one code tree, ready to predict."""

    decoder: CodeDecoder
    tree: CodeTree
    label_shares: Floats  # (n_labels,)
    embeddings: Int8s | Floats  # (n_features or n_tokens, word_dim)
    embedding_scales: Floats  # (n_features or n_tokens,)
    prefixes: PrefixTable | None  # None where sequences are generated

    @classmethod
    def build(
        cls, decoder: CodeDecoder, tree: CodeTree, label_shares: Floats, embeddings: Int8s | Floats, scales: Floats
    ) -> LabelDecoder:
        """Compute what does not depend on documents."""
        prefixes = None if decoder.config.sequences else PrefixTable.build(decoder, tree, label_shares)
        return cls(decoder, tree, label_shares, embeddings, scales, prefixes)

    def topk(self, inputs: EncoderInputs, start: int, stop: int, k: int, options: DecodingOptions) -> TopK:
        """The k best labels of documents start to stop - 1."""
        table, starts = inputs.table, inputs.starts[start : stop + 1]
        lengths, indptr = np.diff(starts).astype(np.int32), table.indptr[starts[0] : starts[-1] + 1]
        embedded = np.empty((len(indptr) - 1, self.embeddings.shape[1]), np.float32)
        zeros = np.zeros(self.embeddings.shape[1], np.float32)
        embed_rows(
            table.data, table.indices, indptr, 0, len(embedded), self.embeddings, self.embedding_scales, zeros, embedded
        )
        with torch.no_grad():
            encoder_states = self.decoder.encode(torch.from_numpy(embedded), lengths)
            if self.prefixes is None:
                m, seed = (options.n_samples, options.random_state) if options.sampling else (options.beam_size, None)
                leaves, weights = generate_sequences(self.decoder, encoder_states, self.tree, m, seed)
                return leaf_histogram(leaves, weights, self.tree, self.label_shares, k)
            contexts = self.decoder.initial_context(encoder_states).numpy()
        softmax = options.target == "label"
        if options.sampling:
            return self.prefixes.sample(contexts, softmax, options.n_samples, k, options.random_state)
        return self.prefixes.beam_search(contexts, softmax, options.beam_size, k)


def predict_topk(decoders: list[LabelDecoder], inputs: EncoderInputs, k: int, options: DecodingOptions) -> TopK:
    """The k labels of the best mean score over all trees, per document."""
    n_trees = len(decoders)
    n_listed = k if n_trees == 1 else max(k, LABELS_PER_TREE)
    lists = TopK.empty(n_trees * inputs.n, n_listed)
    labels = lists.labels.reshape(n_trees, inputs.n, n_listed)
    scores = lists.scores.reshape(n_trees, inputs.n, n_listed)

    def predict_block(start: int, stop: int) -> None:
        for tree, decoder in enumerate(decoders):
            top = decoder.topk(inputs, start, stop, n_listed, options)
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
    n, is_leaf = len(leaves), leaves >= 0
    rows = np.broadcast_to(np.arange(n)[:, None], (n, leaves[0].size)).reshape(leaves.shape)[is_leaf]
    columns = leaves[is_leaf] - tree.level_starts[-2]
    n_leaves = len(tree.label_starts) - 1
    leaf_weights = sp.csr_matrix((weights[is_leaf], (rows, columns)), shape=(n, n_leaves))
    leaf_labels = sp.csr_matrix((shares[tree.labels], tree.labels, tree.label_starts), shape=(n_leaves, len(shares)))
    return TopK.from_sparse((leaf_weights @ leaf_labels).tocsr(), k)
