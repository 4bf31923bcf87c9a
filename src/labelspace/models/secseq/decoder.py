"""The network of one code tree: it encodes a document and scores the next digit of a code.

    d         position of a digit in its code
    a         context vector of the document
    h         hidden state of a GRU over the codes generated so far; 0 unless sequences are generated
    p         prefix state: h plus the embeddings of the digits of the current code so far
    g_d, v_d  networks of two layers: gate and prior

The logits of digit d are  U_d (a * g_d(p)) + v_d(p) + b_d.  The product lets one output layer mean different things
after different prefixes.

With encoder ``bag``, a is one vector, whatever h is. With ``gru`` and ``convolution`` it is the mean of the words'
hidden states, weighted by the attention of h to them.
"""

from typing import NamedTuple

import numpy as np
import torch  # so import this module only after ``errors.require``
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from labelspace.models.secseq.config import KERNEL_SIZE, DecoderConfig
from labelspace.types import Floats, Ints


class EncoderStates(NamedTuple):
    """A batch of encoded documents."""

    states: Tensor  # (n, words, hidden_dim)
    mask: Tensor  # (n, words) False for padding


class CodeDecoder(nn.Module):
    """Encoder and decoder of one code tree."""

    def __init__(self, config: DecoderConfig, rng: np.random.Generator) -> None:
        super().__init__()
        word_dim, hidden_dim, decoder_dim = config.word_dim, config.hidden_dim, config.decoder_dim
        self.config = config
        if config.encoder == "bag":
            self.encoder_bias = nn.Parameter(torch.zeros(hidden_dim))
        else:
            self.attention = nn.Linear(decoder_dim, hidden_dim)
        if config.encoder == "gru":
            self.encoder_gru = nn.GRU(word_dim, hidden_dim // 2, batch_first=True, bidirectional=True)
        if config.encoder == "convolution":
            self.convolution = nn.Conv1d(word_dim, hidden_dim, KERNEL_SIZE, padding=KERNEL_SIZE // 2)
        self.digit_embeddings = nn.Embedding(config.code_length * config.code_size, decoder_dim)
        if config.sequences:
            self.code_gru = nn.GRU(decoder_dim, decoder_dim, batch_first=True)
        sizes = config.output_sizes
        self.gates = nn.ModuleList(_two_layers(decoder_dim, hidden_dim) for _ in sizes)
        self.outputs = nn.ModuleList(nn.Linear(hidden_dim, size) for size in sizes)
        self.priors = nn.ModuleList(_two_layers(decoder_dim, size, bias=False) for size in sizes)
        self._init_weights(rng)

    def encode(self, embeddings: Tensor, lengths: Ints) -> EncoderStates:
        """Encode documents of ``lengths`` words, given the embeddings (words, word_dim) of all; a bag is one word."""
        if self.config.encoder == "bag":
            states = torch.relu(embeddings + self.encoder_bias)[:, None]
            return EncoderStates(states, torch.ones(len(embeddings), 1, dtype=torch.bool))
        mask = torch.arange(max(int(lengths.max(initial=0)), 1)) < torch.from_numpy(lengths)[:, None]
        words = embeddings.new_zeros((*mask.shape, self.config.word_dim)).masked_scatter(mask[:, :, None], embeddings)
        mask = mask | (torch.arange(mask.shape[1]) == 0)  # a document without words gets one word of zeros
        if self.config.encoder == "convolution":
            return EncoderStates(torch.relu(self.convolution(words.transpose(1, 2))).transpose(1, 2), mask)
        packed = pack_padded_sequence(words, mask.sum(1), batch_first=True, enforce_sorted=False)
        return EncoderStates(pad_packed_sequence(self.encoder_gru(packed)[0], batch_first=True)[0], mask)

    def attend(self, encoder_states: EncoderStates, h: Tensor) -> Tensor:
        """The context vectors a (n, m, hidden_dim) for the states h (n, m, decoder_dim) of the code GRU."""
        states = encoder_states.states
        if self.config.encoder == "bag":
            return states.expand(-1, h.shape[1], -1)
        scores = self.attention(h) @ states.transpose(1, 2) / self.config.hidden_dim**0.5  # (n, m, words)
        weights = scores.masked_fill(~encoder_states.mask[:, None], -torch.inf).softmax(2)
        a: Tensor = weights @ states
        return a

    def initial_state(self, *sizes: int) -> Tensor:
        """The state h before any code is generated. Shape (*sizes, decoder_dim)."""
        return torch.zeros(*sizes, self.config.decoder_dim)

    def initial_context(self, encoder_states: EncoderStates) -> Tensor:
        """The context vectors before any code is generated. Shape (n, hidden_dim)."""
        return self.attend(encoder_states, self.initial_state(len(encoder_states.states), 1))[:, 0]

    def embed_digits(self, digits: Tensor, d: int) -> Tensor:
        """The embeddings of digits at position d, which add up to p. Shape (*digits.shape, decoder_dim)."""
        return self.digit_embeddings(digits + d * self.config.code_size)  # type: ignore[no-any-return]

    def code_states(self, codes: Tensor, h: Tensor | None = None) -> Tensor:
        """The states after each of several codes (n, m, decoder_dim), each the sum of its digits' embeddings."""
        before = None if h is None else h[None].contiguous()
        return self.code_gru(codes, before)[0]  # type: ignore[no-any-return]

    def digit_logits(self, a: Tensor, p: Tensor, d: int) -> Tensor:
        """The logits of digit d for contexts a (..., hidden_dim) and prefix states p (..., decoder_dim)."""
        return self.outputs[d](a * self.gates[d](p)) + self.priors[d](p)  # type: ignore[no-any-return]

    def _init_weights(self, rng: np.random.Generator) -> None:
        """Random weights, drawn from ``rng`` alone; biases are 0, and 1 for gates."""
        with torch.no_grad():
            for name, weights in self.named_parameters():
                if weights.ndim == 1:
                    weights.zero_()
                    continue
                bound = 1.0 if name.startswith("digit_embeddings") else weights[0].numel() ** -0.5
                weights.copy_(torch.from_numpy(rng.uniform(-bound, bound, weights.shape).astype(np.float32)))
            for gate in self.gates:
                gate[-1].bias.fill_(1.0)  # type: ignore[index]


def decoder_from_weights(config: DecoderConfig, weights: Floats) -> CodeDecoder:
    """A trained decoder from its weights in one array."""
    decoder = CodeDecoder(config, np.random.default_rng(0))
    vector_to_parameters(torch.tensor(weights), decoder.parameters())
    return decoder.requires_grad_(False)


def _two_layers(n_inputs: int, n_outputs: int, bias: bool = True) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_inputs, n_inputs), nn.ReLU(), nn.Linear(n_inputs, n_outputs, bias=bias))
