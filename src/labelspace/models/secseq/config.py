"""The sizes of the network of a code tree; torch is not needed to know them."""

from dataclasses import dataclass

KERNEL_SIZE = 5  # words per window of the convolution


@dataclass(frozen=True)
class DecoderConfig:
    """What the number of weights depends on; the number of labels is not part of it."""

    encoder: str  # "bag", "gru" or "convolution"
    word_dim: int  # of the embedding of a word or feature
    hidden_dim: int  # of a and of the encoder's hidden states
    decoder_dim: int  # of h and p
    code_size: int  # values per digit
    code_length: int  # digits per code
    sequences: bool  # several codes and an end token, which is one more value of the first digit

    @property
    def output_sizes(self) -> list[int]:
        """The values of each digit, and the end token."""
        return [self.code_size + (self.sequences and d == 0) for d in range(self.code_length)]

    @property
    def n_weights(self) -> int:
        """The number of weights of a ``CodeDecoder``."""
        words, h, d = self.word_dim, self.hidden_dim, self.decoder_dim
        n = h if self.encoder == "bag" else d * h + h  # bias, or attention
        if self.encoder == "gru":
            n += 2 * _gru_weights(words, h // 2)
        if self.encoder == "convolution":
            n += h * words * KERNEL_SIZE + h
        n += self.code_length * self.code_size * d + self.sequences * _gru_weights(d, d)
        gate = d * d + d + d * h + h
        return n + sum(gate + h * size + size + d * d + d + d * size for size in self.output_sizes)


def _gru_weights(inputs: int, units: int) -> int:
    return 3 * units * (inputs + units + 2)
