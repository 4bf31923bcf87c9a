"""T5 (Raffel et al., 2020): a transformer that reads one sequence of tokens and writes another.

It is written out here because what we ask for is not what the ``generate`` of ``transformers`` gives: dropout from a
generator of its own, the chances of tokens that may follow and of no others, and many prefixes of one document at
once. ``published_name`` says how that package names each weight, and tests hold the two against each other.

This module needs torch: import it only where ``errors.require`` has been asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, relu

START, END, UNKNOWN = 0, 1, 2
"""Tokens that every T5 has: the one that writing begins with (and that pads), the end, and what is not known."""

Keys = tuple[Tensor, Tensor]
"""What tokens are found by, and what they say to who finds them; each (n, heads, length, head)."""


@dataclass(frozen=True)
class Shape:
    """What the number of weights depends on, and how they are used."""

    dimension: int  # numbers of a token's vector
    heads: int
    head: int  # numbers a head compares
    hidden: int  # numbers between the two layers of a feed-forward net
    layers: int  # that read
    writing: int  # layers that write
    gated: bool = False  # T5 1.1 and later: a gelu that gates, in place of a relu
    scaled: bool = True  # what is written is scaled down before tokens are scored
    buckets: int = 32  # of distances between tokens
    farthest: int = 128


class Dropout:
    """Numbers left out by chance while a net learns: drawn from ``rng``, which is None where it does not."""

    def __init__(self) -> None:
        self.share = 0.0  # in steps of 1/256: a byte is drawn for each number
        self.rng: np.random.Generator | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """The same with some numbers 0 and the others larger, so that sums stay what they were on average."""
        lost = round(256 * self.share)
        if self.rng is None or not lost:
            return x
        drawn = np.frombuffer(self.rng.bytes(x.numel()), np.uint8).reshape(x.shape)
        return x * torch.from_numpy(drawn >= lost) * (256 / (256 - lost))


class Norm(nn.Module):
    """Vectors of a root mean square of 1, each number times a weight."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dimension))

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., dimension) in and out."""
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Attention(nn.Module):
    """Every token takes a mean of what tokens say, weighed by how these fit to it."""

    def __init__(self, shape: Shape, drop: Dropout, knows_distances: bool = False) -> None:
        super().__init__()
        self.heads, self.drop = shape.heads, drop
        inner = shape.heads * shape.head
        self.norm = Norm(shape.dimension)
        self.q, self.k, self.v = (nn.Linear(shape.dimension, inner, bias=False) for _ in range(3))
        self.o = nn.Linear(inner, shape.dimension, bias=False)
        if knows_distances:
            self.distances = nn.Embedding(shape.buckets, shape.heads)

    def keys(self, x: Tensor) -> Keys:
        """Those of tokens (n, length, dimension)."""
        return self._parted(self.k(x)), self._parted(self.v(x))

    def forward(self, x: Tensor, keys: Keys, bias: Tensor) -> Tensor:
        """What normed tokens (n, length, dimension) take; the bias is added to how others fit to them."""
        fit = self._parted(self.q(x)) @ keys[0].transpose(2, 3) + bias  # (n, heads, length, others)
        taken = self.drop(fit.softmax(-1)) @ keys[1]
        return self.drop(self.o(taken.transpose(1, 2).flatten(2)))

    def _parted(self, x: Tensor) -> Tensor:
        """(n, length, inner) -> (n, heads, length, head)."""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)


class FeedForward(nn.Module):
    """Two layers, token by token."""

    def __init__(self, shape: Shape, drop: Dropout) -> None:
        super().__init__()
        self.drop = drop
        self.norm = Norm(shape.dimension)
        self.gate = nn.Linear(shape.dimension, shape.hidden, bias=False) if shape.gated else None
        self.wi = nn.Linear(shape.dimension, shape.hidden, bias=False)
        self.wo = nn.Linear(shape.hidden, shape.dimension, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Shape (..., dimension) in and out."""
        x = self.norm(x)
        inner = relu(self.wi(x)) if self.gate is None else gelu(self.gate(x), approximate="tanh") * self.wi(x)
        return self.drop(self.wo(self.drop(inner)))


class Layer(nn.Module):
    """Tokens look at each other, at the document if they are written, and go through a feed-forward net."""

    def __init__(self, shape: Shape, drop: Dropout, first: bool, writes: bool) -> None:
        super().__init__()
        self.itself = Attention(shape, drop, first)
        self.document = Attention(shape, drop) if writes else None
        self.each = FeedForward(shape, drop)

    def forward(
        self, x: Tensor, near: Tensor, document: tuple[Keys, Tensor] | None = None, before: Keys | None = None
    ) -> tuple[Tensor, Keys]:
        """Tokens (n, length, dimension) after this layer, and the keys of them and those before."""
        normed = self.itself.norm(x)
        keys = self.itself.keys(normed)
        if before is not None:
            keys = (torch.cat([before[0], keys[0]], 2), torch.cat([before[1], keys[1]], 2))
        x = x + self.itself(normed, keys, near)
        if self.document is not None and document is not None:
            x = x + self.document(self.document.norm(x), *document)
        return x + self.each(x), keys


