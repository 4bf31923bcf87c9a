"""Find labels as a user types: by the beginning of a name, by the beginnings of its words, and with one typo."""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import cache
from itertools import count
from typing import NamedTuple

import numpy as np

from labelspace.errors import ParameterError
from labelspace.server.label_search import kernels
from labelspace.types import PATH_SEPARATOR, Bools, Ints, LabelSpace, Longs

MAX_CHARACTERS = 200  # of a query; the rest is not read
MAX_WORDS = 12  # of a query; the rest counts only for the beginning of a name
MIN_TYPO_LENGTH = 4  # characters of a word of a query that may have a typo

# Bits of a label's flags; the lower ones are for the words of the query.
_EQUAL, _EQUAL_STEP, _PREFIX, _TYPO = (1 << MAX_WORDS + i for i in range(4))
_END = b"\0"

# Accents, points of Hebrew and Arabic, selectors of emoji, and invisible characters.
_IGNORED = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff"
    "\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f\u00ad\u200b-\u200f\u2060\ufeff\U000e0100-\U000e01ef]+"
)
# Letters that Unicode does not decompose, but many keyboards do not have.
_PLAIN = str.maketrans(
    {"æ": "ae", "ð": "d", "đ": "d", "ħ": "h", "ı": "i", "ł": "l", "ø": "o", "œ": "oe", "þ": "th", "ŧ": "t"}
)
# Thai, Lao, Myanmar, Khmer, kana, Han: no spaces between words.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_ASCII_WORD = re.compile(r"[^\W_]+")


class LabelMatch(NamedTuple):
    """A label that was found."""

    label: int
    match: str  # "prefix", "word" or "typo"


