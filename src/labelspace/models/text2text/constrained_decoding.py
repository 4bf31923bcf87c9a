"""Constrained decoding: the decoder can write existing targets only. Training loss, beam search, label scores.

The targets of a column group form a prefix trie of tokens. After each prefix only the tokens that lead to some target
are scored, in training as in decoding, so the probabilities of a group's targets add up to 1. A token without
alternatives has probability 1, and decoding ends where a single target remains.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn.functional import embedding

from labelspace.models.text2text.t5 import T5, EncodedDocuments
from labelspace.models.text2text.targets import Targets
from labelspace.models.text2text.tokenization import PrefixTrie, Tokenization, Tokens, pad
from labelspace.types import Csr, Doubles, Ints, Longs, TopK

MIN_RELATIVE_PROBABILITY = 1e-4  # of a document's best prefix: less probable prefixes are pruned, which saves time


@dataclass(frozen=True)
class TokenEmbeddings:
    """Input and output embeddings of some tokens."""

    tokens: Ints  # (n,) sorted
    inputs: Tensor  # (n, embedding_dim)
    outputs: Tensor  # (n, embedding_dim)

    @classmethod
    def of_all_tokens(cls, tables: list[Tensor]) -> Self:
        """Take the table of input embeddings, and the table of output embeddings unless they are tied."""
        return cls(np.arange(len(tables[0]), dtype=np.int32), tables[0], tables[-1])

    def embed(self, tokens: Ints) -> Tensor:
        """Return input embeddings. Shape (*tokens.shape, embedding_dim)."""
        return embedding(self._rows(tokens), self.inputs)

    def logits(self, hidden: Tensor, tokens: Ints) -> Tensor:
        """Score next tokens by the decoder's outputs (n, embedding_dim). Shape (n, *tokens.shape)."""
        return hidden @ embedding(self._rows(tokens), self.outputs).T

    def double(self) -> Self:
        """Convert the embeddings to float64."""
        return replace(self, inputs=self.inputs.double(), outputs=self.outputs.double())

    def _rows(self, tokens: Ints) -> Tensor:
        return torch.from_numpy(np.searchsorted(self.tokens, tokens))


def sequence_loss(
    net: T5, embeddings: TokenEmbeddings, documents: EncodedDocuments, trie: PrefixTrie, targets: Ints
) -> Tensor:
    """Sum the negative log-probabilities of targets, one per document (teacher forcing)."""
    paths = trie.paths[targets]  # (n, longest + 1)
    hidden, _ = net.decode(embeddings.embed(trie.input_tokens(paths[:, : max(trie.depth, 1)])), documents)
    loss = torch.zeros(())
    for position in range(trie.depth):
        rows = np.flatnonzero(trie.n_children[paths[:, position]] > 1)
        if len(rows):
            log_p, tokens = _next_token_log_p(embeddings, hidden[rows, position], trie, paths[rows, position])
            columns = np.searchsorted(tokens, trie.tree.digit[paths[rows, position + 1]])
            loss = loss - log_p.gather(1, torch.from_numpy(columns)[:, None]).sum()
    return loss


def beam_search(
    net: T5, embeddings: TokenEmbeddings, documents: EncodedDocuments, trie: PrefixTrie, beam_size: int
) -> tuple[Longs, Ints, Doubles]:
    """Find the most probable targets of each document: document, target and probability of each, best first."""
    n = len(documents.mask)
    document, node, log_p = np.arange(n, dtype=np.int64), np.zeros(n, np.int64), np.zeros(n)
    cached_row, cache = document, None  # the row of each prefix in the cache of keys and values
    while (active := trie.single_target[node] < 0).any():
        rows = torch.from_numpy(cached_row[active])
        past = None if cache is None else [(keys[rows], values[rows]) for keys, values in cache]
        embedded = embeddings.embed(trie.input_tokens(node[active])[:, None])
        hidden, cache = net.decode(embedded, documents.take(torch.from_numpy(document[active])), past)
        token_log_p, tokens = _next_token_log_p(embeddings, hidden[:, 0], trie, node[active])
        best = token_log_p.topk(min(beam_size, len(tokens)), 1)
        row, rank = np.nonzero(np.isfinite(best.values.numpy()))
        children = trie.tree.child(node[active][row], tokens[best.indices.numpy()[row, rank]])
        done = ~active
        document = np.concatenate([document[done], document[active][row]])
        log_p = np.concatenate([log_p[done], log_p[active][row] + best.values.numpy()[row, rank]])
        cached_row = np.concatenate([cached_row[done], row])  # rows of finished prefixes are not read again
        node = np.concatenate([node[done], children])
        kept = _prune(document, node, log_p, beam_size)
        document, node, log_p, cached_row = document[kept], node[kept], log_p[kept], cached_row[kept]
    return document, trie.single_target[node], np.exp(log_p)


