"""Sequences against a twin in plain Python and cases worked by hand; saved and loaded, in blocks, refitted."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from labelspace.errors import DataError, NotFittedError, ParameterError
from labelspace.features import Sequences, tokenizer
from labelspace.features.sequences import NUMBER, PAD, UNKNOWN
from tests.features.saving import saved_and_loaded
from tests.features.word_twin import normalize, words_and_numbers

# Lower case that grows (İ) or depends on neighbors (Σ), digits of other scripts and powers, marks, surrogates.
LETTERS = "abA_12é ßİΣσ٣²日𐐀\u0301\x00\n.,:/-;\ud800"
TEXT = st.text(LETTERS, max_size=60) | st.text(st.characters(exclude_categories=()), max_size=30)
TEXTS = st.lists(TEXT, min_size=1, max_size=6)
CORPUS = ["The cat saw 12 mice.", "", "The dog, the DOG! 3.5 km/h", "Cat: 1,000 mice"]


def words_of(text, length=300):
    return words_and_numbers(normalize(text))[:length]


def twin(texts, vocab_size, length, min_df):
    """The words in order of their ids from 3 on."""
    documents = [words_of(text, length) for text in texts]
    counts = Counter(word for words in documents for word in words if word != "0")
    df = Counter(word for words in documents for word in set(words))
    return [word for word in sorted(counts, key=lambda word: (-counts[word], word)) if df[word] >= min_df][:vocab_size]


def twin_ids(texts, known, length):
    ids = {"0": NUMBER, **{word: 3 + i for i, word in enumerate(known)}}
    rows = [[ids.get(word, UNKNOWN) for word in words_of(text, length)] for text in texts]
    width = max([1, *map(len, rows)])
    return np.array([row + [PAD] * (width - len(row)) for row in rows], np.int32).reshape(len(rows), width)


def assert_same(ours, expected):
    assert ours.dtype == np.int32
    np.testing.assert_array_equal(ours, expected, strict=True)


def test_a_case_by_hand():
    sequences = Sequences(vocab_size=4)
    ids = sequences.fit_transform(CORPUS)
    # the: 3 times; cat, dog, mice: 2 each; saw, km, h: once each, not in the vocabulary
    assert sequences.tokens() == ["<pad>", "<unknown>", "<number>", "the", "cat", "dog", "mice"]
    assert ids.tolist() == [[3, 4, 1, 2, 6, 0, 0], [0, 0, 0, 0, 0, 0, 0], [3, 5, 3, 5, 2, 1, 1], [4, 2, 6, 0, 0, 0, 0]]
    assert sequences.n_tokens == 7
    assert sequences.transform(["Mice? 7 mice"]).tolist() == [[6, 2, 6]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("12", "#"),
        ("3.5 1,000,000 1999/2000 2004-05-31 10:30", "# # # # #"),
        ("1 2, 3", "# # #"),
        ("1..2 3;4", "# # # #"),
        ("-5. .5", "# #"),
        ("4th x2 1_000 ²", "4th x2 1_000 ²"),
        ("3.5kg v3.5", "# 5kg v3 #"),
        ("1.a.2", "# a #"),
        ("٣٤ 1٣.٤", "# #"),
        ("0 00", "# #"),
    ],
)
def test_what_a_number_is(text, words):
    sequences = Sequences().fit([text + " word"])
    tokens = sequences.tokens()
    spelled = [tokens[i].replace("<number>", "#") for i in sequences.transform([text])[0]]
    assert spelled == words.split()


@settings(deadline=None)
@given(TEXTS, st.lists(TEXT, max_size=3), st.integers(1, 9), st.integers(1, 9), st.integers(1, 2))
@example(["a a", "1 1"], ["1", "2.3.4 b"], 5, 1, 1)
@example(["1.2.3 a 4.5"], ["1.2 3"], 5, 2, 1)
def test_any_text_equals_the_twin(texts, unseen, vocab_size, length, min_df):
    known = twin(texts, vocab_size, length, min_df)
    sequences = Sequences(vocab_size=vocab_size, max_length=length, min_df=min_df)
    if not known:
        with pytest.raises(DataError, match="give more or longer texts"):
            sequences.fit(texts)
        return
    assert_same(sequences.fit_transform(texts), twin_ids(texts, known, length))
    assert sequences.tokens()[3:] == known
    assert sequences.n_tokens == len(known) + 3
    assert_same(sequences.transform(unseen), twin_ids(unseen, known, length))
    assert_same(
        Sequences(vocab_size=vocab_size, max_length=length, min_df=min_df).fit(texts).transform(unseen),
        twin_ids(unseen, known, length),
    )


def test_the_vocabulary_is_of_the_first_words_alone():
    sequences = Sequences(max_length=2).fit(["red apple pie pie pie", "red 1.2 pie"])
    assert sequences.tokens()[3:] == ["red", "apple"]
    assert sequences.transform(["red pie apple", "apple"]).tolist() == [[3, 1], [4, 0]]


def test_a_number_counts_as_one_word_of_the_length():
    assert Sequences(max_length=2).fit_transform(["1.2.3 a 4", "a 4.5 b"]).tolist() == [[2, 3], [3, 2]]


def test_texts_without_known_words():
    sequences = Sequences(vocab_size=1).fit(["apple apple pear"])
    assert sequences.n_tokens == 4
    assert sequences.transform(["", "pear plum", "?", "apple"]).tolist() == [[0, 0], [1, 1], [0, 0], [3, 0]]
    assert sequences.transform(["", "!"]).tolist() == [[0], [0]]
    assert sequences.transform([]).shape == (0, 1)
    assert sequences.transform(iter(["apple"])).tolist() == [[3]]


def test_numbers_are_known_though_none_was_seen():
    assert Sequences().fit(["apple"]).transform(["7 apple"]).tolist() == [[2, 3]]


def test_rare_words_are_unknown():
    sequences = Sequences(min_df=2).fit(["a b b 1", "a c"])
    assert sequences.tokens()[3:] == ["a"]
    assert sequences.transform(["a b 1"]).tolist() == [[3, 1, 2]]


@settings(deadline=None)
@given(TEXTS)
def test_counts_are_those_of_the_ids(texts):
    sequences = Sequences(vocab_size=3, max_length=20).fit([*texts, "word"])
    ids = sequences.transform(texts)
    before = ids.copy()
    X = sequences.counts(ids)
    assert X.shape == (len(texts), sequences.n_tokens)
    assert X.dtype == np.float32
    assert X.has_sorted_indices
    assert (X.data > 0).all()
    expected = [[0, *np.bincount(row, minlength=sequences.n_tokens)[1:]] for row in ids]
    assert X.toarray().tolist() == expected
    np.testing.assert_array_equal(ids, before)


def test_counts_of_nothing():
    sequences = Sequences().fit(["apple"])
    assert sequences.counts(sequences.transform([])).shape == (0, 4)
    assert sequences.counts(np.zeros((2, 0), np.int64)).nnz == 0


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([3], r"a matrix of integers, but are of shape \(1,\)"),
        ([[3.0]], "type float64; give what transform returned"),
        ([[4]], "from 0 to 3, but are from 4 to 4"),
        ([[-1, 3]], "but are from -1 to 3"),
        ([[2**32]], "from 0 to 3, but are"),
    ],
)
def test_other_ids_are_refused(ids, words):
    with pytest.raises(DataError, match=words):
        Sequences().fit(["apple"]).counts(np.array(ids))


def test_saved_and_loaded(tmp_path):
    sequences = Sequences(vocab_size=4, max_length=5).fit([*CORPUS, "Σίσυφος \ud800"])
    assert list(sequences.state) == ["word_bytes_", "word_offsets_"]
    loaded = saved_and_loaded(sequences, tmp_path)
    assert_same(loaded.transform(CORPUS), sequences.transform(CORPUS))
    assert loaded.tokens() == sequences.tokens()
    assert loaded.n_tokens == sequences.n_tokens


def test_blocks_and_threads_change_nothing(monkeypatch):
    texts = [f"{'word ' * (i % 7)}{i} x{i % 13}" for i in range(200)]
    expected = Sequences().fit_transform(texts)
    monkeypatch.setattr(tokenizer, "BLOCK", 100)
    for threads in "12":
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        sequences = Sequences()
        assert_same(sequences.fit_transform(texts), expected)
        assert_same(sequences.transform(texts), expected)


def test_a_new_fit_forgets_the_old():
    sequences = Sequences().fit(["pear plum"])
    sequences.transform(["pear"])
    assert sequences.fit(CORPUS).transform(["pear cat"]).tolist() == [[1, 4]]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ("one text", "give a list of texts"),
        ([], "at least one text, but there are 0"),
        (["fine", None], "row 1 is of type NoneType"),
        (["", "12 3.5"], "at least min_df=1 texts, but of these 2 none does; give more or longer"),
    ],
)
def test_a_fit_that_fails_gives_the_reason_and_changes_nothing(texts, words):
    sequences = Sequences().fit(["apple"])
    for fit in (sequences.fit, sequences.fit_transform):
        with pytest.raises(DataError, match=words):
            fit(texts)
    assert sequences.transform(["apple"]).tolist() == [[3]]


@pytest.mark.parametrize("params", [{"vocab_size": 0}, {"max_length": 0}, {"max_length": 2.5}, {"min_df": 0}])
def test_parameters_are_checked(params):
    with pytest.raises(ParameterError, match=next(iter(params))):
        Sequences(**params).fit(["apple"])


def test_fit_comes_first():
    sequences = Sequences()
    for call in (sequences.tokens, lambda: sequences.n_tokens, lambda: sequences.transform(["apple"])):
        with pytest.raises(NotFittedError):
            call()
    with pytest.raises(NotFittedError):
        sequences.counts(np.zeros((1, 1), np.int32))
