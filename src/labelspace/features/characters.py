r"""Characters of all scripts: how a text is normalized before words are found in it, and what a word consists of.

1. A text is read in normalization form NFC: an e and an accent are the same as one é. Then it is lower-cased; the
   Turkish İ becomes an i, where Python alone leaves a mark above it.
2. A word consists of letters, digits and underscores (``\w``), and of marks after them: the vowels of Devanagari, for
   example, without which most words of Hindi would be cut to pieces.
3. Scripts that are written without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) have letters of
   a separate class: a run of them becomes overlapping pairs of letters, each with its marks.
"""

import re
import unicodedata
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from labelspace.kernels.tokenize import ASCII, MARK, UNSPACED, WORD, Bytes, Flags
from labelspace.types import Longs

N_CODE_POINTS = 0x110000
_UNSPACED = (  # letters of scripts without spaces, not their digits
    (0x0E00, 0x0E50), (0x0E5A, 0x0ED0), (0x0EDA, 0x0F00),  # Thai, Lao
    (0x1000, 0x1040), (0x104A, 0x1090), (0x109A, 0x10A0),  # Burmese
    (0xA9E0, 0xA9F0), (0xA9FA, 0xAA00), (0xAA60, 0xAA80),
    (0x1780, 0x17E0),  # Khmer
    (0x3005, 0x3008), (0x3031, 0x3038), (0x303B, 0x3100), (0x31F0, 0x3200),  # Kana, signs of repetition, zero
    (0xFF66, 0xFFA0), (0x1AFF0, 0x1B170),
    (0x3400, 0xA000), (0xF900, 0xFB00), (0x20000, 0x34000),  # Han
)  # fmt: skip
# Other ranges have no marks except variation selectors, which tell how a letter is drawn.
_WITH_MARKS = ((0x300, 0x3100), (0xA600, 0xAC00), (0xFB00, 0xFE00), (0xFE20, 0xFE30), (0x10000, 0x1F000))
_JAMO = "\u1160-\u11ff\U00016d67"  # letters that are composed with the one before them


def normalize(text: str) -> str:
    """Normalize a text (step 1); the result has a character for each character of the text's NFC.

    >>> normalize("Cafe\u0301 İSTANBUL")
    'café istanbul'
    """
    return unicodedata.normalize("NFC", text).replace("\u0130", "i").lower()


def to_utf8(text: str) -> bytes:
    """Return the normalized text as UTF-8; a surrogate without its other half stays unchanged."""
    return normalize(text).encode("utf-8", "surrogatepass")


def may_be_composed(read: Bytes) -> Longs:
    """Find where UTF-8 of lower-case texts may differ from their NFC: in most texts nowhere, and this check is quick.

    >>> may_be_composed(np.frombuffer("né, ne\u0301".encode(), np.uint8)).tolist()
    [7]
    """
    at = np.flatnonzero(read >= 0xCC)
    first = read[at]
    found = (first < 0xCE) | ((first >= 0xD6) & (first < 0xE2)) | (first == 0xE3) | (first >= 0xEF)
    found |= (first == 0xE2) & (read[np.minimum(at + 1, read.size - 1)] != 0x80)  # punctuation of E2 80 is simple
    suspect: Longs = at[found]
    return suspect


def characters_of_bytes(text: str) -> tuple[Longs, Longs]:
    """Return for each byte of the normalized text its first character in the text, and the one after the last.

    >>> first, after = characters_of_bytes("ne\u0301!")
    >>> first.tolist(), after.tolist()
    ([0, 1, 1, 3], [1, 3, 3, 4])
    """
    if unicodedata.is_normalized("NFC", text):
        cuts, points = np.arange(len(text) + 1), code_points(normalize(text))
        sizes = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    else:
        cuts = np.array([*(letter.start() for letter in _letters().finditer(text)), len(text)])
        sizes = np.array([len(to_utf8(text[start:stop])) for start, stop in pairwise(cuts.tolist())])
    return np.repeat(cuts[:-1], sizes), np.repeat(cuts[1:], sizes)


@cache
def _letters() -> re.Pattern[str]:
    """Return the pattern of a character with the characters that may be composed with it."""
    marks = "".join(map(chr, np.flatnonzero(character_classes() == MARK).tolist()))
    return re.compile(f".[{marks}{_JAMO}]*", re.DOTALL)


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code point of each character."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


@cache
def character_classes(ascii_only: bool = False) -> Bytes:
    """Return the class of each code point in words (steps 2 and 3): see ``kernels.tokenize``.

    >>> [int(character_classes()[ord(letter)]) for letter in "a é\u0301日の"]
    [1, 0, 1, 2, 3, 3]
    """
    classes = character_flags(r"\w", ascii_only) * np.uint8(WORD)
    if not ascii_only:
        for start, stop in _WITH_MARKS:
            others = (start + np.flatnonzero(classes[start:stop] == 0)).tolist()
            classes[[code for code in others if unicodedata.category(chr(code)) in ("Mn", "Mc")]] = MARK
        for start, stop in _UNSPACED:
            classes[start:stop][classes[start:stop] == WORD] = UNSPACED
    return classes


@cache
def character_flags(kind: str, ascii_only: bool = False) -> Flags:
    r"""Return for each code point whether a pattern, ``\w`` or ``\d``, matches it."""
    points = np.arange(ASCII if ascii_only else N_CODE_POINTS, dtype="<u4")
    flags = np.zeros(len(points), bool)
    for run in re.finditer(f"{kind}+", points.tobytes().decode("utf-32-le", "surrogatepass")):
        flags[run.start() : run.end()] = True
    return flags
