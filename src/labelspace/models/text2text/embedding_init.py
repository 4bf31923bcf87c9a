"""Initial token embeddings from co-occurrence: near the embeddings of the labels of the documents that have the token.

The network then knows from the first step which labels a word speaks for; from random embeddings, on few documents, it
takes several times as many epochs to learn that.
"""

import numpy as np
import scipy.sparse as sp

from labelspace.types import Csr, Floats

PSEUDO_COUNT = 4.0  # documents: with so many, the embedding of a token is half co-occurrence, half random
MAX_TRUST = 0.9  # largest weight of co-occurrence


def cooccurrence_init(tokens: Csr, labels: Csr, label_embeddings: Floats, random_embeddings: Floats) -> Floats:
    """Embeddings of the tokens of documents (n, n_tokens) that carry labels (n, n_labels).

    A label's weight grows with its share among a token's documents relative to its share among all (positive pointwise
    mutual information). The rarer a token, the nearer it stays to its random embedding.

    >>> tokens, labels = sp.csr_matrix(np.eye(2)), sp.csr_matrix([[1.0, 0.0], [0.0, 1.0]])
    >>> label_embeddings = np.array([[5.0, 0.0], [0.0, -5.0]], np.float32)
    >>> np.sign(cooccurrence_init(tokens, labels, label_embeddings, np.array([[0.0, 1.0], [1.0, 0.0]]))).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    tokens, labels = _binary(tokens), _binary(labels)
    prior = np.asarray(labels.mean(axis=0)).ravel()
    documents = np.asarray(tokens.sum(axis=0)).ravel()
    pairs = (tokens.T @ labels).tocoo()
    share = (pairs.data + PSEUDO_COUNT * prior[pairs.col]) / (documents[pairs.row] + PSEUDO_COUNT)
    weight = np.sqrt(share) * np.maximum(np.log(share / prior[pairs.col]), 0.0)
    mean = sp.csr_matrix((weight.astype(np.float32), (pairs.row, pairs.col)), shape=pairs.shape) @ label_embeddings
    norm = np.sqrt((mean * mean).mean(axis=1, keepdims=True))
    trust = np.where(norm > 0, MAX_TRUST * (documents / (documents + PSEUDO_COUNT))[:, None], 0.0)
    scale = np.sqrt((random_embeddings * random_embeddings).mean()) / np.where(norm > 0, norm, 1.0)
    mixed = trust * scale * mean + np.sqrt(1.0 - trust * trust) * random_embeddings
    return np.asarray(mixed, np.float32)


def _binary(matrix: Csr) -> Csr:
    """A copy with every entry 1."""
    binary = matrix.copy()
    binary.sum_duplicates()
    binary.data[:] = 1.0
    return binary
