"""Constrained decoding: the decoder can write existing targets only; its training loss and its beam search.

The targets of a column group form a prefix trie of tokens. After each prefix only the tokens that lead to some target
are scored, in training as in decoding, so the probabilities of a group's targets add up to 1. A token without
alternatives has probability 1, and decoding ends where a single target remains.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from labelspace.labels.codes import Codes, CodeTree
from labelspace.models.text2text.t5 import T5, EncodedDocuments
from labelspace.types import Doubles, Floats, Ints, Longs

MIN_RELATIVE_PROBABILITY = 1e-4  # of a document's best prefix: less probable ones are pruned


@dataclass(frozen=True)
class PrefixTrie:
    """The targets of one column group as a trie over tokens."""

    tree: CodeTree
    start: int  # the token that decoding starts with
    log_prior: Floats  # (n_nodes,) log share of each node among the training targets that pass its parent, or 0

    @classmethod
    def from_sequences(cls, sequences: Ints, start: int, counts: Floats | None) -> Self:
        """From token sequences (n_targets, longest) and the number of documents of each; None for no prior."""
        tree = CodeTree.from_codes(Codes(sequences, int(sequences.max()) + 1))
        if counts is None:
            return cls(tree, start, np.zeros(tree.n_nodes, np.float32))
        passing = np.bincount(tree.ancestors().ravel(), np.repeat(counts, tree.code_length + 1), tree.n_nodes)
        return cls(tree, start, np.log(passing / passing[np.maximum(tree.parent, 0)]).astype(np.float32))

    @cached_property
    def paths(self) -> Ints:
        """The nodes from the root to each target. Shape (n_targets, longest + 1)."""
        return self.tree.ancestors()

    @cached_property
    def n_children(self) -> Ints:
        """The number of tokens that may follow each node."""
        return self.tree.last_child - self.tree.first_child

    @cached_property
    def depth(self) -> int:
        """The maximum number of tokens until a single target remains."""
        last = np.flatnonzero(self.n_children > 1).max(initial=-1)
        return int(np.searchsorted(self.tree.level_starts, last, "right"))

    @cached_property
    def single_target(self) -> Ints:
        """The target of each node, or -1 where there are several. Shape (n_nodes,)."""
        target = np.empty(self.tree.n_nodes, np.int32)
        target[self.paths] = np.arange(len(self.paths))[:, None]
        target[np.bincount(self.paths.ravel(), minlength=self.tree.n_nodes) > 1] = -1
        return target

    @cached_property
    def tokens(self) -> Ints:
        """All tokens that the decoder reads or scores, sorted."""
        return np.unique(np.append(self.tree.digit[1:], self.start))

    def input_tokens(self, nodes: Ints | Longs) -> Ints:
        """The last token of each node's prefix; at the root, the start token."""
        return np.where(nodes == 0, np.int32(self.start), self.tree.digit[nodes])


@dataclass(frozen=True)
class TokenEmbeddings:
    """Input and output embeddings of some tokens."""

    tokens: Ints  # (n,) sorted
    inputs: Tensor  # (n, embedding_dim)
    outputs: Tensor  # (n, embedding_dim)

    @classmethod
    def of_all_tokens(cls, tables: list[Tensor]) -> Self:
        """From the table of input embeddings, and that of output embeddings unless they are tied."""
        return cls(np.arange(len(tables[0]), dtype=np.int32), tables[0], tables[-1])

    def embed(self, tokens: Ints) -> Tensor:
        """Input embeddings. Shape (*tokens.shape, embedding_dim)."""
        return embedding(self._rows(tokens), self.inputs)

    def logits(self, hidden: Tensor, tokens: Ints) -> Tensor:
        """Scores of next tokens, by the decoder's outputs (n, embedding_dim). Shape (n, *tokens.shape)."""
        return hidden @ embedding(self._rows(tokens), self.outputs).T

    def double(self) -> Self:
        """The same in float64."""
        return replace(self, inputs=self.inputs.double(), outputs=self.outputs.double())

    def _rows(self, tokens: Ints) -> Tensor:
        return torch.from_numpy(np.searchsorted(self.tokens, tokens))


def sequence_loss(
    net: T5, embeddings: TokenEmbeddings, documents: EncodedDocuments, trie: PrefixTrie, targets: Ints
) -> Tensor:
    """The sum of the negative log-probabilities of targets, one per document (teacher forcing)."""
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
    """The most probable targets of each document: document, target and probability of each, best first."""
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
        cached_row = np.concatenate([cached_row[done], row])  # what is done is not read again
        node = np.concatenate([node[done], children])
        kept = _prune(document, node, log_p, beam_size)
        document, node, log_p, cached_row = document[kept], node[kept], log_p[kept], cached_row[kept]
    return document, trie.single_target[node], np.exp(log_p)


def _prune(document: Longs, node: Longs, log_p: Doubles, beam_size: int) -> Longs:
    """The best prefixes of each document, best first, ties by node; without those of next to no probability."""
    order = np.lexsort((node, -log_p, document))
    first = np.searchsorted(document[order], document[order])  # the position of the document's best
    in_beam = np.arange(len(order)) - first < beam_size
    return np.asarray(order[in_beam & (log_p[order] >= log_p[order][first] + np.log(MIN_RELATIVE_PROBABILITY))])


def _next_token_log_p(
    embeddings: TokenEmbeddings, hidden: Tensor, trie: PrefixTrie, nodes: Ints | Longs
) -> tuple[Tensor, Ints]:
    """Log-probabilities (n, n_tokens) of the next tokens at nodes, -inf where a token may not follow; and the tokens.

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