class LabelSearch:
    """Find labels in use as a user types: case, accents and the order of words do not matter.

    First come labels with a name or synonym that begins with the query, equal names before all others; a path is also
    matched by its last step. Next come labels with a word that begins with each word of the query. If these are fewer
    than requested, labels follow that match except for one typo in a word of at least four characters. In each group,
    the most frequent labels come first, then those with shorter names.

    >>> search = LabelSearch(LabelSpace(["Rye bread", "Crème brûlée", "bread"], [["Roggenbrot"], [], ["loaf"]]))
    >>> search.find("bread")
    [LabelMatch(label=2, match='prefix'), LabelMatch(label=0, match='word')]
    >>> search.find("BRULEE cr"), search.find("rogenb")
    ([LabelMatch(label=1, match='word')], [LabelMatch(label=0, match='typo')])
    """

    def __init__(self, labels: LabelSpace) -> None:
        texts = _Texts()
        lengths = array("q")
        for label, name in enumerate(labels.names):
            texts.add(label, name)
            lengths.append(len(name))
        for label, synonyms in enumerate(() if labels.synonyms is None else labels.synonyms):
            for synonym in synonyms:
                texts.add(label, synonym)
        counts = labels.answered_counts
        self._in_use = None if labels.current is None else labels.in_use
        self._by_rank = np.lexsort((np.array(lengths, np.int64), -counts)).astype(np.int32)  # equal ones by number
        ranks = np.empty(len(labels), np.int32)
        ranks[self._by_rank] = np.arange(len(labels), dtype=np.int32)
        self._names, self._steps = texts.names_and_steps(ranks)
        self._words, self._offsets = texts.words(ranks)
        self._word_bytes = np.frombuffer(self._words.text, np.uint8)
        self._shared = kernels.shared_bytes(self._word_bytes, self._words.starts)

    def find(self, query: str, limit: int = 20, allowed: Bools | None = None) -> list[LabelMatch]:
        """Return the best labels for a typed text, at most ``limit``; for an empty text, the most frequent labels.

        ``allowed`` (n_labels,) leaves out the labels where it is False. Only the first 200 characters and 12 words of
        a query count, and a word that is typed twice counts once.
        """
        if limit < 1:
            raise ParameterError(f"limit must be at least 1, but is {limit}; ask for limit=1 or more")
        n = len(self._by_rank)
        if allowed is not None and (allowed.shape != (n,) or allowed.dtype != bool):
            rule = f"allowed must be {n} booleans, one per label"
            raise ParameterError(f"{rule}, but is {allowed.dtype} of shape {allowed.shape}; make a mask of all labels")
        if self._in_use is not None:
            allowed = self._in_use if allowed is None else self._in_use & allowed
        mask = np.zeros(0, bool) if allowed is None else np.ascontiguousarray(allowed)
        flags = np.zeros(n, np.uint16)
        limit = min(limit, n)
        text = normalize_text(query[:MAX_CHARACTERS])[:MAX_CHARACTERS].rstrip()
        words = list(dict.fromkeys(split_words(text)))[:MAX_WORDS]
        levels = self._flag_matches(text, words, flags)
        found = self._best(flags, levels, mask, limit)
        if len(found) < limit and self._flag_typos(words, flags):
            found += self._best(flags, {_TYPO: "typo"}, mask, limit)
        return found[:limit]

    def _flag_matches(self, text: str, words: list[str], flags: kernels.Flags) -> dict[int, str]:
        """Flag the labels that match without typos; return the flags that a match must have, best first."""
        if not text:
            return {0: "prefix"}
        prefix = _encode(text)
        for texts, equal in ((self._names, _EQUAL), (self._steps, _EQUAL_STEP)):
            kernels.flag_labels(texts.ranks, *texts.span(prefix + _END), equal, flags)
            kernels.flag_labels(texts.ranks, *texts.span(prefix), _PREFIX, flags)
        for i, word in enumerate(words):
            low, high = self._words.span(_encode(word))
            kernels.flag_labels(self._words.ranks, self._offsets[low], self._offsets[high], 1 << i, flags)
        levels = dict.fromkeys((_EQUAL, _EQUAL_STEP, _PREFIX), "prefix")
        return {**levels, (1 << len(words)) - 1: "word"} if words else levels

    def _flag_typos(self, words: list[str], flags: kernels.Flags) -> bool:
        """Flag the labels that match except for a typo in one word; return whether there may be any."""
        every = (1 << len(words)) - 1
        gaps = kernels.single_gaps(flags, every)
        tried = [i for i, word in enumerate(words) if gaps >> i & 1 and len(word) >= MIN_TYPO_LENGTH]
        for i in tried:
            query = np.frombuffer(_encode(words[i]), np.uint8)
            similar = kernels.words_within_one_edit(query, self._word_bytes, self._words.starts, self._shared)
            others = every & ~(1 << i)
            kernels.flag_where(similar, self._offsets, self._words.ranks, every, others, _TYPO, flags)
        return bool(tried)

    def _best(self, flags: kernels.Flags, levels: dict[int, str], allowed: Bools, limit: int) -> list[LabelMatch]:
        found = kernels.best_labels(flags, np.array(list(levels), np.uint16), self._by_rank, allowed, limit)
        kinds = zip(found.tolist(), levels.values(), strict=True)
        return [LabelMatch(label, match) for labels, match in kinds for label in labels if label >= 0]


class _SortedTexts(NamedTuple):
    """Texts in alphabetical order, and the ranks of their labels: one for each name, several for a word."""

    text: bytes  # with a NUL behind each text: a text comes before longer ones that begin with it
    starts: Longs  # (n_texts,) where each begins
    ranks: Ints

    def span(self, prefix: bytes) -> tuple[int, int]:
        """Return the range of the texts with this prefix: the first, and the one behind the last."""

        def beginning(at: int) -> bytes:
            start = int(self.starts[at])
            return self.text[start : start + len(prefix)]

        every = range(len(self.starts))
        low = bisect_left(every, prefix, key=beginning)
        return low, bisect_right(every, prefix, lo=low, key=beginning)


