"""The sizes of the network of a code tree; torch is not needed to know them."""

from dataclasses import dataclass

KERNEL_SIZE = 5  # words per window of the convolution
MAX_SEQUENCE = 50  # labels of a document in its sequence, unless set
CELL_GATES = {"gru": 3, "lstm": 4}


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
    decoder: str = "gated"  # or "gru" or "lstm", which step once per digit
    shared_outputs: bool = False  # one output layer for all positions, so that the end is a value of each
    shared_embeddings: bool = False  # one embedding per value, whatever its position

    @property
    def output_sizes(self) -> list[int]:
        """The values of each digit, and the end token."""
        return [self.code_size + (self.sequences and (self.shared_outputs or d == 0)) for d in range(self.code_length)]

    @property
    def n_embeddings(self) -> int:
        """Digits that have an embedding each."""
        return self.code_size * (1 if self.shared_embeddings else self.code_length)

    @property
    def n_weights(self) -> int:
        """The number of weights of the decoder, with those of the encoder."""
        words, h, d, sizes = self.word_dim, self.hidden_dim, self.decoder_dim, self.output_sizes
        n = h if self.encoder == "bag" else d * h + h  # bias, or attention
        if self.encoder == "gru":
            n += 2 * _cell_weights("gru", words, h // 2)
        if self.encoder == "convolution":
            n += h * words * KERNEL_SIZE + h
        inputs = h if self.decoder == "gated" else d  # of the output layers
        n += sum(inputs * size + size for size in (sizes[:1] if self.shared_outputs else sizes))
        n += self.n_embeddings * d
        if self.decoder != "gated":  # the start, s_0, the cell, o
            return n + d + h * d + d + _cell_weights(self.decoder, d, d) + (d + h) * d + d
        n += self.sequences * _cell_weights("gru", d, d)
        gate = d * d + d + d * h + h
        return n + sum(gate + d * d + d + d * size for size in sizes)


def _cell_weights(cell: str, inputs: int, units: int) -> int:
    return CELL_GATES[cell] * units * (inputs + units + 2)
