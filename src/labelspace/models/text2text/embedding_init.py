"""Vectors of tokens before a net has learned anything: near those of the names that their documents were given.

A net that begins so knows from the first step what a word speaks for; from random vectors it takes several times as
many passes over few documents to get there.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelspace.types import Csr, Floats

DOUBT = 4.0  # documents: a token of so many is half what its company says, half chance
MOST = 0.9  # of what a vector is by its company


def cooccurrence_init(tokens: Csr, names: Csr, of_names: Floats, by_chance: Floats) -> Floats:
    """Vectors of tokens (n, n_tokens) that stand in documents with names (n, n_names) which have vectors.

    A name counts for as much as its share among a token's documents is larger than among all. The rarer a token, the
    less its company says, and the nearer it stays to a vector by chance.

    >>> tokens, names = sp.csr_matrix(np.eye(2)), sp.csr_matrix([[1.0, 0.0], [0.0, 1.0]])
    >>> of_names, by_chance = np.array([[5.0, 0.0], [0.0, -5.0]], np.float32), np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> np.sign(cooccurrence_init(tokens, names, of_names, by_chance)).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    tokens, names = _marked(tokens), _marked(names)
    common = np.asarray(names.mean(axis=0)).ravel()
    documents = np.asarray(tokens.sum(axis=0)).ravel()
    pairs = (tokens.T @ names).tocoo()
    share = (pairs.data + DOUBT * common[pairs.col]) / (documents[pairs.row] + DOUBT)
    weight = np.sqrt(share) * np.maximum(np.log(share / common[pairs.col]), 0.0)
    found = sp.csr_matrix((weight.astype(np.float32), (pairs.row, pairs.col)), shape=pairs.shape) @ of_names
    length = np.sqrt((found * found).mean(axis=1, keepdims=True))
    trust = np.where(length > 0, MOST * (documents / (documents + DOUBT))[:, None], 0.0)
    scale = np.sqrt((by_chance * by_chance).mean()) / np.where(length > 0, length, 1.0)  # as long as those by chance
    mixed = trust * scale * found + np.sqrt(1.0 - trust * trust) * by_chance
    return np.asarray(mixed, np.float32)


def _marked(table: Csr) -> Csr:
    """The same as 0 and 1; the caller's table is left as it is."""
    found = table.copy()
    found.sum_duplicates()
    found.data[:] = 1.0
    return found
