import math

import numpy as np
import pytest

from labelspace.data.synthetic import kernels
from labelspace.data.synthetic.kernels import DrawnLabels, Words, synthetic_features
from labelspace.kernels.random_numbers import uniform_from_key

N_FEATURES, TOPICS, SHARES = 300, (3, 20), (0.3, 0.3)
KEY, WORD_KEY = 2**63 + 5, 2**64 - 9  # sums wrap around
LABELS, PLACES, LENGTHS = ([4], [0, 4, 7], [7, 2_000_000]), (0.0, 0.99, 0.4), (20, 60, 5)


def uniform(key):
    return float(uniform_from_key(np.uint64(key % 2**64)))


def word(owner, index):
    return int(N_FEATURES * uniform(WORD_KEY + owner * 32 + index) ** 1.5)


def document_twin(number, labels, place, length, by_rank, weights):
    counts, draw = {}, KEY + number * 2**20
    while len(counts) < length:
        kind, choice, index = (uniform(draw + i) for i in range(3))
        draw += 3
        if kind < SHARES[0]:
            rank = word(labels[int(choice * len(labels))], int(index * 8))
        elif kind < sum(SHARES):
            level = int(choice * 2)
            rank = word(int(place * TOPICS[level]) + 4_000_000_000 * (level + 1), int(index * 32))
        else:
            rank = int(20 * (math.exp(choice * math.log1p(N_FEATURES / 20)) - 1))
        counts[by_rank[rank]] = counts.get(by_rank[rank], 0) + 1
    values = {f: (1 + math.log(count)) * weights[f] for f, count in sorted(counts.items())}
    norm = math.sqrt(sum(value**2 for value in values.values()))
    return list(values), [value / norm for value in values.values()]


def features(first, rows, by_rank, weights):
    labels = LABELS[rows]
    y_indptr = np.cumsum([0, *map(len, labels)]).astype(np.int32)
    y_indices = np.concatenate(labels).astype(np.int32)
    places, lengths = np.array(PLACES[rows], np.float32), np.array(LENGTHS[rows], np.int32)
    words = Words(np.uint64(WORD_KEY), by_rank, weights, np.array(SHARES), np.array(TOPICS))
    return synthetic_features(first, np.uint64(KEY), DrawnLabels(y_indptr, y_indices, places, lengths), words)


@pytest.fixture
def words():
    rng = np.random.default_rng(1)
    return rng.permutation(N_FEATURES).astype(np.int32), rng.uniform(1, 9, N_FEATURES).astype(np.float32)


def test_documents_equal_those_of_plain_python(words):
    indptr, indices, values = features(10, slice(None), *words)
    assert np.diff(indptr).tolist() == list(LENGTHS)
    for row, given in enumerate(zip(LABELS, PLACES, LENGTHS, strict=True)):
        expected, weighed = document_twin(10 + row, *given, *words)
        assert indices[indptr[row] : indptr[row + 1]].tolist() == expected
        assert values[indptr[row] : indptr[row + 1]] == pytest.approx(weighed, rel=1e-5)


def test_a_document_is_the_same_in_any_block(words):
    indptr, indices, values = features(0, slice(None), *words)
    _, last_indices, last_values = features(2, slice(2, 3), *words)
    assert indices[indptr[2] :].tolist() == last_indices.tolist()
    assert values[indptr[2] :].tolist() == last_values.tolist()


def test_a_document_that_finds_too_few_features_is_shorter():
    one = np.zeros(1, np.int32), np.ones(1, np.float32)
    indptr, indices, values = features(0, slice(None), *one)
    assert indptr.tolist() == [0, 1, 2, 3]
    assert (indices.tolist(), values.tolist()) == ([0, 0, 0], [1, 1, 1])


def test_draws_of_documents_do_not_overlap():
    longest = 6 * 700  # words of the longest document of any shape
    assert kernels._MAX_TRIES * kernels._DRAWS * longest < kernels.DRAWS_PER_DOCUMENT
