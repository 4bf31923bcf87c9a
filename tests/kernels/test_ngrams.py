"""N-gram kernels against twins in plain Python."""

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest

from labelspace.kernels.ngrams import (
    build_key_table,
    count_frequencies,
    extend_ngrams,
    hashed_columns,
    ngram_columns,
    ngram_ids,
)
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


def by_document(values, ends):
    return [values[a:b].tolist() for a, b in pairwise([0, *ends])]


def key(gram, n_words, digits):
    number = 0
    for word in gram:
        number = number * (n_words + 1) + word + 1
    return number * (n_words + 1) ** (digits - len(gram))


def test_document_frequencies_and_occurrences():
    docs = documents(missing=False)
    df, counts = count_frequencies(stream(docs)[0], ONCE, stream(docs)[1], 9)
    assert df.tolist() == [sum(word in doc for doc in docs) for word in range(9)]
    assert counts.tolist() == [sum(doc.count(word) for doc in docs) for word in range(9)]


def test_frequencies_of_counted_words():
    df, counts = count_frequencies(np.array([0, 2, 2], np.int32), np.array([3, 1, 4], np.int32), np.array([2, 3]), 3)
    assert df.tolist() == [1, 0, 2]
    assert counts.tolist() == [3, 0, 5]


@pytest.mark.parametrize("min_df", [1, 2, 4])
@pytest.mark.parametrize(("low", "high"), [(0, 9), (2, 5), (4, 4)])
def test_extend_counts_bigrams(min_df, low, high):
    docs = documents()
    words, ends = stream(docs)
    df = Counter(gram for doc in docs for gram in set(grams(doc, 2)))
    counts = Counter(gram for doc in docs for gram in grams(doc, 2))
    expected = {g: (df[g], counts[g]) for g in df if low <= g[0] < high and df[g] >= min_df}
    prefix, word, got_df, got_counts = extend_ngrams(words, words, ends, 1, low, high, 9, min_df)
    got = zip(zip(prefix, word, strict=True), zip(got_df, got_counts, strict=True), strict=True)
    assert dict(got) == expected
    assert len(prefix) == len(expected)
    assert (np.diff(prefix) >= 0).all()


def test_extend_counts_trigrams_by_their_bigrams():
    docs = documents(n_words=4)
    words, ends = stream(docs)
    bigrams = sorted({gram for doc in docs for gram in grams(doc, 2)})
    table = build_key_table(np.array([key(g, 4, 2) for g in bigrams]), np.arange(len(bigrams), dtype=np.int32))
    prefixes = ngram_ids(words, ends, 2, 4, table)
    prefix, word, df, _ = extend_ngrams(prefixes, words, ends, 2, 0, len(bigrams), 4, 1)
    got = {(*bigrams[p], w): d for p, w, d in zip(prefix, word, df, strict=True)}
    assert got == Counter(gram for doc in docs for gram in set(grams(doc, 3)))


def test_ngram_ids_are_aligned_with_the_words():
    docs = documents(n_words=4)
    words, ends = stream(docs)
    known = [(0, 1), (2, 2), (3, 0)]
    table = build_key_table(np.array([key(g, 4, 2) for g in known]), np.array([7, 8, 9], np.int32))
    id_of = dict(zip(known, [7, 8, 9], strict=True))
    expected = [[id_of.get(tuple(doc[i : i + 2]), -1) for i in range(len(doc))] for doc in docs]
    assert by_document(ngram_ids(words, ends, 2, 4, table), ends) == expected


@pytest.mark.parametrize("max_n", [1, 2, 3])
def test_columns_of_all_known_ngrams(max_n):
    docs = documents(n_words=5)
    words, ends = stream(docs)
    rng = np.random.default_rng(1)
    every = sorted({gram for doc in docs for n in range(1, max_n + 1) for gram in grams(doc, n)})
    known = [gram for gram in every if rng.random() < 0.6]
    column = {gram: i for i, gram in enumerate(known)}
    word_columns = np.array([column.get((word,), -1) for word in range(5)], np.int32)
    longer = [gram for gram in known if len(gram) > 1]
    keys = np.array([key(gram, 5, max_n) for gram in longer], np.int64)
    table = build_key_table(keys, np.array([column[gram] for gram in longer], np.int32))
    columns, column_ends = ngram_columns(words, ends, max_n, word_columns, table)
    got = [sorted(row) for row in by_document(columns, column_ends)]
    assert got == [
        sorted(column[gram] for n in range(1, max_n + 1) for gram in grams(doc, n) if gram in column) for doc in docs
    ]


def test_keys_sort_as_the_ngrams_do():
    words = ["ab", "aba", "b0", "b_", "ba", "é"]
    every = [gram for n in (1, 2, 3) for gram in product(range(6), repeat=n)]
    by_name = sorted(every, key=lambda gram: " ".join(words[i] for i in gram))
    assert sorted(every, key=lambda gram: key(gram, 6, 3)) == by_name


@pytest.mark.parametrize("max_n", [1, 2, 3])
def test_hashed_columns(max_n):
    rng = np.random.default_rng(2)
    hashes, ends = rng.integers(0, 2**64, 40, dtype=np.uint64), np.array([0, 1, 17, 17, 40])
    columns, column_ends = hashed_columns(hashes, ends, max_n, 12)
    words = by_document(hashes, ends)
    expected = [
        sorted(hash_ngram(doc[i : i + n]) >> 52 for n in range(1, max_n + 1) for i in range(len(doc) - n + 1))
        for doc in words
    ]
    assert [sorted(row) for row in by_document(columns, column_ends)] == expected
