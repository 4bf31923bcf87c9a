"""Byte-level byte pair encoding, the tokenizer of GPT-2 and RoBERTa.

Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units" (ACL 2016); Radford et al.,
"Language Models are Unsupervised Multitask Learners" (2019) for bytes in place of characters.

The package ``tokenizers`` gives the same ids, but brings 35 MB of packages and takes several times as long for a text
of words that were seen before. Special tokens in a text, such as ``<s>``, are read as the characters that they are.
"""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise

MAX_CACHED = 2**17  # pieces of texts whose tokens are remembered, of up to some hundred bytes each
MAX_LENGTH = 64  # longer pieces are not remembered
SPACES = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # Unicode's; Python's have \x1c-\x1f too
# Before a space between two characters that are none: no token reaches across.
_PIECE_BOUNDARY = re.compile(r"(?<=\S)(?= \S)")


class ByteBPE:
    """From a text to token ids.

    ``ranks`` are pairs of tokens that are merged to one, the first pair first. The vocabulary must have all 256 single
    bytes, so that every text has tokens.
    """

    def __init__(self, vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]]) -> None:
        self._vocabulary = vocabulary
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._cache: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's tokens."""
        if text.isprintable() and "  " not in text:  # several times as fast as the regular expression
            pieces = text.replace(" ", "\n ").split("\n")
        else:
            pieces = _PIECE_BOUNDARY.split(text)
        ids: list[int] = []
        known = self._cache
        for piece in pieces:
            ids += known[piece] if piece in known else self._encode_piece(piece)
        return ids

    def _encode_piece(self, piece: str) -> list[int]:
        """Return the ids of what stands between two spaces, with the first space; remember them and its words'."""
        words = _words(piece.isascii())(piece)
        if len(words) > 1:
            known = self._cache
            ids = [id for word in words for id in (known[word] if word in known else self._encode_piece(word))]
        else:
            ids = self._encode_word(piece)
        if len(piece) <= MAX_LENGTH:
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            self._cache[piece] = ids
        return ids

    def _encode_word(self, word: str) -> list[int]:
        symbols = list(word.encode("utf-8").decode("latin-1").translate(BYTE_SYMBOLS))
        while len(symbols) > 1:
            ranks = [self._ranks.get(pair, sys.maxsize) for pair in pairwise(symbols)]
            first = min(ranks)
            if first == sys.maxsize:
                break
            at = ranks.index(first)
            symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]  # the leftmost; the next turn finds the others
        return [self._vocabulary[symbol] for symbol in symbols]


def byte_symbols() -> dict[int, str]:
    """Return the character that stands for each byte in a vocabulary: itself if visible, else one from 256 on."""
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {byte: chr(byte) for byte in seen} | {byte: chr(256 + at) for at, byte in enumerate(hidden)}


BYTE_SYMBOLS = byte_symbols()


@cache
def _words(ascii: bool) -> Callable[[str], list[str]]:
    r"""Return the function that parts a text into words, each with the space before it.

    The pattern is ``'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+``. Python's ``\w`` is
    letters, numbers and ``_``, and its ``\d`` only some of the numbers; the others are looked up unless the text is
    ASCII, which takes 40 ms.
    """
    characters = () if ascii else map(chr, range(sys.maxunicode + 1))
    numbers = "".join(c for c in characters if c.isnumeric() and not c.isalpha())
    letter, number, other = rf"[^\W\d_{numbers}]", rf"[\d{numbers}]", rf"(?:[^\w{SPACES}]|_)"
    words = rf"'s|'t|'re|'ve|'m|'ll|'d| ?{letter}+| ?{number}+| ?{other}+"
    return re.compile(rf"{words}|[{SPACES}]+(?![^{SPACES}])|[{SPACES}]+").findall
