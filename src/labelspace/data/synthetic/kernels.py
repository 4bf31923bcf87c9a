"""Draw the features of synthetic documents from the words of their labels, of their topics, and of all documents.

A word of a label or topic is a hash of its number, not stored. Each document has draws of its own, which depend on its
number only: documents are the same in whatever blocks they are drawn.
"""

import math
from typing import NamedTuple

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.random_numbers import uniform_from_key
from labelspace.types import Doubles, Floats, Ints, Longs

LABEL_WORDS = 8  # words of a label: more make a label harder to learn from few documents
TOPIC_WORDS = 32  # words of a topic: more make topics less alike
_RARE = 1.5  # exponent of the rank of such a word: above 1 prefers frequent ones
_COMMON = 20.0  # ranks at the head of Zipf's law that are about as frequent as each other
_TOPICS = 4_000_000_000  # the number of the first topic, above all labels; times its level from 1
_DRAWS = 3  # random numbers per word
DRAWS_PER_DOCUMENT = 2**20  # at most, so that no two documents share draws
_MAX_TRIES = 8  # per feature of a document: a document with few different words ends then


class Words(NamedTuple):
    """What all documents share: the words of labels and topics, and the features by frequency."""

    key: np.uint64  # of the words of labels and topics
    by_rank: Ints  # (n_features,) the features, most frequent first
    weights: Floats  # (n_features,)
    shares: Doubles  # (2,) the shares of draws that are words of labels, and of topics
    topics: Longs  # (n_levels,) the number of topics of each level


class DrawnLabels(NamedTuple):
    """The labels of documents, their places on the circle of labels, and their lengths."""

    indptr: Ints
    indices: Ints
    places: Floats  # (n,) in [0, 1)
    lengths: Ints  # (n,) distinct features to draw


@kernel()
def _word(key: np.uint64, owner: int, index: int, n_features: int) -> int:
    """Return the rank of a word of a label or topic."""
    drawn = uniform_from_key(key + np.uint64(owner * TOPIC_WORDS + index))
    return int(n_features * drawn**_RARE)


@kernel()
def _common_word(drawn: float, n_features: int) -> int:
    """Return a rank by Zipf's law."""
    return min(int(_COMMON * (math.exp(drawn * math.log1p(n_features / _COMMON)) - 1.0)), n_features - 1)


@kernel()
def _draw_word(words: Words, draw: np.uint64, labels: Ints, place: float) -> int:
    """Return the rank of one word of a document with these labels."""
    shares, topics, n_features = words.shares, words.topics, len(words.by_rank)
    kind = uniform_from_key(draw)
    choice = uniform_from_key(draw + np.uint64(1))
    index = uniform_from_key(draw + np.uint64(2))
    if kind < shares[0]:
        owner = int(choice * len(labels))
        return _word(words.key, labels[owner], int(index * LABEL_WORDS), n_features)
    if kind < shares[0] + shares[1]:
        level = int(choice * len(topics))
        number = int(place * topics[level]) + _TOPICS * (level + 1)
        return _word(words.key, number, int(index * TOPIC_WORDS), n_features)
    return _common_word(choice, n_features)


@kernel()
def _draw_features(words: Words, draw: np.uint64, labels: Ints, place: float, counts: Ints, out: Ints) -> int:
    """Fill ``out`` with distinct features and ``counts`` with their draws; return how many were found."""
    found, by_rank = 0, words.by_rank
    for _ in range(_MAX_TRIES * len(out)):
        feature = by_rank[_draw_word(words, draw, labels, place)]
        draw += np.uint64(_DRAWS)
        if counts[feature] == 0:
            out[found] = feature
            found += 1
        counts[feature] += 1
        if found == len(out):
            break
    out[:found].sort()
    return found


@kernel()
def _weigh(features: Ints, counts: Ints, weights: Floats, out: Floats) -> None:
    """Write the values of a row of unit length to ``out``, and set its counts to 0."""
    squares = 0.0
    for pos in range(len(features)):
        feature = features[pos]
        out[pos] = (1.0 + math.log(counts[feature])) * weights[feature]
        squares += out[pos] * out[pos]
        counts[feature] = 0
    for pos in range(len(features)):
        out[pos] /= math.sqrt(squares)


@kernel()
def synthetic_features(first: int, key: np.uint64, documents: DrawnLabels, words: Words) -> tuple[Longs, Ints, Floats]:
    """Return CSR arrays (indptr, indices, values) of unit rows for the documents ``first``, ``first + 1``, ...

    By its place, a document is in one topic of each level. The value of a feature is (1 + ln count) times its weight,
    over the norm of the row.
    """
    y_indptr, y_indices, lengths = documents.indptr, documents.indices, documents.lengths
    n, total = len(lengths), 0
    for row in range(n):
        total += lengths[row]
    indptr = np.zeros(n + 1, np.int64)
    indices, values = np.empty(total, np.int32), np.empty(total, np.float32)
    counts = np.zeros(len(words.by_rank), np.int32)
    for row in range(n):
        labels = y_indices[y_indptr[row] : y_indptr[row + 1]]
        start = indptr[row]
        out = indices[start : start + lengths[row]]
        draw = key + np.uint64(first + row) * np.uint64(DRAWS_PER_DOCUMENT)
        end = start + _draw_features(words, draw, labels, documents.places[row], counts, out)
        _weigh(indices[start:end], counts, words.weights, values[start:end])
        indptr[row + 1] = end
    return indptr, indices[: indptr[n]], values[: indptr[n]]
