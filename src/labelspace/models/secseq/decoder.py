"""The gated decoder: it scores the next digit of a code given the document and the digits before.

    d         position of a digit in its code
    a         context vector of the document
    h         hidden state of a GRU over the codes generated so far; 0 unless sequences are generated
    p         prefix state: h plus the embeddings of the digits of the current code so far
    g_d, v_d  networks of two layers: gate and prior

The logits of digit d are  U_d (a * g_d(p)) + v_d(p) + b_d.  The product lets one output layer mean different things
after different prefixes. With ``shared_outputs``, U and b are the same for all d.
"""

from collections.abc import Iterator

import numpy as np
import torch  # so import this module only after ``errors.require``
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from labelspace.models.secseq.config import DecoderConfig
from labelspace.models.secseq.encoder import Encoder, EncoderStates, output_layers
from labelspace.models.secseq.recurrent_decoder import RecurrentDecoder
from labelspace.types import Bools, Floats, Longs


class CodeDecoder(Encoder):
    """Encoder and gated decoder of one code tree."""

    def __init__(self, config: DecoderConfig, rng: np.random.Generator) -> None:
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

    def sequence_logits(
        self, encoder_states: EncoderStates, document: Longs, step: Longs, is_code: Bools, digits: Longs
    ) -> Iterator[Tensor]:
        """Given sequences of codes, the logits of each digit position: of all steps for the first, then of codes.

        Rows are steps, each of a document and with a number; ``digits`` (codes, code_length) are those of the steps
        that are codes, the others are ends.
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

    def start(self, encoder_states: EncoderStates, m: int) -> tuple[Tensor, ...]:
        """The states (h, a, p) of m empty sequences per document, each (n, m, dim)."""
        h = self.initial_state(len(encoder_states.states), m)
        return h, self.attend(encoder_states, h), h

    def next_logits(self, states: tuple[Tensor, ...], d: int) -> Tensor:
        """The logits of the next digit, which is at position d. Shape (n, m, values)."""
        return self.digit_logits(states[1], states[2], d)

    def append(
        self, encoder_states: EncoderStates, states: tuple[Tensor, ...], digits: Tensor, d: int
    ) -> tuple[Tensor, ...]:
        """The states after one more digit (n, m) at position d."""
        h, a, p = states
        p = p + self.embed_digits(digits, d)
        if d < self.config.code_length - 1:
            return h, a, p
        h = self.code_states((p - h).flatten(0, 1)[:, None], h.flatten(0, 1)).view_as(h)
        return h, self.attend(encoder_states, h), h


SequenceDecoder = CodeDecoder | RecurrentDecoder


def build_decoder(config: DecoderConfig, rng: np.random.Generator) -> SequenceDecoder:
    """A decoder of this kind and size, with random weights."""
    return CodeDecoder(config, rng) if config.decoder == "gated" else RecurrentDecoder(config, rng)


def decoder_from_weights(config: DecoderConfig, weights: Floats) -> SequenceDecoder:
    """A trained decoder from its weights in one array."""
    decoder = build_decoder(config, np.random.default_rng(0))
    vector_to_parameters(torch.tensor(weights), decoder.parameters())
    return decoder.requires_grad_(False)


def _two_layers(n_inputs: int, n_outputs: int, bias: bool = True) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_inputs, n_inputs), nn.ReLU(), nn.Linear(n_inputs, n_outputs, bias=bias))
