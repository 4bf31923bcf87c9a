import json
import math

import pytest

from labelspace.report.terminal import json_text, printable

UNSAFE = [
    *map(chr, [*range(0x20), *range(0x7F, 0xA0)]),
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2066, 0x206A)),
]
UNSAFE += ["\u2028", "\u2029", "\ud800", "\udfff"]


@pytest.mark.parametrize("char", UNSAFE, ids=lambda char: f"U+{ord(char):04X}")
def test_unsafe_characters_are_escaped(char):
    assert printable(f"a{char}b").isascii()
    assert printable(f"a{char}b").encode().decode("unicode_escape") == f"a{char}b"
    text = json_text({char: [char]})
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text) == {char: [char]}


@pytest.mark.parametrize(
    "text", ["", "café", "日本語 🙂", "مرض السكري", "می\u200cخواهم", "👩\u200d🔬", "a\u00a0b", "[bold]", "\\"]
)
def test_writing_is_left_alone(text):
    assert printable(text) == text
    assert json_text(text) == json.dumps(text, ensure_ascii=False)


def test_what_is_no_number_is_null_at_any_depth():
    values = {"a": [math.nan, (math.inf, 1.5)], "b": {"c": -math.inf, "d": True, "e": None}, "f": "NaN"}
    assert json.loads(json_text(values)) == {
        "a": [None, [None, 1.5]],
        "b": {"c": None, "d": True, "e": None},
        "f": "NaN",
    }


def test_options_are_those_of_json():
    assert json_text({"a": ["é", math.nan]}, ensure_ascii=True, separators=(",", ":")) == '{"a":["\\u00e9",null]}'
