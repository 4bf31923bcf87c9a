"""Vectors of tokens before a net has learned anything: near those of the names that their documents were given.

A net that begins so knows from the first step what a word speaks for; from random vectors it takes several times as
many passes over few documents to get there.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelspace.types import Csr, Floats

DOUBT = 3.0  # documents that the share of a name in all documents counts for in that of a token


def vectors_by_company(tokens: Csr, names: Csr, vectors: Floats) -> Floats:
    """The vectors of tokens (n, n_tokens) by those of names (n, n_names) in the same documents: root mean square 1.

    A name counts for as much as its share among a token's documents is larger than among all; what stands nowhere is 0.

    >>> tokens, names = sp.csr_matrix(np.eye(2)), sp.csr_matrix(np.eye(2))
    >>> vectors_by_company(tokens, names, np.array([[1.0, 0.0], [0.0, -1.0]], np.float32)).astype(int).tolist()
    [[1, 0], [0, -1]]
    """
    tokens, names = _marked(tokens), _marked(names)
    common = np.asarray(names.mean(axis=0)).ravel()
    documents = np.asarray(tokens.sum(axis=0)).ravel()
    pairs = (tokens.T @ names).tocoo()
    share = (pairs.data + DOUBT * common[pairs.col]) / (documents[pairs.row] + DOUBT)
    weight = np.sqrt(share) * np.maximum(np.log(share / common[pairs.col]), 0.0)
    found = sp.csr_matrix((weight.astype(np.float32), (pairs.row, pairs.col)), shape=pairs.shape) @ vectors
    length = np.sqrt((found * found).mean(axis=1, keepdims=True))
    return np.asarray(found / np.where(length > 0, length, 1.0), np.float32)


def _marked(table: Csr) -> Csr:
    """The same as 0 and 1; the caller's table is left as it is."""
    found = table.copy()
    found.sum_duplicates()
    found.data[:] = 1.0
    return found
