"""Draw the features of synthetic documents from the words of their labels, of their topics, and of all documents.

A word of a label or topic is a hash of its number, not stored. Each document has draws of its own, which depend on its
number only: documents are the same in whatever blocks they are drawn.
"""

import math

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.random_numbers import uniform_from_key
from labelspace.types import Doubles, Floats, Ints, Longs

LABEL_WORDS = 8  # words of a label
TOPIC_WORDS = 32  # words of a topic
_RARE = 1.5  # exponent of the rank of such a word: above 1 prefers frequent ones
_COMMON = 20.0  # ranks at the head of Zipf's law that are about as frequent as each other
_TOPICS = 4_000_000_000  # the number of the first topic, above all labels; times its level from 1
_DRAWS = 3  # random numbers per word
DRAWS_PER_DOCUMENT = 2**20  # at most
_MAX_TRIES = 8  # per feature of a document


@kernel()
def _word(key: np.uint64, owner: int, index: int, n_features: int) -> int:
    """The rank of a word of a label or topic."""
    drawn = uniform_from_key(key + np.uint64(owner * TOPIC_WORDS + index))
    return int(n_features * drawn**_RARE)


@kernel()
def _common_word(drawn: float, n_features: int) -> int:
    """A rank by Zipf's law."""
    return min(int(_COMMON * (math.exp(drawn * math.log1p(n_features / _COMMON)) - 1.0)), n_features - 1)


@kernel()
def _draw_word(
    key: np.uint64, draw: np.uint64, labels: Ints, place: float, shares: Doubles, topics: Longs, n_features: int
) -> int:
    """The rank of one word of a document with these labels; ``key`` is that of the words."""
    kind = uniform_from_key(draw)
    choice = uniform_from_key(draw + np.uint64(1))
    index = uniform_from_key(draw + np.uint64(2))
    if kind < shares[0]:
        owner = int(choice * len(labels))
        return _word(key, labels[owner], int(index * LABEL_WORDS), n_features)
    if kind < shares[0] + shares[1]:
        level = int(choice * len(topics))
        number = int(place * topics[level]) + _TOPICS * (level + 1)
        return _word(key, number, int(index * TOPIC_WORDS), n_features)
    return _common_word(choice, n_features)


@kernel()
def _draw_features(
    word_key: np.uint64,
    draw: np.uint64,
    labels: Ints,
    place: float,
    shares: Doubles,
    topics: Longs,
    by_rank: Ints,
    counts: Ints,
    out: Ints,
) -> int:
    """Fill ``out`` with distinct features and ``counts`` with their draws; returns how many were found."""
    found = 0
    for _ in range(_MAX_TRIES * len(out)):
        feature = by_rank[_draw_word(word_key, draw, labels, place, shares, topics, len(by_rank))]
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
    """The values of a row of unit length; sets its counts to 0."""
    squares = 0.0
    for pos in range(len(features)):
        feature = features[pos]
        out[pos] = (1.0 + math.log(counts[feature])) * weights[feature]
        squares += out[pos] * out[pos]
        counts[feature] = 0
    for pos in range(len(features)):
        out[pos] /= math.sqrt(squares)


@kernel()
def synthetic_features(
    first: int,
    key: np.uint64,
    word_key: np.uint64,
    y_indptr: Ints,
    y_indices: Ints,
    positions: Floats,
    lengths: Ints,
    topics: Longs,
    shares: Doubles,
    by_rank: Ints,
    weights: Floats,
) -> tuple[Longs, Ints, Floats]:
    """CSR arrays (indptr, indices, values) of unit rows for the documents ``first``, ``first + 1``, ...

    A document has ``lengths`` distinct features, its labels, and its place in [0, 1): of each level with ``topics``
    topics it is in one. ``shares`` of its draws are words of labels and of topics; ``by_rank`` are the features by
    rank, ``weights`` theirs. The value is (1 + ln count) times the weight, over the norm of the row.
    """
    n, total = len(lengths), 0
    for row in range(n):
        total += lengths[row]
    indptr = np.zeros(n + 1, np.int64)
    indices, values = np.empty(total, np.int32), np.empty(total, np.float32)
    counts = np.zeros(len(by_rank), np.int32)
    for row in range(n):
        labels = y_indices[y_indptr[row] : y_indptr[row + 1]]
        start = indptr[row]
        out = indices[start : start + lengths[row]]
        draw = key + np.uint64(first + row) * np.uint64(DRAWS_PER_DOCUMENT)
        end = start + _draw_features(word_key, draw, labels, positions[row], shares, topics, by_rank, counts, out)
        _weigh(indices[start:end], counts, weights, values[start:end])
        indptr[row + 1] = end
    return indptr, indices[: indptr[n]], values[: indptr[n]]