class _Texts:
    """The names and synonyms of all labels, read one by one."""

    def __init__(self) -> None:
        self._utf8: list[bytes] = []
        self._labels, self._n_words = array("i"), array("i")  # of each text
        self._number: defaultdict[str, int] = defaultdict(count().__next__)  # of each word
        self._words = array("i")

    def add(self, label: int, text: str) -> None:
        """Read a name or synonym of a label."""
        text = normalize_text(text)
        words = split_words(text)
        self._utf8.append(_encode(text))
        self._labels.append(label)
        self._n_words.append(len(words))
        self._words.extend(map(self._number.__getitem__, words))

    def names_and_steps(self, ranks: Ints) -> tuple[_SortedTexts, _SortedTexts]:
        """Return all texts, and the last steps of texts that are paths: a part of the same bytes."""
        text, starts = _join(self._utf8)
        owners = ranks[np.array(self._labels, np.int32)]
        separator = PATH_SEPARATOR.encode()
        paths = np.array([i for i, utf8 in enumerate(self._utf8) if separator in utf8], np.int64)
        steps = [self._utf8[i].rpartition(separator)[2] for i in paths]
        cut = np.array([len(self._utf8[i]) - len(step) for i, step in zip(paths, steps, strict=True)], np.int64)
        by_name, by_step = _alphabetical(self._utf8), _alphabetical(steps)
        names = _SortedTexts(text, starts[by_name], owners[by_name])
        return names, _SortedTexts(text, (starts[paths] + cut)[by_step], owners[paths][by_step])

    def words(self, ranks: Ints) -> tuple[_SortedTexts, Longs]:
        """Return all words, and where the labels of each word begin and those of the last end. Shape (n_words + 1,)."""
        utf8 = [_encode(word) for word in self._number]
        order = _alphabetical(utf8)
        n = max(len(ranks), 1)
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        owners = np.repeat(ranks[np.array(self._labels, np.int32)], np.array(self._n_words, np.int32))
        pairs = np.sort(numbers[np.array(self._words, np.int32)] * n + owners)
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # ten times faster than np.unique
        offsets = np.searchsorted(pairs, np.arange(len(order) + 1) * n)
        return _SortedTexts(*_join([utf8[i] for i in order]), (pairs % n).astype(np.int32)), offsets


def _alphabetical(texts: list[bytes]) -> Longs:
    return np.array(sorted(range(len(texts)), key=texts.__getitem__), np.int64)


def _join(texts: list[bytes]) -> tuple[bytes, Longs]:
    """Join texts with a NUL behind each; return them, and where each begins."""
    ends = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64)
    return b"".join(text + _END for text in texts), np.append(np.zeros(1, np.int64), ends)[:-1]


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def normalize_text(text: str) -> str:
    """Return a text without accents and differences of case, with single spaces.

    >>> normalize_text(" Crème  BRÛLÉE "), normalize_text("Łódź, Straße"), normalize_text("№ ５")
    ('creme brulee', 'lodz, strasse', 'no 5')
    """
    if text.isascii():
        text = text.lower()
    else:
        text = _IGNORED.sub("", unicodedata.normalize("NFKD", text)).casefold().translate(_PLAIN)
    return " ".join(text.replace("\0", " ").split())


def split_words(text: str) -> list[str]:
    """Return the words of a normalized text; in scripts without spaces between words, each character is one.

    >>> split_words("c++ and x-ray_2"), split_words("東京 tower"), split_words("हिन्दी")
    (['c', 'and', 'x', 'ray', '2'], ['東', '京', 'tower'], ['हिन्दी'])
    """
    return (_ASCII_WORD if text.isascii() else _word_pattern()).findall(text)


@cache
def _word_pattern() -> re.Pattern[str]:
    """Compile a pattern in which marks, such as vowels of Hindi and Thai, belong to the letter before them.

    For Python's own word pattern, marks are no letters.
    """
    marks = "".join(char for char in map(chr, range(0x300, 0x20000)) if unicodedata.category(char)[0] == "M")
    return re.compile(rf"(?=\w)[{_UNSPACED}][{marks}]*|[^\W_{_UNSPACED}](?:[^\W_{_UNSPACED}]|[{marks}])*")
