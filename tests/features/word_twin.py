"""The words of a text in plain Python; scripts by the names that Unicode has for their letters."""

import re
import sys
import unicodedata
from itertools import pairwise

import numpy as np

from labelspace.kernels.tokenize import MARK, UNSPACED, WORD

SCRIPTS = (
    "CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HENTAIGANA",
    "VERTICAL KANA", "IDEOGRAPHIC ITERATION", "VERTICAL IDEOGRAPHIC", "IDEOGRAPHIC CLOSING", "IDEOGRAPHIC NUMBER ZERO",
    "MASU MARK", "THAI ", "LAO ", "KHMER ", "MYANMAR ",
)  # fmt: skip
OTHER, WORDS, MARKS, LETTERS = " ", "w", "m", "u"


def _class(character):
    name, category = unicodedata.name(character, ""), unicodedata.category(character)
    if category in ("Mn", "Mc") and "VARIATION SELECTOR-" not in name:
        return MARKS
    if not character.isalnum() and character != "_":
        return OTHER
    return LETTERS if name.startswith(SCRIPTS) and (category[0] == "L" or "NUMBER ZERO" in name) else WORDS


CLASS_NAMES = "".join(map(_class, map(chr, range(sys.maxunicode + 1))))
CLASSES = np.array([{OTHER: 0, WORDS: WORD, MARKS: MARK, LETTERS: UNSPACED}[name] for name in CLASS_NAMES], np.uint8)
TOKEN = re.compile("(?P<run>u[um]*)|w[wm]*")


def normalize(text):
    return unicodedata.normalize("NFC", text).replace("İ", "i").lower()


def spans(text, min_length):
    """Where the words of a normalized text start and stop."""
    classes = "".join(CLASS_NAMES[ord(character)] for character in text)
    for token in TOKEN.finditer(classes):
        start, stop = token.span()
        if token["run"]:
            letters = [start + at for at, name in enumerate(token[0]) if name == LETTERS]
            yield from zip(letters[:-1] or letters, [*letters[2:], stop], strict=True)
        elif stop - start >= min_length:
            yield start, stop


def words(text, min_length=2):
    """The words of a normalized text."""
    return [text[start:stop] for start, stop in spans(text, min_length)]


def words_and_numbers(text):
    """The words of a normalized text, every number as a 0: several with one of ``.,:/-`` between each two are one."""
    found = list(spans(text, 1))
    is_number = [text[start:stop].isdecimal() for start, stop in found]
    joined = [
        a and b and stop + 1 == start and text[stop] in ".,:/-"
        for (a, b), ((_, stop), (start, _)) in zip(pairwise(is_number), pairwise(found), strict=True)
    ]
    named = ["0" if number else text[start:stop] for number, (start, stop) in zip(is_number, found, strict=True)]
    return [word for word, continues in zip(named, [False, *joined], strict=False) if not continues]
