"""Find the words of texts: lower case, UTF-8, and the spans that an analyzer counts, in blocks of texts."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from labelspace.data.texts import n_characters
from labelspace.features.characters import character_classes, characters_of_bytes, may_be_composed, to_utf8
from labelspace.kernels.threads import run_blocks
from labelspace.kernels.tokenize import Bytes, Hashes, Offsets, scan_chars, scan_words
from labelspace.types import Longs

MAX_KEPT = 2**16  # characters of a text whose words are kept for the next view of the text
BLOCK = 2**20  # characters per block, about: its words and their hash table then stay in the processor's cache

T = TypeVar("T")
_WHITESPACE = re.compile(r"\s\s+")
_WORD = re.compile(r"\S+")


class Spans(NamedTuple):
    """The words, or character n-grams, of some texts."""

    text: Bytes  # UTF-8 of all texts, one after the other
    starts: Offsets
    stops: Offsets
    hashes: Hashes
    ends: Offsets  # spans up to the end of each text


@dataclass(frozen=True)
class Analyzer:
    """Finds the spans that are counted in a text: ``word``, ``char`` or ``char_wb``, as scikit-learn defines them.

    Marks belong to words, and words of scripts without spaces are pairs of letters: see ``features.characters``.
    """

    kind: str = "word"
    min_n: int = 3
    max_n: int = 5
    min_word_length: int = 2  # in characters

    def spans(self, texts: Sequence[str]) -> Spans:
        """Find the words or character n-grams of some texts; for a single text, once for all of its views."""
        if len(texts) == 1 and len(texts[0]) <= MAX_KEPT:
            return _spans_of_text(self, texts[0])
        return self.find(texts)

    def find(self, texts: Sequence[str]) -> Spans:
        """Find the words or character n-grams of some texts."""
        read = texts if self.kind == "word" else [_spaced(self.kind, text) for text in texts]
        text, text_ends, is_word = _encode(read)
        if self.kind == "word":
            return Spans(text, *scan_words(text, text_ends, is_word, self.min_word_length))
        return Spans(text, *scan_chars(text, text_ends, self.min_n, self.max_n, self.kind == "char_wb"))

    def character_spans(self, text: str, spans: Spans) -> tuple[Longs, Longs]:
        """Return where the spans of a text start and stop, in its own characters.

        >>> Analyzer().character_spans("Cafe\u0301 né", Analyzer().find(["Cafe\u0301 né"]))
        (array([0, 6]), array([5, 8]))
        """
        first, after = _characters(self.kind, text)
        return first[spans.starts], after[spans.stops - 1]


def _spaced(kind: str, text: str) -> str:
    """Return the text with single spaces; also around it if n-grams stay within words."""
    return _WHITESPACE.sub(" ", text) if kind == "char" else " ".join(["", *text.split(), ""])


@lru_cache(maxsize=2)
def _characters(kind: str, text: str) -> tuple[Longs, Longs]:
    """Return for each byte that ``find`` reads its first character in the text, and the one after the last."""
    if kind == "word":
        return characters_of_bytes(text)
    at = np.arange(len(text), dtype=np.int64)
    if kind == "char":
        runs = [at[run.start() + 1 : run.end()] for run in _WHITESPACE.finditer(text)]
        at = np.delete(at, np.concatenate([at[:0], *runs]))
    else:  # a space belongs to the end of the word before it
        words = [np.arange(word.start(), word.end() + 1) for word in _WORD.finditer(text)]
        at = np.concatenate([np.zeros(1, np.int64), *words])
        at[0] = at[min(1, len(at) - 1)]
    first, after = characters_of_bytes(_spaced(kind, text))
    at = np.minimum(at, max(len(text) - 1, 0))
    return at[first], at[after - 1] + 1


@lru_cache(maxsize=2)
def _spans_of_text(analyzer: Analyzer, text: str) -> Spans:
    return analyzer.find([text])


def map_blocks(function: Callable[[int, int], T], texts: Sequence[str]) -> list[T]:
    """Call ``function(start, stop)`` for blocks of these texts, on all threads; return the results in order.

    The blocks depend only on the texts, so the result does not depend on the number of threads.
    """
    n = len(texts)
    block = max(1, min(n, n * BLOCK // (n_characters(texts) + 1)))
    results: dict[int, T] = {}

    def call(start: int, stop: int) -> None:
        results[start] = function(start, stop)

    run_blocks(call, n, block)
    return [results[start] for start in range(0, n, block)]


def _encode(texts: Sequence[str]) -> tuple[Bytes, Offsets, Bytes]:
    """Return the texts in lower case as UTF-8, where each ends, and the classes of characters that cover them."""
    ascii_only = all(text.isascii() for text in texts)
    # Lower case outside ASCII depends on neighbors (a final sigma): Python does it, text by text.
    # ASCII is lowered at the end in one go; the bytes of other characters are not ASCII, so they stay as they are.
    parts = [text.encode() if text.isascii() else text.lower().encode("utf-8", "surrogatepass") for text in texts]
    read, ends = _join(parts)
    if not ascii_only:
        rows = np.unique(np.searchsorted(ends, may_be_composed(read), "right")).tolist()
        for row in rows:
            parts[row] = to_utf8(texts[row])
        read, ends = _join(parts) if rows else (read, ends)
    return read, ends, character_classes(ascii_only)


def _join(parts: Sequence[bytes]) -> tuple[Bytes, Offsets]:
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return np.frombuffer(bytearray().join(parts).lower(), np.uint8), ends
