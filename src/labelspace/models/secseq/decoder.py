"""A network that reads a document and writes codes, digit by digit: torch's modules, with all weights in one array.

With p the sum of the vectors of the digits that are written of a code, and a the document, the scores of the next
digit, at place d, are  U_d (a * g_d(p)) + v_d(p) + b_d,  where g and v are small networks. The product lets one table
of digits mean other things after other prefixes. Where codes are written one after the other, p is that sum plus the
state of a GRU over the codes before.

In a ``bag`` a is one vector, whatever p is; in a ``gru`` and a ``convolution`` it is the mean of the states of the
words, weighed by their attention to the state of that GRU.

This module needs torch: import it only where ``errors.require`` has been asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from labelspace.training.torch_optimizer import Descent
from labelspace.types import Floats, Ints

WINDOW = 5  # words that a unit of the convolution sees


@dataclass(frozen=True)
class Shape:
    """What the number of weights depends on; the number of labels is not part of it."""

    encoder: str  # "bag", "gru" or "convolution"
    word: int  # numbers a word's or feature's vector has
    hidden: int  # numbers a document's vector has
    memory: int  # numbers p has
    width: int  # values of a digit
    digits: int  # digits of a code
    sequences: bool  # whether codes are written one after the other, and an end: one more value of the first digit


class Memory(NamedTuple):
    """A batch of documents as they were read."""

    states: Tensor  # (n, words, hidden)
    there: Tensor  # (n, words) whether there is such a word


class CodeDecoder(nn.Module):
    """The encoder and the decoder of one tree of codes."""

    def __init__(self, shape: Shape, rng: np.random.Generator) -> None:
        super().__init__()
        word, hidden, memory = shape.word, shape.hidden, shape.memory
        self.shape = shape
        if shape.encoder == "bag":
            self.offset = nn.Parameter(torch.zeros(hidden))
        else:
            self.ask = nn.Linear(memory, hidden)
        if shape.encoder == "gru":
            self.encoder = nn.GRU(word, hidden // 2, batch_first=True, bidirectional=True)
        if shape.encoder == "convolution":
            self.convolution = nn.Conv1d(word, hidden, WINDOW, padding=WINDOW // 2)
        self.digits = nn.Embedding(shape.digits * shape.width, memory)
        if shape.sequences:
            self.history = nn.GRU(memory, memory, batch_first=True)
        sizes = [shape.width + (shape.sequences and place == 0) for place in range(shape.digits)]
        self.gates = nn.ModuleList(_two_layers(memory, hidden) for _ in sizes)
        self.outputs = nn.ModuleList(nn.Linear(hidden, size) for size in sizes)
        self.priors = nn.ModuleList(_two_layers(memory, size, bias=False) for size in sizes)
        self._begin(rng)

    def read(self, vectors: Tensor, lengths: Ints) -> Memory:
        """Documents by the vectors of their words (all words, word), so many each; of a bag, by one vector each."""
        if self.shape.encoder == "bag":
            return Memory(torch.relu(vectors + self.offset)[:, None], torch.ones(len(vectors), 1, dtype=torch.bool))
        there = torch.arange(max(int(lengths.max(initial=0)), 1)) < torch.from_numpy(lengths)[:, None]
        words = vectors.new_zeros((*there.shape, self.shape.word)).masked_scatter(there[:, :, None], vectors)
        there = there | (torch.arange(there.shape[1]) == 0)  # a document without a word has one that says nothing
        if self.shape.encoder == "convolution":
            return Memory(torch.relu(self.convolution(words.transpose(1, 2))).transpose(1, 2), there)
        packed = pack_padded_sequence(words, there.sum(1), batch_first=True, enforce_sorted=False)
        return Memory(pad_packed_sequence(self.encoder(packed)[0], batch_first=True)[0], there)

    def attend(self, memory: Memory, history: Tensor) -> Tensor:
        """What each document has to say after some codes, by the states of these (n, m, memory): (n, m, hidden)."""
        if self.shape.encoder == "bag":
            return memory.states.expand(-1, history.shape[1], -1)
        scores = self.ask(history) @ memory.states.transpose(1, 2) / self.shape.hidden**0.5  # (n, m, words)
        weights = scores.masked_fill(~memory.there[:, None], -torch.inf).softmax(2)
        context: Tensor = weights @ memory.states
        return context

    def blank(self, *sizes: int) -> Tensor:
        """The state before anything is written. Shape (*sizes, memory)."""
        return torch.zeros(*sizes, self.shape.memory)

    def vector(self, memory: Memory) -> Tensor:
        """What each document says before anything is written. Shape (n, hidden)."""
        return self.attend(memory, self.blank(len(memory.states), 1))[:, 0]

    def of_digits(self, digits: Tensor, place: int) -> Tensor:
        """The vectors of digits at a place of a code, which make up p. Shape (*digits.shape, memory)."""
        return self.digits(digits + place * self.shape.width)  # type: ignore[no-any-return]

    def after_codes(self, codes: Tensor, history: Tensor | None = None) -> Tensor:
        """The states of the history after each of some codes (n, m, memory), as sums of their digits' vectors."""
        before = None if history is None else history[None].contiguous()
        return self.history(codes, before)[0]  # type: ignore[no-any-return]

    def scores(self, a: Tensor, p: Tensor, place: int) -> Tensor:
        """The scores of the digit at a place, for contexts a (..., hidden) and states p (..., memory)."""
        return self.outputs[place](a * self.gates[place](p)) + self.priors[place](p)  # type: ignore[no-any-return]

    def _begin(self, rng: np.random.Generator) -> None:
        """Random weights, drawn from ``rng`` alone; biases 0, and 1 for gates."""
        with torch.no_grad():
            for name, weights in self.named_parameters():
                if weights.ndim == 1:
                    weights.zero_()
                    continue
                bound = 1.0 if name.startswith("digits") else weights[0].numel() ** -0.5
                weights.copy_(torch.from_numpy(rng.uniform(-bound, bound, weights.shape).astype(np.float32)))
            for gate in self.gates:
                gate[-1].bias.fill_(1.0)  # type: ignore[index]


class Learner(Descent):
    """A writer that learns."""

    def __init__(self, shape: Shape, rng: np.random.Generator) -> None:
        self.writer = CodeDecoder(shape, rng)
        super().__init__(self.writer, "rate or feature_rate")


def with_weights(shape: Shape, weights: Floats) -> CodeDecoder:
    """The writer of this shape with weights that a learner found."""
    learner = Learner(shape, np.random.default_rng(0))
    learner.weights.value[:] = weights
    return learner.writer.requires_grad_(False)


def _two_layers(given: int, wanted: int, bias: bool = True) -> nn.Sequential:
    return nn.Sequential(nn.Linear(given, given), nn.ReLU(), nn.Linear(given, wanted, bias=bias))
