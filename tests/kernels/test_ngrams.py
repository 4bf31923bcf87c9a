"""N-gram kernels against twins in plain Python."""

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest

from labelspace.kernels.ngrams import extend, hashed_columns, index_keys, ngram_columns, ngram_places, tally
from tests.kernels.hash_twin import hash_ngram

ONCE = np.empty(0, np.int32)


def documents(seed=0, n=30, n_words=9, missing=True):
    rng = np.random.default_rng(seed)
    docs = [rng.integers(-1 if missing else 0, n_words, rng.integers(0, 25)).tolist() for _ in range(n)]
    return [[], *docs, []]


def stream(docs):
    ends = np.cumsum([len(doc) for doc in docs], dtype=np.int64)
    return np.array([word for doc in docs for word in doc], np.int32), ends


def grams(doc, n):
    return [tuple(doc[i : i + n]) for i in range(len(doc) - n + 1) if min(doc[i : i + n]) >= 0]


def parted(values, ends):
    return [values[a:b].tolist() for a, b in pairwise([0, *ends])]


def key(gram, n_words, digits):
    number = 0
    for word in gram:
        number = number * (n_words + 1) + word + 1
    return number * (n_words + 1) ** (digits - len(gram))


def test_tally_counts_documents_and_occurrences():
    docs = documents(missing=False)
    df, times = tally(stream(docs)[0], ONCE, stream(docs)[1], 9)
    assert df.tolist() == [sum(word in doc for doc in docs) for word in range(9)]
    assert times.tolist() == [sum(doc.count(word) for doc in docs) for word in range(9)]


def test_tally_of_counted_words():
    df, times = tally(np.array([0, 2, 2], np.int32), np.array([3, 1, 4], np.int32), np.array([2, 3]), 3)
    assert df.tolist() == [1, 0, 2]
    assert times.tolist() == [3, 0, 5]


@pytest.mark.parametrize("min_df", [1, 2, 4])
@pytest.mark.parametrize(("low", "high"), [(0, 9), (2, 5), (4, 4)])
def test_extend_counts_bigrams(min_df, low, high):
    docs = documents()
    words, ends = stream(docs)
    df = Counter(gram for doc in docs for gram in set(grams(doc, 2)))
    times = Counter(gram for doc in docs for gram in grams(doc, 2))
    expected = {g: (df[g], times[g]) for g in df if low <= g[0] < high and df[g] >= min_df}
    prefix, word, got_df, got_times = extend(words, words, ends, 1, low, high, 9, min_df)
    got = zip(zip(prefix, word, strict=True), zip(got_df, got_times, strict=True), strict=True)
    assert dict(got) == expected
    assert len(prefix) == len(expected)
    assert (np.diff(prefix) >= 0).all()


def test_extend_counts_trigrams_by_their_bigrams():
    docs = documents(n_words=4)
    words, ends = stream(docs)
    bigrams = sorted({gram for doc in docs for gram in grams(doc, 2)})
    table = index_keys(np.array([key(g, 4, 2) for g in bigrams]), np.arange(len(bigrams), dtype=np.int32))
    prefixes = ngram_places(words, ends, 2, 4, table)
    prefix, word, df, _ = extend(prefixes, words, ends, 2, 0, len(bigrams), 4, 1)
    got = {(*bigrams[p], w): d for p, w, d in zip(prefix, word, df, strict=True)}
    assert got == Counter(gram for doc in docs for gram in set(grams(doc, 3)))


def test_places_are_aligned_with_the_words():
    docs = documents(n_words=4)
    words, ends = stream(docs)
    known = [(0, 1), (2, 2), (3, 0)]
    table = index_keys(np.array([key(g, 4, 2) for g in known]), np.array([7, 8, 9], np.int32))
    place = dict(zip(known, [7, 8, 9], strict=True))
    expected = [[place.get(tuple(doc[i : i + 2]), -1) for i in range(len(doc))] for doc in docs]
    assert parted(ngram_places(words, ends, 2, 4, table), ends) == expected


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_columns_of_all_known_ngrams(longest):
    docs = documents(n_words=5)
    words, ends = stream(docs)
    rng = np.random.default_rng(1)
    every = sorted({gram for doc in docs for n in range(1, longest + 1) for gram in grams(doc, n)})
    known = [gram for gram in every if rng.random() < 0.6]
    column = {gram: i for i, gram in enumerate(known)}
    word_columns = np.array([column.get((word,), -1) for word in range(5)], np.int32)
    longer = [gram for gram in known if len(gram) > 1]
    keys = np.array([key(gram, 5, longest) for gram in longer], np.int64)
    table = index_keys(keys, np.array([column[gram] for gram in longer], np.int32))
    columns, column_ends = ngram_columns(words, ends, longest, word_columns, table)
    got = [sorted(row) for row in parted(columns, column_ends)]
    assert got == [
        sorted(column[gram] for n in range(1, longest + 1) for gram in grams(doc, n) if gram in column) for doc in docs
    ]


def test_keys_sort_as_the_ngrams_do():
    words = ["ab", "aba", "b0", "b_", "ba", "é"]
    every = [gram for n in (1, 2, 3) for gram in product(range(6), repeat=n)]
    by_name = sorted(every, key=lambda gram: " ".join(words[i] for i in gram))
    assert sorted(every, key=lambda gram: key(gram, 6, 3)) == by_name


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_hashed_columns(longest):
    rng = np.random.default_rng(2)
    hashes, ends = rng.integers(0, 2**64, 40, dtype=np.uint64), np.array([0, 1, 17, 17, 40])
    columns, column_ends = hashed_columns(hashes, ends, longest, 12)
    words = parted(hashes, ends)
    expected = [
        sorted(hash_ngram(doc[i : i + n]) >> 52 for n in range(1, longest + 1) for i in range(len(doc) - n + 1))
        for doc in words
    ]
    assert [sorted(row) for row in parted(columns, column_ends)] == expected
