"""The network of one code tree: an encoder of documents, and a gated or a recurrent decoder of label codes.

Symbols of both decoders:

    d    position of a digit in its code; with ``shared_outputs`` the output layer U and b are the same for all d
    a    context vector of the document

**Encoder.** With encoder ``bag`` a document is one vector. With ``gru`` and ``convolution`` it is a hidden state per
word, and a is the mean of these states, weighted by the attention of the decoder's state to them.

**Gated decoder.** The logits of digit d are  U_d (a * g_d(p)) + v_d(p) + b_d.  The product lets one output layer mean
different things after different prefixes.

    h         hidden state of a GRU over the codes generated so far; 0 unless sequences are generated
    p         prefix state: h plus the embeddings of the digits of the current code so far
    g_d, v_d  networks of two layers: gate and prior

**Recurrent decoder.** The plain Seq2Seq decoder: a GRU or an LSTM with attention that steps once per digit.

    t    number of a digit in the whole sequence; its position in its code is d = t mod D
    x_t  embedding of the digit before, of the start for the first; with ``shared_embeddings`` a value has the same
         embedding at all positions
    s_t  state of the cell; s_0 = tanh(W_0 m + b_0) with m the mean of the encoder's states
    a_t  context vector: the attention of s_t to the encoder's states

    s_t = cell(x_t, s_{t-1}),  o_t = tanh(W [s_t; a_t] + c),  logits of digit t = U_d o_t + b_d
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch  # so import this module only after ``errors.require``
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from labelspace.models.secseq.config import KERNEL_SIZE, DecoderConfig
from labelspace.types import Bools, Floats, Ints, Longs, Rng

States = tuple[Tensor, ...]  # of a decoder, each (n, m, dim)
CELLS = {"gru": nn.GRU, "lstm": nn.LSTM}


class EncoderStates(NamedTuple):
    """A batch of encoded documents."""

    states: Tensor  # (n, words, hidden_dim)
    mask: Tensor  # (n, words) False for padding


class Encoder(nn.Module):
    """Encoder and attention of the network of one code tree."""

    def __init__(self, config: DecoderConfig) -> None:
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
        """Return the context vectors a (n, m, hidden_dim) for states h (n, m, decoder_dim) of the decoder."""
        states = encoder_states.states
        if self.config.encoder == "bag":
            return states.expand(-1, h.shape[1], -1)
        scores = self.attention(h) @ states.transpose(1, 2) / self.config.hidden_dim**0.5  # (n, m, words)
        weights = scores.masked_fill(~encoder_states.mask[:, None], -torch.inf).softmax(2)
        a: Tensor = weights @ states
        return a

    def _init_weights(self, rng: Rng) -> None:
        """Draw random weights from ``rng`` only; biases are 0."""
        with torch.no_grad():
            for name, weights in self.named_parameters():
                if weights.ndim == 1:
                    weights.zero_()
                    continue
                bound = 1.0 if name.startswith("digit_embeddings") else weights[0].numel() ** -0.5
                weights.copy_(torch.from_numpy(rng.uniform(-bound, bound, weights.shape).astype(np.float32)))


def output_layers(config: DecoderConfig, n_inputs: int) -> nn.ModuleList:
    """Build the output layer of each digit position: one per position, or one shared by all."""
    if config.shared_outputs:
        return nn.ModuleList([nn.Linear(n_inputs, config.output_sizes[0])] * config.code_length)
    return nn.ModuleList(nn.Linear(n_inputs, size) for size in config.output_sizes)


class CodeDecoder(Encoder):
    """Encoder and gated decoder of one code tree."""

    def __init__(self, config: DecoderConfig, rng: Rng) -> None:
        super().__init__(config)
        hidden_dim, decoder_dim = config.hidden_dim, config.decoder_dim
        self.digit_embeddings = nn.Embedding(config.n_embeddings, decoder_dim)
        if config.sequences:
            self.code_gru = nn.GRU(decoder_dim, decoder_dim, batch_first=True)
        sizes = config.output_sizes
        self.gates = nn.ModuleList(_two_layers(decoder_dim, hidden_dim) for _ in sizes)
        self.outputs = output_layers(config, hidden_dim)
        self.priors = nn.ModuleList(_two_layers(decoder_dim, size, bias=False) for size in sizes)
        self._init_weights(rng)
        with torch.no_grad():
            for gate in self.gates:
                gate[-1].bias.fill_(1.0)  # type: ignore[index]

    def initial_state(self, *sizes: int) -> Tensor:
        """Return the state h before any code is generated. Shape (*sizes, decoder_dim)."""
        return torch.zeros(*sizes, self.config.decoder_dim)

    def initial_context(self, encoder_states: EncoderStates) -> Tensor:
        """Return the context vectors before any code is generated. Shape (n, hidden_dim)."""
        return self.attend(encoder_states, self.initial_state(len(encoder_states.states), 1))[:, 0]

    def embed_digits(self, digits: Tensor, d: int) -> Tensor:
        """Return the embeddings of digits at position d, which add up to p. Shape (*digits.shape, decoder_dim)."""
        return self.digit_embeddings(digits + d * self.config.code_size)  # type: ignore[no-any-return]

    def code_states(self, codes: Tensor, h: Tensor | None = None) -> Tensor:
        """Return the states after each of several codes (n, m, decoder_dim), each the sum of its digits' embeddings."""
        before = None if h is None else h[None].contiguous()
        return self.code_gru(codes, before)[0]  # type: ignore[no-any-return]

    def digit_logits(self, a: Tensor, p: Tensor, d: int) -> Tensor:
        """Return the logits of digit d for contexts a (..., hidden_dim) and prefix states p (..., decoder_dim)."""
        return self.outputs[d](a * self.gates[d](p)) + self.priors[d](p)  # type: ignore[no-any-return]

    def sequence_logits(
        self, encoder_states: EncoderStates, document: Longs, step: Longs, is_code: Bools, digits: Longs
    ) -> Iterator[Tensor]:
        """Yield the logits of each digit position, given sequences of codes: of all steps for the first, then of codes.

        Rows are steps, each with its document and its number; ``digits`` (codes, code_length) belong to the steps that
        are codes, the other steps are ends.
        """
        index = torch.from_numpy(document), torch.from_numpy(step)
        n, length = len(encoder_states.states), self.config.code_length
        embeddings = [self.embed_digits(torch.from_numpy(digits[:, d]), d) for d in range(length)]
        codes = self.initial_state(n, int(step.max(initial=0)) + 1)
        codes = codes.index_put((index[0][is_code], index[1][is_code]), torch.stack(embeddings).sum(0))
        h = torch.cat([self.initial_state(n, 1), self.code_states(codes)], 1)
        a, p = self.attend(encoder_states, h)[index], h[index]  # a row per step
        yield self.digit_logits(a, p, 0)
        a, p = a[is_code], p[is_code]
        for d in range(1, length):
            p = p + embeddings[d - 1]
            yield self.digit_logits(a, p, d)

    def start(self, encoder_states: EncoderStates, m: int) -> States:
        """Return the states (h, a, p) of m empty sequences per document, each (n, m, dim)."""
        h = self.initial_state(len(encoder_states.states), m)
        return h, self.attend(encoder_states, h), h

    def next_logits(self, states: States, d: int) -> Tensor:
        """Return the logits of the next digit, which is at position d. Shape (n, m, values)."""
        return self.digit_logits(states[1], states[2], d)

    def append(self, encoder_states: EncoderStates, states: States, digits: Tensor, d: int) -> States:
        """Return the states after one more digit (n, m) at position d."""
        h, a, p = states
        p = p + self.embed_digits(digits, d)
        if d < self.config.code_length - 1:
            return h, a, p
        h = self.code_states((p - h).flatten(0, 1)[:, None], h.flatten(0, 1)).view_as(h)
        return h, self.attend(encoder_states, h), h


