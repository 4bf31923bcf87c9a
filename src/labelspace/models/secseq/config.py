"""The sizes of the network of a code tree, and the documents that it reads; this module does not import torch."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy.sparse as sp

from labelspace.estimator.parameter_constraints import Constraint, integer
from labelspace.features.sequences import PAD, UNKNOWN
from labelspace.kernels import large_arrays
from labelspace.training.sparse_layers import Batch, batch_rows
from labelspace.types import Csr, Ints, Longs, Rng

KERNEL_SIZE = 5  # words per window of the convolution
MAX_SEQUENCE = 50  # labels of a document in its sequence, unless set
EVEN = Constraint("an even number of at least 2", lambda value: integer(2).holds(value) and value % 2 == 0)
CELL_GATES = {"gru": 3, "lstm": 4}


@dataclass(frozen=True)
class DecoderConfig:
    """The settings that the number of weights depends on; the number of labels is not among them."""

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
        """Return the number of values of each digit, including the end token."""
        return [self.code_size + (self.sequences and (self.shared_outputs or d == 0)) for d in range(self.code_length)]

    @property
    def n_embeddings(self) -> int:
        """Return the number of digits that have an embedding each."""
        return self.code_size * (1 if self.shared_embeddings else self.code_length)

    @property
    def n_weights(self) -> int:
        """Return the number of weights of the decoder and the encoder."""
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


DOCUMENT_BLOCK = 2**12  # documents that are read at a time, which bounds memory


@dataclass(frozen=True)
class EncoderInputs:
    """Documents as rows of a sparse table: document i has rows starts[i] to starts[i + 1] - 1.

    >>> EncoderInputs.from_token_ids(np.array([[3, 1, 0], [4, 3, 3]], np.int32), n_tokens=5).starts.tolist()
    [0, 2, 5]
    """

    table: Csr  # (n_rows, n_features or n_tokens)
    starts: Longs  # (n + 1,)

    @classmethod
    def from_features(cls, X: Csr) -> Self:
        """Take one row of features per document."""
        return cls(X, np.arange(X.shape[0] + 1))

    @classmethod
    def from_token_ids(cls, ids: Ints, n_tokens: int) -> Self:
        """Make a row per token of ids (n, max_length) with a 1 in the token's column; unknown words are empty rows."""
        is_known, columns, lengths = large_arrays.growing(np.bool_), large_arrays.growing(np.int32), [np.zeros(0, int)]
        for part in large_arrays.blocks(len(ids), DOCUMENT_BLOCK):
            is_token = ids[part] != PAD
            tokens = ids[part][is_token]
            is_known.append(tokens != UNKNOWN)
            columns.append(tokens[tokens != UNKNOWN])
            lengths.append(is_token.sum(axis=1))
        known, indices = is_known.finish(), columns.finish()
        ones, indptr = large_arrays.empty(len(indices), np.float32), large_arrays.empty(len(known) + 1, np.int32)
        ones[:], indptr[0] = 1.0, 0
        np.cumsum(known, out=indptr[1:])
        table = sp.csr_matrix((ones, indices, indptr), shape=(len(known), n_tokens))
        return cls(table, np.append(0, np.cumsum(np.concatenate(lengths))))

    @property
    def n(self) -> int:
        """Return the number of documents."""
        return len(self.starts) - 1

    def batch(self, documents: Ints, dropout: float, rng: Rng) -> tuple[Batch, Ints]:
        """Return the rows of some documents, with values dropped at random, and the number of rows per document."""
        lengths = np.diff(self.starts)[documents]
        before = np.cumsum(lengths) - lengths
        rows = np.repeat(self.starts[documents] - before, lengths) + np.arange(lengths.sum())
        return batch_rows(self.table, rows.astype(np.int32), dropout, rng), lengths.astype(np.int32)
