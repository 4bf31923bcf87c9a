"""The search of labels against plain twins: a table of edit distances, and loops over sets."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labelspace.server.label_search.kernels import (
    MAX_SHARED,
    best_labels,
    flag_labels,
    flag_where,
    shared_bytes,
    single_gaps,
    words_within_one_edit,
)

# One to four bytes in UTF-8; some differ only in their last byte, or only in their first.
LETTERS = "abéèĩ東杲𝄞𝄢"
WORD = st.text(LETTERS, min_size=1, max_size=7)


def packed(words):
    """The words as the kernels take them: sorted, each with a NUL behind it."""
    utf8 = [word.encode("utf-8", "surrogatepass") + b"\0" for word in sorted(words)]
    return np.frombuffer(b"".join(utf8), np.uint8), np.cumsum([0, *map(len, utf8)])[:-1].astype(np.int64)


def similar(query, words):
    text, starts = packed(words)
    typed = np.frombuffer(query.encode("utf-8", "surrogatepass"), np.uint8)
    found = words_within_one_edit(typed, text, starts, shared_bytes(text, starts))
    return [sorted(words)[i] for i in found]


def distance(a, b):
    """Damerau's distance: the number of insertions, deletions, replacements, and swaps of neighbors."""
    d = {(i, j): i + j for i in range(len(a) + 1) for j in range(len(b) + 1) if i * j == 0}
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 2 : i] == b[j - 2 : j][::-1]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    return d[len(a), len(b)]


def begins_within_one_edit(query, word):
    return any(distance(query, word[:end]) <= 1 for end in range(len(word) + 1))


@st.composite
def mistyped(draw, query):
    """The query after up to two edits, and what may follow it."""
    word = query
    for _ in range(draw(st.integers(0, 2))):
        at, letters = draw(st.integers(0, len(word))), draw(st.text(LETTERS, max_size=1))
        kept = draw(st.sampled_from([word[at:], word[at + 1 :], word[at : at + 2][::-1] + word[at + 2 :]]))
        word = word[:at] + letters + kept
    return word + draw(st.text(LETTERS, max_size=2)) or "a"


@given(WORD.flatmap(lambda query: st.tuples(st.just(query), st.sets(WORD | mistyped(query), min_size=1, max_size=40))))
@example(("éa", {"èéa", "aé", "aéb", "è", "ea"}))
@example(("東a𝄞", {"東𝄞a", "東𝄞", "a東𝄞", "東"}))
def test_words_are_those_that_a_table_of_distances_finds(query_and_words):
    query, words = query_and_words
    assert similar(query, words) == [word for word in sorted(words) if begins_within_one_edit(query, word)]


def test_many_words_of_two_letters():
    rng = np.random.default_rng(0)
    words = {"".join(rng.choice(list("ab"), rng.integers(1, 12))) for _ in range(600)}
    for query in sorted(words)[::25]:
        assert similar(query, words) == [word for word in sorted(words) if begins_within_one_edit(query, word)]


@pytest.mark.parametrize(
    "typed", ["bread", "brea", "bred", "brread", "xbread", "breadx", "xread", "breax", "rbead", "brad"]
)
def test_one_edit_anywhere_is_found(typed):
    assert "bread" in similar(typed, {"a", "bread", "broth", "z"})


@pytest.mark.parametrize("typed", ["raed", "breadxx", "rbaed", "xreax", "breadcrumb", "daerb", "red"])
def test_two_edits_are_not(typed):
    assert similar(typed, {"a", "bread", "broth", "z"}) == []


@pytest.mark.parametrize("typed", ["xabcee", "xbcee", "bcee", "bacee"])
def test_neighbors_that_differ_in_the_last_byte_looked_at(typed):
    assert similar(typed, {"abced", "abcee", "abcef"}) == ["abcee"]


def test_long_words_share_more_bytes_than_are_counted():
    words = {"a" * 300 + end for end in ("", "b", "bc", "c", "東")}
    assert shared_bytes(*packed(words)).tolist() == [0] + 4 * [MAX_SHARED]
    assert similar("a" * 299 + "bb", words) == ["a" * 300 + end for end in ("b", "bc")]
    assert similar("a" * 298 + "bcc", words) == []


def test_shared_bytes_end_with_the_word():
    assert shared_bytes(*packed(["a", "ab", "abc", "b", "é", "è"])).tolist() == [0, 1, 2, 0, 0, 1]


def test_no_words():
    nothing = np.zeros(0, np.int64)
    shared = shared_bytes(np.frombuffer(b"", np.uint8), nothing)
    assert words_within_one_edit(np.frombuffer(b"a", np.uint8), np.frombuffer(b"", np.uint8), nothing, shared).size == 0


@pytest.fixture
def flags():
    return np.random.default_rng(1).integers(0, 16, 50).astype(np.uint16)


def test_flags_of_a_span_of_labels(flags):
    before, ranks = flags.copy(), np.array([3, 7, 7, 20, 40], np.int32)
    flag_labels(ranks, 1, 4, 1 << 15, flags)
    assert np.flatnonzero(flags != before).tolist() == [7, 20]
    assert (flags & 0x7FFF).tolist() == before.tolist()


def test_flags_of_the_labels_of_words_where_others_have_a_value(flags):
    rng, before = np.random.default_rng(2), flags.copy()
    offsets, ranks = np.array([0, 20, 20, 60]), rng.integers(0, 50, 60).astype(np.int32)
    flag_where(np.array([1, 2], np.int32), offsets, ranks, 6, 2, 16, flags)
    expected = {rank for rank in ranks[20:].tolist() if before[rank] & 6 == 2}
    assert set(np.flatnonzero(flags & 16).tolist()) == expected
    assert 0 < len(expected) < len(set(ranks[20:].tolist()))


@pytest.mark.parametrize(
    ("having", "gaps"), [([], 0), ([0b111], 0), ([0b011], 0b100), ([0b001, 0b010], 0), ([0b1011, 0b110], 0b101)]
)
def test_bits_that_alone_are_missing(having, gaps):
    assert single_gaps(np.array(having, np.uint16), 0b111) == gaps


@pytest.mark.parametrize("limit", [1, 3, 60])
@pytest.mark.parametrize("levels", [[8, 3, 4], [0]])
@pytest.mark.parametrize("share", [None, 0.5])
def test_best_labels_of_each_level(flags, limit, levels, share):
    rng = np.random.default_rng(3)
    by_rank = rng.permutation(50).astype(np.int32)
    allowed = np.zeros(0, bool) if share is None else rng.random(50) < share
    found = best_labels(flags, np.array(levels, np.uint16), by_rank, allowed, limit)
    left = [rank for rank in range(50) if share is None or allowed[by_rank[rank]]]
    for row, level in zip(found.tolist(), levels, strict=True):
        of_level = [rank for rank in left if flags[rank] & level == level]
        left = [rank for rank in left if rank not in of_level]
        assert row == (by_rank[of_level].tolist() + limit * [-1])[:limit]
        if level == levels[0] and len(of_level) >= limit:
            break  # the others are not needed
