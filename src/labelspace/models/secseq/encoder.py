"""The encoder of documents, which every decoder is built on, and its attention.

With encoder ``bag`` a document is one vector. With ``gru`` and ``convolution`` it is a hidden state per word, and the
context vector a is their mean, weighted by the attention of the decoder's state to them.
"""

from typing import NamedTuple

import numpy as np
import torch  # so import this module only after ``errors.require``
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from labelspace.models.secseq.config import KERNEL_SIZE, DecoderConfig
from labelspace.types import Ints


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
        """The context vectors a (n, m, hidden_dim) for states h (n, m, decoder_dim) of the decoder."""
        states = encoder_states.states
        if self.config.encoder == "bag":
            return states.expand(-1, h.shape[1], -1)
        scores = self.attention(h) @ states.transpose(1, 2) / self.config.hidden_dim**0.5  # (n, m, words)
        weights = scores.masked_fill(~encoder_states.mask[:, None], -torch.inf).softmax(2)
        a: Tensor = weights @ states
        return a

    def _init_weights(self, rng: np.random.Generator) -> None:
        """Random weights, drawn from ``rng`` alone; biases are 0."""
        with torch.no_grad():
            for name, weights in self.named_parameters():
                if weights.ndim == 1:
                    weights.zero_()
                    continue
                bound = 1.0 if name.startswith("digit_embeddings") else weights[0].numel() ** -0.5
                weights.copy_(torch.from_numpy(rng.uniform(-bound, bound, weights.shape).astype(np.float32)))


def output_layers(config: DecoderConfig, n_inputs: int) -> nn.ModuleList:
    """The output layer of each digit position: one of its own, or the same for all."""
    if config.shared_outputs:
        return nn.ModuleList([nn.Linear(n_inputs, config.output_sizes[0])] * config.code_length)
    return nn.ModuleList(nn.Linear(n_inputs, size) for size in config.output_sizes)