def _prune(document: Longs, node: Longs, log_p: Doubles, beam_size: int) -> Longs:
    """Return the best prefixes of each document, best first, ties by node, without improbable ones."""
    order = np.lexsort((node, -log_p, document))
    first = np.searchsorted(document[order], document[order])  # the position of the document's best
    in_beam = np.arange(len(order)) - first < beam_size
    return np.asarray(order[in_beam & (log_p[order] >= log_p[order][first] + np.log(MIN_RELATIVE_PROBABILITY))])


def _next_token_log_p(
    embeddings: TokenEmbeddings, hidden: Tensor, trie: PrefixTrie, nodes: Ints | Longs
) -> tuple[Tensor, Ints]:
    """Return log-probabilities (n, n_tokens) of next tokens at nodes, -inf if a token may not follow; and the tokens.

    The log prior, if any, is added to the logits: an untrained network predicts the shares of the training targets.
    """
    distinct, which = np.unique(nodes, return_inverse=True)
    sizes = trie.n_children[distinct]
    ends = np.cumsum(sizes)
    children = np.arange(ends[-1]) + np.repeat(trie.tree.first_child[distinct] - ends + sizes, sizes)
    tokens, column = np.unique(trie.tree.digit[children], return_inverse=True)
    bias = np.full((len(distinct), len(tokens)), -np.inf, np.float32)
    bias[np.repeat(np.arange(len(distinct)), sizes), column] = trie.log_prior[children]
    return (embeddings.logits(hidden, tokens) + torch.from_numpy(bias[which])).log_softmax(1), tokens


class ConstrainedDecoder(NamedTuple):
    """A network that writes the targets of a tokenization."""

    net: T5
    embeddings: TokenEmbeddings
    tokenization: Tokenization
    beam_size: int

    def predict_labels(self, documents: Tokens, k: int) -> TopK:
        """Return the best labels of documents, scored by the summed probabilities of the targets that carry them."""
        tokens, is_token = pad(documents)
        by_group = []
        with torch.no_grad():
            encoded = self.net.encode(self.embeddings.embed(tokens), torch.from_numpy(is_token))
            for trie in self.tokenization.tries:
                rows, targets, probabilities = beam_search(self.net, self.embeddings, encoded, trie, self.beam_size)
                shape = (len(documents), len(trie.paths))
                by_group.append(sp.csr_matrix((probabilities, (rows, targets)), shape=shape))
        return labels_of_targets(sp.hstack(by_group, format="csr"), self.tokenization.targets, k)


def labels_of_targets(P: Csr, targets: Targets, k: int) -> TopK:
    """Return the best labels of documents by the probabilities of their targets (n, n_targets)."""
    scores = (P @ targets.label_shares).tocsr().astype(np.float32)
    return TopK.from_sparse(make_path_consistent(scores, P, targets), k)


def make_path_consistent(scores: Csr, P: Csr, targets: Targets) -> Csr:
    """Change label scores (n, n_labels) so that the best labels of a group's columns form one existing path.

    The path is chosen from the root down, by the target probabilities P (n, n_targets): of the targets, those with the
    best label of the first column remain, then those with the best of the second; a target with NA is dropped as long
    as there are others. In each column, a label that scores better than the one on the path gets a score just below
    it, and 0 where the path has no label.
    """
    rows = np.repeat(np.arange(len(scores.indptr) - 1), np.diff(scores.indptr))
    for label_ids, span in targets.by_group():
        if label_ids.shape[1] == 1:
            continue
        group = P[:, span].tocoo()
        document, target, probability = group.row, group.col, group.data
        for column in label_ids.T:
            label = column[target]
            known = label < scores.shape[1]  # not NA
            best = _best_label(document[known], label[known], probability[known], *scores.shape)
            remain = (label == best[document]) | (best[document] < 0)
            document, target, probability = document[remain], target[remain], probability[remain]
            in_column = np.isin(scores.indices, column)
            on_path = in_column & (scores.indices == best[rows])
            limit = np.zeros(scores.shape[0], np.float32)
            limit[rows[on_path]] = np.nextafter(scores.data[on_path], np.float32(0))
            others = in_column & ~on_path
            scores.data[others] = np.minimum(scores.data[others], limit[rows[others]])
    return scores


def _best_label(document: Ints, label: Ints, probability: Doubles, n: int, n_labels: int) -> Ints:
    """Return the label with the largest sum of probabilities in each of n documents, -1 if there is none."""
    keys, which = np.unique(document.astype(np.int64) * n_labels + label, return_inverse=True)
    sums = np.bincount(which, probability).astype(np.float32)
    order = np.lexsort((-keys, sums))  # the best is last; ties go to the smallest id
    best = np.full(n, -1, np.int32)
    best[keys[order] // n_labels] = keys[order] % n_labels
    return best