def _two_layers(n_inputs: int, n_outputs: int, bias: bool = True) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_inputs, n_inputs), nn.ReLU(), nn.Linear(n_inputs, n_outputs, bias=bias))


class RecurrentDecoder(Encoder):
    """Encoder and recurrent decoder of one code tree, with the methods of ``CodeDecoder`` for sequences."""

    def __init__(self, config: DecoderConfig, rng: Rng) -> None:
        super().__init__(config)
        hidden_dim, decoder_dim = config.hidden_dim, config.decoder_dim
        self.digit_embeddings = nn.Embedding(config.n_embeddings + 1, decoder_dim)  # the last is the start
        self.initial = nn.Linear(hidden_dim, decoder_dim)
        self.cell = CELLS[config.decoder](decoder_dim, decoder_dim, batch_first=True)
        self.combine = nn.Linear(decoder_dim + hidden_dim, decoder_dim)
        self.outputs = output_layers(config, decoder_dim)
        self._init_weights(rng)

    def sequence_logits(
        self, encoder_states: EncoderStates, document: Longs, step: Longs, is_code: Bools, digits: Longs
    ) -> Iterator[Tensor]:
        """Yield what ``CodeDecoder.sequence_logits`` yields."""
        n, length = len(encoder_states.states), self.config.code_length
        n_steps = int(step.max(initial=0)) + 1
        tokens = np.full((n, n_steps * length + 1), self.config.n_embeddings)  # the start, then all digits
        at = (step[is_code] * length + 1)[:, None] + np.arange(length)
        offsets = 0 if self.config.shared_embeddings else np.arange(length) * self.config.code_size
        tokens[document[is_code][:, None], at] = digits + offsets
        x = self.digit_embeddings(torch.from_numpy(tokens[:, :-1]))
        s = self.cell(x, self._split(self._initial_state(encoder_states)))[0]
        o = self._combine(encoder_states, s).view(n, n_steps, length, -1)
        yield self.outputs[0](o[document, step, 0])
        for d in range(1, length):
            yield self.outputs[d](o[document[is_code], step[is_code], d])

    def start(self, encoder_states: EncoderStates, m: int) -> States:
        """Return the states (cell, o) of m empty sequences per document, each (n, m, dim)."""
        n = len(encoder_states.states)
        state = self._initial_state(encoder_states)[:, None].expand(-1, m, -1)
        return self._step(encoder_states, state, torch.full((n, m), self.config.n_embeddings))

    def next_logits(self, states: States, d: int) -> Tensor:
        """Return the logits of the next digit, which is at position d. Shape (n, m, values)."""
        return self.outputs[d](states[1])  # type: ignore[no-any-return]

    def append(self, encoder_states: EncoderStates, states: States, digits: Tensor, d: int) -> States:
        """Return the states after one more digit (n, m) at position d."""
        tokens = digits if self.config.shared_embeddings else digits + d * self.config.code_size
        return self._step(encoder_states, states[0], tokens)

    def _step(self, encoder_states: EncoderStates, state: Tensor, tokens: Tensor) -> States:
        x = self.digit_embeddings(tokens).flatten(0, 1)[:, None]
        s, after = self.cell(x, self._split(state.flatten(0, 1)))
        after = torch.cat(after, 2) if self.config.decoder == "lstm" else after
        return after[0].view(*tokens.shape, -1), self._combine(encoder_states, s.view(*tokens.shape, -1))

    def _initial_state(self, encoder_states: EncoderStates) -> Tensor:
        """Return s_0, for an LSTM with zeros as the content of its cells. Shape (n, decoder_dim or twice that)."""
        mask = encoder_states.mask[:, :, None]
        s = torch.tanh(self.initial((encoder_states.states * mask).sum(1) / mask.sum(1)))
        return torch.cat([s, torch.zeros_like(s)], 1) if self.config.decoder == "lstm" else s

    def _split(self, state: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Convert the state (n, dim) to the form of torch's cells."""
        if self.config.decoder == "gru":
            return state[None].contiguous()
        s, cells = state[None].chunk(2, 2)
        return s.contiguous(), cells.contiguous()

    def _combine(self, encoder_states: EncoderStates, s: Tensor) -> Tensor:
        """Return the vectors o for states s (n, m, decoder_dim)."""
        return torch.tanh(self.combine(torch.cat([s, self.attend(encoder_states, s)], 2)))


SequenceDecoder = CodeDecoder | RecurrentDecoder


def build_decoder(config: DecoderConfig, rng: Rng) -> SequenceDecoder:
    """Build a decoder of this kind and size, with random weights."""
    return CodeDecoder(config, rng) if config.decoder == "gated" else RecurrentDecoder(config, rng)


def decoder_from_weights(config: DecoderConfig, weights: Floats) -> SequenceDecoder:
    """Build a trained decoder from its weights in one array."""
    decoder = build_decoder(config, np.random.default_rng(0))
    vector_to_parameters(torch.tensor(weights), decoder.parameters())
    return decoder.requires_grad_(False)
