import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.data import texts as module
from labelspace.data.texts import GrowingTexts, StoredTexts, TextList, check_texts, n_characters

SOME = ["red apple", "", "naïve 図書館", "\ud800 half a character", "tea"]
BOUND = st.none() | st.integers(-8, 8)


@given(st.lists(st.text(st.characters(codec=None)), max_size=6), BOUND, BOUND, st.sampled_from([None, 1, 2, -1]))
def test_they_are_indexed_like_a_list(texts, start, stop, step):
    stored = StoredTexts.of(texts)
    part = slice(start, stop, step)
    assert stored[part] == texts[part]
    assert list(stored) == texts
    assert [stored[i] for i in range(-len(texts), len(texts))] == texts + texts
    assert n_characters(stored) == n_characters(texts) == sum(map(len, texts))


def test_an_index_out_of_range_is_an_error():
    with pytest.raises(IndexError):
        StoredTexts.of(SOME)[5]


def test_only_what_is_asked_for_is_decoded(monkeypatch):
    stored, decoded = StoredTexts.of(SOME), []
    monkeypatch.setattr(stored, "_decoded", lambda start, stop: decoded.append((start, stop)) or [""] * (stop - start))
    _ = stored[3], stored[1:3]
    assert decoded == [(3, 4), (1, 3)]


def test_many_texts_are_written_in_blocks(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 2)
    growing = GrowingTexts()
    for text in SOME:
        growing.append(text)
    assert list(growing.finish()) == SOME


def test_texts_of_a_file_are_a_list_unless_large_arrays_are_in_files(cache):
    growing = TextList()
    for text in SOME:
        growing.append(text)
    stored = growing.finish()
    assert isinstance(stored, StoredTexts)
    assert list(stored) == SOME
    assert isinstance(stored.ends, np.ndarray)


def test_texts_that_are_checked_stay_where_they_are():
    stored = StoredTexts.of(SOME)
    assert check_texts(stored) is stored
