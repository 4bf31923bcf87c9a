"""Characters of all scripts: their classes, normalization, and the way back to the text."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.features.characters import character_classes, characters_of_bytes, may_be_composed, normalize, to_utf8
from labelspace.features.tokenizer import Analyzer
from tests.features import word_twin

ANY = st.text(st.characters(exclude_categories=()), max_size=30)
MARKED = st.text("aeoÅgİσΣ\u0301\u0304\u0327\u0345\u212b\u1100\u1161\u11a8かハ\u3099ที่\u093f\u2000\u2adc ’", max_size=20)
KINDS = pytest.mark.parametrize("kind", ["word", "char", "char_wb"])


def words_of(texts, kind="word"):
    text, starts, stops, _, ends = Analyzer(kind, 1, 3).find(texts)
    found = [text[start:stop].tobytes() for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)]
    return np.split(np.array(found, object), ends[:-1])


def test_classes_are_those_of_the_names_of_letters():
    assert np.array_equal(character_classes(), word_twin.CLASSES)
    assert np.array_equal(character_classes(ascii_only=True), word_twin.CLASSES[:128])


@settings(deadline=None)
@given(ANY | MARKED)
def test_the_way_back_covers_the_text(text):
    first, after = characters_of_bytes(text)
    assert len(first) == len(after) == len(to_utf8(text))
    assert (np.diff(first) >= 0).all()
    assert (np.diff(after) >= 0).all()
    assert (first < after).all()
    assert set(first.tolist()) | {len(text)} >= set(after.tolist())


@settings(deadline=None)
@given(ANY | MARKED)
def test_what_is_not_looked_at_again_is_normalized_already(text):
    lowered = text.lower().encode("utf-8", "surrogatepass")
    if not len(may_be_composed(np.frombuffer(lowered, np.uint8))):
        assert normalize(text).replace("\u2002", "\u2000") == text.lower().replace("\u2002", "\u2000")


@KINDS
@settings(deadline=None)
@given(texts=st.lists(MARKED, min_size=1, max_size=4))
def test_texts_of_the_same_characters_have_the_same_words(kind, texts):
    composed, decomposed = ([unicodedata.normalize(form, text) for text in texts] for form in ("NFC", "NFD"))
    for a, b in zip(words_of(composed, kind), words_of(decomposed, kind), strict=True):
        assert a.tolist() == b.tolist()


@settings(deadline=None)
@given(st.lists(ANY | MARKED, min_size=1, max_size=4))
def test_texts_side_by_side_are_read_as_one_by_one(texts):
    for text, together in zip(texts, words_of(texts), strict=True):
        assert words_of([text])[0].tolist() == together.tolist()


def test_turkish_capitals_become_letters():
    assert [word.decode() for word in words_of(["İSTANBUL’da I\u0307zmir"])[0]] == ["istanbul", "da", "izmir"]
