"""Codes and decoders small enough to enumerate, and the same computed prefix by prefix in plain Python."""

import numpy as np
import scipy.sparse as sp
import torch

from labelspace.labels.codes import Codes, CodeTree
from labelspace.models.secseq.config import DecoderConfig
from labelspace.models.secseq.network import CodeDecoder, EncoderStates

HIDDEN_DIM, DECODER_DIM = 6, 4

# Codes of three digits below 3: prefix 0 branches at both digits, 1 and 2 do not; labels 5, 6 and 7 share a code.
CODES = np.array(
    [[0, 0, 0], [0, 0, 2], [0, 1, 1], [0, 2, 1], [1, 1, 0], [2, 0, 1], [2, 0, 1], [2, 0, 1], [0, 0, 1]], np.int32
)


def code_tree(digits=CODES, code_size=3):
    return CodeTree.from_codes(Codes(digits, code_size))


def random_decoder(code_length=3, code_size=3, sequences=False, encoder="bag", seed=0, spread=0.5):
    """A decoder with no weight at 0."""
    word_dim = HIDDEN_DIM if encoder == "bag" else 5
    config = DecoderConfig(encoder, word_dim, HIDDEN_DIM, DECODER_DIM, code_size, code_length, sequences)
    decoder = CodeDecoder(config, np.random.default_rng(seed))
    rng = np.random.default_rng(seed + 1)
    with torch.no_grad():
        for weights in decoder.parameters():
            weights += torch.from_numpy(rng.uniform(-spread, spread, weights.shape).astype(np.float32))
    return decoder


def random_states(decoder, n, seed=5):
    """Encoded documents of different lengths; the third has no words."""
    rng = np.random.default_rng(seed)
    is_bag = decoder.config.encoder == "bag"
    lengths = np.array([1 if is_bag else (i + 2) % 4 for i in range(n)], np.int32)
    embeddings = rng.standard_normal((lengths.sum(), decoder.config.word_dim)).astype(np.float32)
    return decoder.encode(torch.from_numpy(embeddings), lengths)


def one_document(encoder_states, row):
    return EncoderStates(encoder_states.states[row : row + 1], encoder_states.mask[row : row + 1])


def random_labels(n, n_labels, seed=6, unseen=()):
    """Labels per document: the first has two with the same code, if labels are those of CODES; the second has none."""
    Y = np.random.default_rng(seed).random((n, n_labels)) < 0.4
    Y[0, 5:8:2] = True
    Y[1], Y[:, list(unseen)] = False, False
    return sp.csr_matrix(Y.astype(np.float32))


def next_digits(codes, prefix):
    """The digits that exist after a prefix."""
    return sorted({code[len(prefix)] for code in codes.tolist() if tuple(code[: len(prefix)]) == tuple(prefix)})


def prefix_state(decoder, prefix):
    """p: the sum of the embeddings of a prefix's digits."""
    p = decoder.initial_state(1)[0]
    for d, digit in enumerate(prefix):
        p = p + decoder.embed_digits(torch.tensor(digit), d)
    return p


def prefix_of(tree, node):
    """The digits from the root to a node."""
    digits = []
    while node > 0:
        digits.insert(0, int(tree.digit[node]))
        node = tree.parent[node]
    return digits
