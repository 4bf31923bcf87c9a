"""Tokenization against Python: ``re`` finds words, a dict numbers them."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from labelspace.kernels.tokenize import (
    MARK,
    assign_word_ids,
    build_word_slots,
    first_words,
    lookup_words,
    scan_chars,
    scan_words,
)
from tests.features.word_twin import CLASSES, words, words_and_numbers
from tests.kernels.hash_twin import hash_word

IS_DIGIT = np.array([chr(i).isdecimal() for i in range(0x110000)])
ANY = st.text(st.characters(exclude_categories=()))  # surrogates too
TEXTS = st.lists(ANY | st.text("ab_1é٣日本のไทย𐐀\u0301\u0e34\u094d\ufe0f -\t\n"), max_size=6)


def encoded(texts):
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return np.frombuffer(bytearray().join(parts), np.uint8), np.cumsum([len(part) for part in parts], dtype=np.int64)


def by_document(text, starts, stops, ends):
    raw = text.tobytes()
    words = [raw[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, stops, strict=True)]
    return [words[a:b] for a, b in pairwise([0, *ends])]


def spans_of(words):
    text, stops = encoded(words)
    starts = np.append(0, stops[:-1]) if len(words) else stops
    hashes = np.array([hash_word(word) for word in words], np.uint64)
    return text, starts, stops, hashes


def small_table():
    return np.zeros(4, np.uint64), np.empty(1, np.uint64), np.empty(1, np.uint8), np.zeros(2, np.int64), 0


@settings(deadline=None)
@given(TEXTS)
def test_words_are_those_of_the_twin(texts):
    text, text_ends = encoded(texts)
    for min_length in (1, 2):
        starts, stops, hashes, ends = scan_words(text, text_ends, CLASSES, min_length)
        spans = by_document(text, starts, stops, ends)
        assert spans == [words(text, min_length) for text in texts]
        assert hashes.tolist() == [hash_word(word) for found in spans for word in found]


@settings(deadline=None)
@given(TEXTS)
def test_without_other_classes_words_are_those_of_the_regular_expression(texts):
    text, text_ends = encoded(texts)
    is_word = np.array([re.match(r"\w", chr(i)) is not None for i in range(128)]).astype(np.uint8)
    classes = np.concatenate([is_word, np.minimum(CLASSES[128:], 1) * (CLASSES[128:] != MARK)]).astype(np.uint8)
    starts, stops, _, ends = scan_words(text, text_ends, classes, 2)
    assert by_document(text, starts, stops, ends) == [re.findall(r"(?u)\b\w\w+\b", text) for text in texts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("図書館の歴史", ["図書", "書館", "館の", "の歴", "歴史"]),
        ("犬 Python入門2024年", ["犬", "Python", "入門", "2024", "年"]),
        ("ab字ab字ab字ab字", ["ab", "字"] * 4),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ที่นี่", ["ที่นี่"]),
        ("น้ำดื่ม", ["น้ำ", "ำดื่", "ดื่ม"]),
        ("\u0301a ❤\ufe0f 〇", ["〇"]),
        ("도서관의 역사", ["도서관의", "역사"]),
    ],
)
def test_words_of_other_scripts(text, expected):
    read, ends = encoded([text])
    assert by_document(read, *scan_words(read, ends, CLASSES, 2)[:2], [len(expected)]) == [expected]


def test_ascii_text_needs_the_first_128_characters_only():
    text, text_ends = encoded(["a word_2 - x yz", "", "zz"])
    starts, stops, _, ends = scan_words(text, text_ends, CLASSES[:128].copy(), 2)
    assert by_document(text, starts, stops, ends) == [["word_2", "yz"], [], ["zz"]]


@settings(deadline=None)
@given(st.lists(ANY | st.text("a1٣é .,:/-;"), max_size=6), st.integers(1, 5))
def test_first_words_are_those_of_the_twin(texts, length):
    text, text_ends = encoded(texts)
    spans = scan_words(text, text_ends, CLASSES, 1)
    text = np.append(text, np.uint8(ord("0")))
    starts, stops, hashes, ends = first_words(text, *spans, IS_DIGIT, length)
    expected = [words_and_numbers(text)[:length] for text in texts]
    assert by_document(text, starts, stops, ends) == expected
    assert hashes.tolist() == [hash_word(word) for words in expected for word in words]


@settings(deadline=None)
@given(TEXTS, st.integers(1, 4), st.integers(0, 3))
def test_characters_are_those_of_scikit_learn(texts, min_n, extra_n):
    texts = [re.sub(r"\s\s+", " ", text) for text in texts]
    text, text_ends = encoded(texts)
    starts, stops, hashes, ends = scan_chars(text, text_ends, min_n, min_n + extra_n, False)
    spans = by_document(text, starts, stops, ends)
    analyze = CountVectorizer(analyzer="char", ngram_range=(min_n, min_n + extra_n), lowercase=False).build_analyzer()
    assert [sorted(grams) for grams in spans] == [sorted(analyze(text)) for text in texts]
    grams = [gram for grams in spans for gram in grams]
    assert hashes.tolist() == [hash_word(gram) for gram in grams]


@settings(deadline=None)
@given(TEXTS, st.integers(1, 6), st.integers(0, 3))
def test_characters_within_words_are_those_of_scikit_learn(texts, min_n, extra_n):
    padded = [" ".join(["", *text.split(), ""]) for text in texts]
    text, text_ends = encoded(padded)
    starts, stops, _, ends = scan_chars(text, text_ends, min_n, min_n + extra_n, True)
    analyze = CountVectorizer(
        analyzer="char_wb", ngram_range=(min_n, min_n + extra_n), lowercase=False
    ).build_analyzer()
    spans = by_document(text, starts, stops, ends)
    assert [sorted(grams) for grams in spans] == [sorted(analyze(text)) for text in texts]


@settings(deadline=None)
@given(st.lists(ANY, max_size=40), st.lists(ANY, max_size=10))
def test_words_are_numbered_as_they_come(words, new_words):
    text, starts, stops, hashes = spans_of(words)
    ids, table = assign_word_ids(text, starts, stops, hashes, small_table())
    known = {}
    assert ids.tolist() == [known.setdefault(word, len(known)) for word in words]
    ids, table = assign_word_ids(*spans_of(new_words), table)
    assert ids.tolist() == [known.setdefault(word, len(known)) for word in new_words]
    _, _, word_bytes, offsets, n = table
    stored = [word_bytes[offsets[i] : offsets[i + 1]].tobytes().decode("utf-8", "surrogatepass") for i in range(n)]
    assert stored == list(known)


@settings(deadline=None)
@given(st.lists(ANY, unique=True, max_size=40), st.lists(ANY, max_size=10))
def test_words_are_found_again(words, others):
    text, _, stops, _ = spans_of(words)
    offsets = np.append(0, stops).astype(np.int64)
    slots = build_word_slots(text, offsets)
    ids = lookup_words(*spans_of(words + others), slots, text, offsets)
    id_of = {word: i for i, word in enumerate(words)}
    assert ids.tolist() == [id_of.get(word, -1) for word in words + others]


def test_the_table_grows():
    words = [f"word{i % 5000}" for i in range(12000)]
    ids, table = assign_word_ids(*spans_of(words), small_table())
    assert ids.tolist() == [i % 5000 for i in range(12000)]
    assert table[4] == 5000


@pytest.mark.parametrize("shared_hash", [0, 2**64 - 1, 5 << 32])
def test_words_of_equal_hash_are_distinguished(shared_hash):
    words = ["aa", "bb", "aaa", "aa", "bb", "ab"]
    text, starts, stops, hashes = spans_of(words)
    hashes[:] = shared_hash
    ids, table = assign_word_ids(text, starts, stops, hashes, small_table())
    assert ids.tolist() == [0, 1, 2, 0, 1, 3]
    slots, _, word_bytes, offsets, n = table
    ids = lookup_words(text, starts, stops, hashes, slots, word_bytes, offsets[: n + 1])
    assert ids.tolist() == [0, 1, 2, 0, 1, 3]
