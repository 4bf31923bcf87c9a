"""The plain Seq2Seq decoder: a GRU or an LSTM with attention that steps once per digit.

    t    number of a digit in the whole sequence; its position in its code is d = t mod D
    x_t  embedding of the digit before, of the start for the first
    s_t  state of the cell; s_0 = tanh(W_0 m + b_0) with m the mean of the encoder's states
    a_t  context vector: the attention of s_t to the encoder's states

    s_t = cell(x_t, s_{t-1}),  o_t = tanh(W [s_t; a_t] + c),  logits of digit t = U_d o_t + b_d

With ``shared_outputs`` U and b are the same for all positions: one softmax of K values and the end. With
``shared_embeddings`` a value has the same embedding at all positions.
"""

from collections.abc import Iterator

import numpy as np
import torch  # so import this module only after ``errors.require``
from torch import Tensor, nn

from labelspace.models.secseq.config import DecoderConfig
from labelspace.models.secseq.encoder import Encoder, EncoderStates, output_layers
from labelspace.types import Bools, Longs

CELLS = {"gru": nn.GRU, "lstm": nn.LSTM}


class RecurrentDecoder(Encoder):
    """Encoder and recurrent decoder of one code tree; the methods are those of ``CodeDecoder`` for sequences."""

    def __init__(self, config: DecoderConfig, rng: np.random.Generator) -> None:
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
        """As ``CodeDecoder.sequence_logits``."""
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

    def start(self, encoder_states: EncoderStates, m: int) -> tuple[Tensor, ...]:
        """The states (cell, o) of m empty sequences per document, each (n, m, dim)."""
        n = len(encoder_states.states)
        state = self._initial_state(encoder_states)[:, None].expand(-1, m, -1)
        return self._step(encoder_states, state, torch.full((n, m), self.config.n_embeddings))

    def next_logits(self, states: tuple[Tensor, ...], d: int) -> Tensor:
        """The logits of the next digit, which is at position d. Shape (n, m, values)."""
        return self.outputs[d](states[1])  # type: ignore[no-any-return]

    def append(
        self, encoder_states: EncoderStates, states: tuple[Tensor, ...], digits: Tensor, d: int
    ) -> tuple[Tensor, ...]:
        """The states after one more digit (n, m) at position d."""
        tokens = digits if self.config.shared_embeddings else digits + d * self.config.code_size
        return self._step(encoder_states, states[0], tokens)

    def _step(self, encoder_states: EncoderStates, state: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
        x = self.digit_embeddings(tokens).flatten(0, 1)[:, None]
        s, after = self.cell(x, self._split(state.flatten(0, 1)))
        after = torch.cat(after, 2) if self.config.decoder == "lstm" else after
        return after[0].view(*tokens.shape, -1), self._combine(encoder_states, s.view(*tokens.shape, -1))

    def _initial_state(self, encoder_states: EncoderStates) -> Tensor:
        """s_0, and for an LSTM zeros as the content of its cells. Shape (n, decoder_dim or twice that)."""
        mask = encoder_states.mask[:, :, None]
        s = torch.tanh(self.initial((encoder_states.states * mask).sum(1) / mask.sum(1)))
        return torch.cat([s, torch.zeros_like(s)], 1) if self.config.decoder == "lstm" else s

    def _split(self, state: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """The state (n, dim) as torch's cells take it."""
        if self.config.decoder == "gru":
            return state[None].contiguous()
        s, cells = state[None].chunk(2, 2)
        return s.contiguous(), cells.contiguous()

    def _combine(self, encoder_states: EncoderStates, s: Tensor) -> Tensor:
        """The vectors o for states s (n, m, decoder_dim)."""
        return torch.tanh(self.combine(torch.cat([s, self.attend(encoder_states, s)], 2)))
