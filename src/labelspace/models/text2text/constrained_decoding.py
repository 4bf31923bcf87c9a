"""A writer of text that is held to the answers that exist: what it is taught of them, and how it finds the best.

The answers to a part of the question are a tree of prefixes, token by token. After each prefix only the tokens that go
on to some answer are scored, in training as in writing, so the chances of all answers to a part add up to 1. Where one
token alone may follow it is certain, and writing ends where one answer alone is left.

This module needs torch: import it only where ``errors.require`` has been asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from labelspace.labels.codes import Codes, CodeTree
from labelspace.models.secseq.decoding import child_of
from labelspace.models.text2text.t5 import T5, Keys, Memory
from labelspace.types import Doubles, Floats, Ints, Longs

LEAST = 1e-4  # of the chance of a document's best prefix: one that has less is given up


@dataclass(frozen=True)
class Part:
    """The answers to one part of the question, as a tree of prefixes."""

    tree: CodeTree
    start: int  # the token that writing begins with
    log_share: Floats  # (n_nodes,) of the training answers that go through the node above, how many go on so

    @classmethod
    def of(cls, sequences: Ints, start: int, counts: Floats) -> Part:
        """Of answers as tokens (n_answers, longest), with how often each was given."""
        tree = CodeTree.of(Codes(sequences, int(sequences.max()) + 1))
        through = np.bincount(tree.ancestors().ravel(), np.repeat(counts, tree.digits + 1), tree.n_nodes)
        return cls(tree, start, np.log(through / through[np.maximum(tree.parent, 0)]).astype(np.float32))

    @cached_property
    def paths(self) -> Ints:
        """The nodes from the root to each answer. Shape (n_answers, longest + 1)."""
        return self.tree.ancestors()

    @cached_property
    def n_children(self) -> Ints:
        """How many tokens may follow each node."""
        return self.tree.last_child - self.tree.first_child

    @cached_property
    def depth(self) -> int:
        """Tokens until one answer alone is left, whichever it is."""
        last = np.flatnonzero(self.n_children > 1).max(initial=-1)
        return int(np.searchsorted(self.tree.level_starts, last, "right"))

    @cached_property
    def only(self) -> Ints:
        """The answer that alone is left at each node, or -1. Shape (n_nodes,)."""
        found = np.empty(self.tree.n_nodes, np.int32)
        found[self.paths] = np.arange(len(self.paths))[:, None]
        found[np.bincount(self.paths.ravel(), minlength=self.tree.n_nodes) > 1] = -1
        return found

    @cached_property
    def tokens(self) -> Ints:
        """All tokens that are fed or scored, sorted."""
        return np.unique(np.append(self.tree.digit[1:], self.start))


@dataclass(frozen=True)
class Vectors:
    """The vectors of some tokens: as they are read, and as they are scored."""

    known: Ints  # (n,) sorted
    read: Tensor  # (n, dimension)
    scored: Tensor  # (n, dimension)

    @classmethod
    def of_all(cls, tables: list[Tensor]) -> Vectors:
        """Of all tokens, by a table of what is read, and one of what is scored where that is another."""
        return cls(np.arange(len(tables[0]), dtype=np.int32), tables[0], tables[-1])

    def of(self, tokens: Ints) -> Tensor:
        """Those of tokens to be read. Shape (*tokens.shape, dimension)."""
        return embedding(self._places(tokens), self.read)

    def scores(self, said: Tensor, tokens: Ints) -> Tensor:
        """How well tokens follow what is said (n, dimension). Shape (n, *tokens.shape)."""
        return said @ embedding(self._places(tokens), self.scored).T

    def double(self) -> Vectors:
        """The same in float64."""
        return Vectors(self.known, self.read.double(), self.scored.double())

    def _places(self, tokens: Ints) -> Tensor:
        return torch.from_numpy(np.searchsorted(self.known, tokens))


def lost(net: T5, vectors: Vectors, memory: Memory, part: Part, answers: Ints) -> Tensor:
    """Minus the sum of the logarithms of the chances of answers, one to each document as it was read."""
    paths = part.paths[answers]  # (n, longest + 1)
    said, _ = net.write(vectors.of(_fed(part, paths[:, : max(part.depth, 1)])), memory)
    total = torch.zeros(())
    for place in range(part.depth):
        parted = np.flatnonzero(part.n_children[paths[:, place]] > 1)
        if len(parted):
            chances, tokens = _log_chances(vectors, said[parted, place], part, paths[parted, place])
            wanted = np.searchsorted(tokens, part.tree.digit[paths[parted, place + 1]])
            total = total - chances.gather(1, torch.from_numpy(wanted)[:, None]).sum()
    return total


def best_answers(net: T5, vectors: Vectors, memory: Memory, part: Part, beam: int) -> tuple[Longs, Ints, Doubles]:
    """The most probable answers to each document as it was read, by a beam: documents, answers and their chances."""
    document, node = np.arange(len(memory.bias), dtype=np.int64), np.zeros(len(memory.bias), np.int64)
    score, source = np.zeros(len(node)), document
    keys: list[Keys] | None = None
    while (going := part.only[node] < 0).any():
        rows = torch.from_numpy(source[going])
        before = None if keys is None else [(k[rows], v[rows]) for k, v in keys]
        fed = vectors.of(_fed(part, node[going])[:, None])
        said, keys = net.write(fed, memory.rows(torch.from_numpy(document[going])), before)
        chances, tokens = _log_chances(vectors, said[:, 0], part, node[going])
        best = chances.topk(min(beam, len(tokens)), 1)
        row, place = np.nonzero(np.isfinite(best.values.numpy()))
        below = child_of(part.tree, node[going][row], tokens[best.indices.numpy()[row, place]])
        ended = ~going
        document = np.concatenate([document[ended], document[going][row]])
        score = np.concatenate([score[ended], score[going][row] + best.values.numpy()[row, place]])
        node, source = np.concatenate([node[ended], below]), np.concatenate([node[ended], row])
        kept = _kept(document, node, score, beam)
        document, node, score, source = document[kept], node[kept], score[kept], source[kept]
    return document, part.only[node], np.exp(score)


def _kept(document: Longs, node: Longs, score: Doubles, beam: int) -> Longs:
    """The best of each document, equals in the order of their nodes; what has next to no chance is left out."""
    order = np.lexsort((node, -score, document))
    first = np.searchsorted(document[order], document[order])  # the place of a document's best
    good = (np.arange(len(order)) - first < beam) & (score[order] >= score[order][first] + np.log(LEAST))
    kept: Longs = order[good]
    return kept


def _fed(part: Part, nodes: Ints | Longs) -> Ints:
    """The token that leads to each node; to the root, the one that writing begins with."""
    return np.where(nodes == 0, np.int32(part.start), part.tree.digit[nodes])


def _log_chances(vectors: Vectors, said: Tensor, part: Part, nodes: Ints | Longs) -> tuple[Tensor, Ints]:
    """The logarithms of the chances of tokens after what is said at nodes, -inf where none may follow; and the tokens.

    A net that knows nothing gives each the share that it has in training.
    """
    seen, which = np.unique(nodes, return_inverse=True)
    sizes = part.n_children[seen]
    ends = np.cumsum(sizes)
    children = np.arange(ends[-1]) + np.repeat(part.tree.first_child[seen] - ends + sizes, sizes)
    tokens, place = np.unique(part.tree.digit[children], return_inverse=True)
    bias = np.full((len(seen), len(tokens)), -np.inf, np.float32)
    bias[np.repeat(np.arange(len(seen)), sizes), place] = part.log_share[children]
    return (vectors.scores(said, tokens) + torch.from_numpy(bias[which])).log_softmax(1), tokens
