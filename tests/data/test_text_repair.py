import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.data.text_repair import has_control, is_garbled, ungarbled, without_control

RIGHT = ["Crème brûlée – “à la carte”", "naïve café’s 5 °C", "Ελληνικά", "Русский язык", "日本語の本", "größer, älter"]


@pytest.mark.parametrize(
    ("text", "encoding"),
    [*((text, "latin-1") for text in RIGHT), (RIGHT[1], "cp1252"), (RIGHT[2], "cp1252"), (RIGHT[5], "cp1252")],
)
def test_a_wrong_decoding_is_found_and_undone(text, encoding):
    wrong = text.encode().decode(encoding)
    assert is_garbled(wrong)
    assert ungarbled(wrong) == text
    assert not is_garbled(text)


def test_latin_2_where_it_has_no_characters():
    assert ungarbled("KĂ¤serei in Ă\x96sterreich") == "Käserei in Österreich"
    assert ungarbled("CĂŞTI") == "CĂŞTI"  # Romanian


def test_texts_that_went_wrong_twice():
    assert ungarbled("é".encode().decode("latin-1").encode().decode("latin-1")) == "é"


@pytest.mark.parametrize("text", [*RIGHT, "MAÇÃ", "LIBERTÉ»", "Ü“ und Ö”", "Ångström", "Ø, Æ", "São João", "a\u2028b"])
def test_right_texts_stay(text):
    assert ungarbled(text) == text
    assert not is_garbled(text)
    assert without_control(text) == text


@pytest.mark.parametrize("text", ["caf\ufffd", "20 Â°C – cold", "Richardstraร\x9fe", "Café Ã©"])
def test_what_cannot_be_undone_with_certainty_is_found_and_stays(text):
    assert is_garbled(text)
    assert ungarbled(text) == text


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text(text):
    repaired = without_control(text)
    assert not has_control(repaired)
    assert without_control(repaired) == repaired
    ungarbled(text)
    is_garbled(text)


def test_control_characters_of_windows_become_punctuation_and_others_go():
    assert has_control("a\x00b")
    assert not has_control("a\tb\r\n")
    assert without_control("\ufeffit\x92s \x93so\x94 \x8a\x07") == "it’s “so” "
