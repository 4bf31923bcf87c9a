"""Codes and writers that are small enough to go through prefix by prefix, and how that is done in plain Python."""

import numpy as np
import scipy.sparse as sp
import torch

from labelspace.labels.codes import Codes, CodeTree
from labelspace.models.secseq.decoder import CodeDecoder, Shape

HIDDEN, MEMORY = 6, 4

# Codes of three digits below 3: 0.. parts at both digits, 1.. and 2.. have one way on; labels 5, 6 and 7 share one.
CODES = np.array(
    [[0, 0, 0], [0, 0, 2], [0, 1, 1], [0, 2, 1], [1, 1, 0], [2, 0, 1], [2, 0, 1], [2, 0, 1], [0, 0, 1]], np.int32
)


def code_tree(digits=CODES, width=3):
    return CodeTree.of(Codes(digits, width))


def stirred_writer(digits=3, width=3, sequences=False, encoder="bag", seed=0, spread=0.5):
    """A writer with no weight at 0."""
    word = HIDDEN if encoder == "bag" else 5
    writer = CodeDecoder(Shape(encoder, word, HIDDEN, MEMORY, width, digits, sequences), np.random.default_rng(seed))
    rng = np.random.default_rng(seed + 1)
    with torch.no_grad():
        for weights in writer.parameters():
            weights += torch.from_numpy(rng.uniform(-spread, spread, weights.shape).astype(np.float32))
    return writer


def memory_of(writer, n, seed=5):
    """Documents as they were read; of words, the first ones have some and the third has none."""
    rng = np.random.default_rng(seed)
    bag = writer.shape.encoder == "bag"
    lengths = np.array([1 if bag else (i + 2) % 4 for i in range(n)], np.int32)
    vectors = rng.standard_normal((lengths.sum(), writer.shape.word)).astype(np.float32)
    return writer.read(torch.from_numpy(vectors), lengths)


def labels_of(n, n_labels, seed=6, unseen=()):
    """Some labels a document: the first has two of one code, where labels are those of CODES; the second has none."""
    Y = np.random.default_rng(seed).random((n, n_labels)) < 0.4
    Y[0, 5:8:2] = True
    Y[1], Y[:, list(unseen)] = False, False
    return sp.csr_matrix(Y.astype(np.float32))


def digits_after(codes, prefix):
    """The digits that exist after a prefix."""
    return sorted({code[len(prefix)] for code in codes.tolist() if tuple(code[: len(prefix)]) == tuple(prefix)})


def state_of(writer, prefix):
    """p: the sum of the vectors of the digits that are written."""
    p = writer.blank(1)[0]
    for place, digit in enumerate(prefix):
        p = p + writer.of_digits(torch.tensor(digit), place)
    return p