class Memory(NamedTuple):
    """Documents as they were read: the keys of their tokens for each layer that writes, and which tokens there are."""

    keys: list[Keys]
    bias: Tensor  # (n, 1, 1, length), 0, or -inf where there is no token

    def rows(self, which: Tensor) -> Memory:
        """Some documents, of which one may stand twice."""
        return Memory([(keys[which], values[which]) for keys, values in self.keys], self.bias[which])


class T5(nn.Module):
    """The reader and the writer, without the table of the tokens' vectors: of that, a step touches a few rows."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape, self.drop = shape, Dropout()
        self.reader = nn.ModuleList(Layer(shape, self.drop, i == 0, False) for i in range(shape.layers))
        self.read_norm = Norm(shape.dimension)
        self.writer = nn.ModuleList(Layer(shape, self.drop, i == 0, True) for i in range(shape.writing))
        self.written_norm = Norm(shape.dimension)

    def read(self, tokens: Tensor, there: Tensor) -> Memory:
        """Documents by the vectors of their tokens (n, length, dimension), and where there are any (n, length)."""
        bias = torch.zeros(there.shape).masked_fill(~there, -torch.inf)[:, None, None]
        places = torch.arange(there.shape[1])
        near = self._near(self.reader, places - places[:, None], True) + bias
        x = self.drop(tokens)
        for layer in self.reader:
            x, _ = layer(x, near)
        x = self.drop(self.read_norm(x))
        return Memory([layer.document.keys(x) for layer in self.writer], bias)  # type: ignore[union-attr, operator]

    def write(self, tokens: Tensor, memory: Memory, before: list[Keys] | None = None) -> tuple[Tensor, list[Keys]]:
        """What is said at each of some tokens that follow others, and the keys of all.

        Its product with the vector of a token scores that as the next. Shape (n, length, dimension), in and out.
        """
        length, past = tokens.shape[1], 0 if before is None else before[0][0].shape[2]
        distance = torch.arange(past + length) - torch.arange(past, past + length)[:, None]
        near = self._near(self.writer, distance, False).masked_fill(distance > 0, -torch.inf)
        x, kept = self.drop(tokens), []
        for i, layer in enumerate(self.writer):
            x, keys = layer(x, near, (memory.keys[i], memory.bias), None if before is None else before[i])
            kept.append(keys)
        x = self.drop(self.written_norm(x))
        return (x * self.shape.dimension**-0.5 if self.shape.scaled else x), kept

    def begin(self, rng: np.random.Generator) -> None:
        """Random weights as T5 has them, drawn from ``rng`` alone."""
        shape = self.shape
        with torch.no_grad():
            for name, weights in self.named_parameters():
                if weights.ndim == 1:
                    continue
                spread = weights.shape[1] ** -0.5
                if name.endswith(".q.weight"):
                    spread *= shape.head**-0.5
                if name.endswith(".distances.weight"):
                    spread = shape.dimension**-0.5
                weights.copy_(torch.from_numpy(spread * rng.standard_normal(weights.shape, np.float32)))

    def _near(self, layers: nn.ModuleList, distance: Tensor, both_ways: bool) -> Tensor:
        """How tokens at these distances fit to each other by that alone, in all layers: (1, heads, *distance.shape)."""
        found = buckets(distance, both_ways, self.shape.buckets, self.shape.farthest)
        return layers[0].itself.distances(found).permute(2, 0, 1)[None]  # type: ignore[union-attr, operator, no-any-return]


def buckets(distance: Tensor, both_ways: bool, n: int, farthest: int) -> Tensor:
    """The bucket of each distance: one each for small ones, then ever wider; tokens to come have their own, or none.

    >>> buckets(torch.tensor([-40, -2, 0, 3]), both_ways=False, n=8, farthest=16).tolist()
    [7, 2, 0, 0]
    """
    first = torch.zeros_like(distance)
    if both_ways:
        n //= 2
        first = (distance > 0) * n
    far = distance.abs() if both_ways else (-distance).clamp(min=0)
    exact = n // 2
    wide = exact + (torch.log(far.clamp(min=1) / exact) / math.log(farthest / exact) * (n - exact)).long()
    return first + torch.where(far < exact, far, wide.clamp(max=n - 1))


def published_name(name: str, gated: bool) -> str:
    """What ``transformers`` calls a weight of ours.

    >>> published_name("writer.3.document.q.weight", gated=False)
    'decoder.block.3.layer.1.EncDecAttention.q.weight'
    """
    whole = {
        "read_norm.weight": "encoder.final_layer_norm.weight",
        "written_norm.weight": "decoder.final_layer_norm.weight",
    }
    if name in whole:
        return whole[name]
    side, layer, part, rest = name.split(".", 3)
    place = {"itself": 0, "document": 1, "each": 1 if side == "reader" else 2}[part]
    module = {"itself": "SelfAttention", "document": "EncDecAttention", "each": "DenseReluDense"}[part]
    if gated:
        rest = rest.replace("gate.", "wi_0.").replace("wi.", "wi_1.")
    rest = rest.replace("distances.", "relative_attention_bias.")
    rest = rest.replace("norm.", "layer_norm.") if rest.startswith("norm.") else f"{module}.{rest}"
    return f"{'encoder' if side == 'reader' else 'decoder'}.block.{layer}.layer.{place}.{rest}"
