"""Find, number and look up words in UTF-8 text. A word is a span of bytes with its 64-bit hash.

The table of words uses open addressing with linear probing over ``slots`` (uint64, a power of two of them): the upper
half of a slot is the upper half of the word's hash, the lower half is its id + 1, and 0 is an empty slot.

``text`` is the UTF-8 of all documents, one after the other, and ``text_ends`` where each ends in it.
"""

import numpy as np
import numpy.typing as npt

from labelspace.kernels.compiled import kernel, part

Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Spans = tuple[Offsets, Offsets, Hashes, Offsets]
"""Start, stop and hash of each word, and the number of words up to the end of each document."""
Table = tuple[Hashes, Hashes, Bytes, Offsets, int]
"""Slots, hash of each word, bytes of all words, offsets of the words in them (one more than words), number of words."""

FNV_SEED, FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # of FNV-1a
_MIX, _SHIFT = np.uint64(0xFF51AFD7ED558CCD), np.uint64(33)  # of MurmurHash3's finaliser
_HIGH, _LOW, _EMPTY = np.uint64(0xFFFFFFFF00000000), np.uint64(0xFFFFFFFF), np.uint64(0)
_SPACE = np.uint8(32)
WORD, MARK, UNSPACED = 1, 2, 3
"""Classes of code points: of words, of marks that continue a word, of letters of scripts without spaces."""
ASCII = 128  # code points


@part()
def mix_bits(h: np.uint64) -> np.uint64:
    """Mix the bits of a 64-bit hash, because the low bits of FNV-1a are weak."""
    h ^= h >> _SHIFT
    h *= _MIX
    return h ^ (h >> _SHIFT)


@part()
def hash_bytes(text: Bytes, start: int, stop: int) -> np.uint64:
    """Return the hash of a span, as in ``scan_words``."""
    h = FNV_SEED
    for i in range(start, stop):
        h = (h ^ np.uint64(text[i])) * FNV_PRIME
    return mix_bits(h)


@part()
def _code_point(text: Bytes, pos: int) -> tuple[int, int]:
    """Decode a character, and return its size in bytes; Python wrote this UTF-8, so it needs no checks."""
    b = int(text[pos])
    if b < 0x80:
        return b, 1
    if b < 0xE0:
        return (b & 0x1F) << 6 | (text[pos + 1] & 0x3F), 2
    if b < 0xF0:
        return (b & 0x0F) << 12 | (text[pos + 1] & 0x3F) << 6 | (text[pos + 2] & 0x3F), 3
    return (b & 0x07) << 18 | (text[pos + 1] & 0x3F) << 12 | (text[pos + 2] & 0x3F) << 6 | (text[pos + 3] & 0x3F), 4


@kernel()  # not a part: written into ``scan_words``, it makes that slower for words with spaces
def _scan_bigrams(
    text: Bytes, pos: int, stop: int, classes: Bytes, starts: Offsets, stops: Offsets, hashes: Hashes, n: int
) -> tuple[int, int]:
    """Add the overlapping pairs of the letters from a byte on, each letter with its marks; a single letter is a word.

    Returns the number of words, and where the run of letters ends.
    """
    before, letter, letters = pos, pos, 0
    while pos < stop:
        code, size = _code_point(text, pos)
        if classes[code] == UNSPACED:
            if letters > 1:
                starts[n], stops[n], hashes[n] = before, pos, hash_bytes(text, before, pos)
                n += 1
            before, letter, letters = letter, pos, letters + 1
        elif classes[code] != MARK:
            break
        pos += size
    starts[n], stops[n], hashes[n] = before, pos, hash_bytes(text, before, pos)
    return n + 1, pos


@kernel()
def scan_words(text: Bytes, text_ends: Offsets, classes: Bytes, min_length: int) -> Spans:
    r"""Find maximal runs of word characters; without marks, those of two or more are what ``\b\w\w+\b`` finds.

    ``classes`` has the class of each code point: WORD, MARK, which continues a word, UNSPACED, or 0; 128 of them are
    enough for ASCII text. Words of fewer than ``min_length`` characters are dropped. Runs of UNSPACED letters, of
    scripts without spaces between words, become overlapping pairs of letters.
    """
    # The word next to a letter of UNSPACED has no space before it, so the two take five bytes or more.
    least = min_length + 1 if classes.size == ASCII else min(min_length + 1, 2)
    capacity = (text.size + text_ends.size) // least + 1
    starts, stops, hashes = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.uint64)
    ends = np.empty(text_ends.size, np.int64)
    n, pos = 0, 0
    for doc in range(text_ends.size):
        start, chars, h = pos, 0, FNV_SEED
        while pos < text_ends[doc]:
            code, size = _code_point(text, pos)
            kind = classes[code]
            if kind == WORD or (kind == MARK and chars > 0):
                for i in range(pos, pos + size):
                    h = (h ^ np.uint64(text[i])) * FNV_PRIME
                pos, chars = pos + size, chars + 1
                continue
            if chars >= min_length:
                starts[n], stops[n], hashes[n] = start, pos, mix_bits(h)
                n += 1
            if kind == UNSPACED:
                n, pos = _scan_bigrams(text, pos, text_ends[doc], classes, starts, stops, hashes, n)
            else:
                pos += size
            start, chars, h = pos, 0, FNV_SEED
        if chars >= min_length:
            starts[n], stops[n], hashes[n] = start, pos, mix_bits(h)
            n += 1
        ends[doc] = n
    return starts[:n], stops[:n], hashes[:n], ends


@part()
def _is_number(text: Bytes, start: int, stop: int, is_digit: Flags) -> bool:
    pos = start
    while pos < stop:
        code, size = _code_point(text, pos)
        if not is_digit[code]:
            return False
        pos += size
    return True


@part()
def _joins_numbers(b: int) -> bool:
    return 44 <= b <= 47 or b == 58  # , - . / or :


@kernel()
def first_words(
    text: Bytes, starts: Offsets, stops: Offsets, hashes: Hashes, ends: Offsets, is_digit: Flags, length: int
) -> Spans:
    """Return the first words of each document; a number counts as one word, and all numbers are the same word.

    A number is a word of digits only, or several with one of ``.,:/-`` between each two. At the very end of ``text`` is
    the word that represents a number: a 0. ``length`` is the maximum number of words per document.
    """
    zero = text.size - 1
    zero_hash = hash_bytes(text, zero, text.size)
    out_starts, out_stops = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    out_hashes, out_ends = np.empty(starts.size, np.uint64), np.empty(ends.size, np.int64)
    n, first = 0, 0
    for doc in range(ends.size):
        limit, after_number = n + length, False
        for i in range(first, ends[doc]):
            number = _is_number(text, starts[i], stops[i], is_digit)
            if number and after_number and starts[i] == stops[i - 1] + 1 and _joins_numbers(text[stops[i - 1]]):
                continue
            if n == limit:
                break
            after_number = number
            if number:
                out_starts[n], out_stops[n], out_hashes[n] = zero, text.size, zero_hash
            else:
                out_starts[n], out_stops[n], out_hashes[n] = starts[i], stops[i], hashes[i]
            n += 1
        first, out_ends[doc] = ends[doc], n
    return out_starts[:n], out_stops[:n], out_hashes[:n], out_ends


@part()
def _is_char_start(b: int) -> bool:
    return b & 0xC0 != 0x80


@part()
def _segment_end(text: Bytes, pos: int, stop: int, by_word: bool) -> tuple[int, int]:
    """Return the end of the segment that starts at a byte, and its number of characters."""
    chars, end = 0, pos
    while end < stop:
        chars += _is_char_start(text[end])
        end += 1
        if by_word and text[end - 1] == _SPACE and end - 1 > pos:
            break
    return end, chars


@kernel()
def scan_chars(text: Bytes, text_ends: Offsets, min_n: int, max_n: int, by_word: bool) -> Spans:
    """Find the character n-grams of min_n to max_n characters.

    If ``by_word``, n-grams stay within a word and the spaces around it; a document is then ``" like this "``. A word
    too short for any n-gram counts once, as one n-gram.
    """
    n_chars = text_ends.size  # at most, with a space twice where it ends a word and starts the next
    for i in range(text.size):
        n_chars += _is_char_start(text[i]) + (by_word and text[i] == _SPACE)
    capacity = n_chars * (max_n - min_n + 1)
    starts, stops, hashes = np.empty(capacity, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.uint64)
    ends = np.empty(text_ends.size, np.int64)
    n = 0
    for doc in range(text_ends.size):
        pos, stop = (0 if doc == 0 else text_ends[doc - 1]), text_ends[doc]
        while pos < stop - by_word:
            end, chars = _segment_end(text, pos, stop, by_word)
            shortest = min(min_n, chars) if by_word else min_n
            remaining = chars
            for start in range(pos, end):
                if remaining < shortest:
                    break
                if not _is_char_start(text[start]):
                    continue
                remaining -= 1
                length, h = 0, FNV_SEED
                for i in range(start, end):
                    h = (h ^ np.uint64(text[i])) * FNV_PRIME
                    if i + 1 == end or _is_char_start(text[i + 1]):
                        length += 1
                        if length >= shortest:
                            starts[n], stops[n], hashes[n] = start, i + 1, mix_bits(h)
                            n += 1
                        if length >= max_n:
                            break
            pos = end - by_word
        ends[doc] = n
    return starts[:n], stops[:n], hashes[:n], ends


@part()
def _same_bytes(a: Bytes, start: int, stop: int, b: Bytes, b_start: int, b_stop: int) -> bool:
    if stop - start != b_stop - b_start:
        return False
    for i in range(stop - start):
        if a[start + i] != b[b_start + i]:
            return False
    return True


@kernel()
def _insert_words(slots: Hashes, hashes: Hashes, n: int) -> None:
    """Insert the first n words, all different, into empty slots."""
    mask = np.uint64(slots.size - 1)
    for word in range(n):
        slot = hashes[word] & mask
        while slots[slot] != _EMPTY:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = (hashes[word] & _HIGH) | np.uint64(word + 1)


@part()
def _find_word(
    text: Bytes, start: int, stop: int, h: np.uint64, slots: Hashes, word_bytes: Bytes, offsets: Offsets
) -> tuple[int, np.uint64]:
    """Return the id of the word in a span, and its slot; -1 and the slot for it if it is not in the table."""
    mask = np.uint64(slots.size - 1)
    slot = h & mask
    word = -1
    while word < 0 and slots[slot] != _EMPTY:
        if (slots[slot] ^ h) & _HIGH == _EMPTY:
            known = int(slots[slot] & _LOW) - 1
            if _same_bytes(text, start, stop, word_bytes, offsets[known], offsets[known + 1]):
                word = known
        if word < 0:
            slot = (slot + np.uint64(1)) & mask
    return word, slot


@kernel()
def assign_word_ids(text: Bytes, starts: Offsets, stops: Offsets, hashes: Hashes, table: Table) -> tuple[Ids, Table]:
    """Give each span the id of its word; new words get the next id, and the table grows as needed."""
    slots, word_hashes, word_bytes, offsets, n = table
    ids = np.empty(starts.size, np.int32)
    for t in range(starts.size):
        start, stop, h = starts[t], stops[t], hashes[t]
        word, slot = _find_word(text, start, stop, h, slots, word_bytes, offsets)
        ids[t] = word if word >= 0 else n
        if word < 0:
            slots[slot] = (h & _HIGH) | np.uint64(n + 1)
            if n == word_hashes.size:
                word_hashes = np.concatenate((word_hashes, np.empty(n, np.uint64)))
                offsets = np.concatenate((offsets, np.empty(n, np.int64)))
            end = offsets[n] + stop - start
            if end > word_bytes.size:
                word_bytes = np.concatenate((word_bytes, np.empty(end, np.uint8)))
            for i in range(stop - start):
                word_bytes[offsets[n] + i] = text[start + i]
            word_hashes[n], offsets[n + 1] = h, end
            n += 1
            if 2 * n > slots.size:
                slots = np.zeros(2 * slots.size, np.uint64)
                _insert_words(slots, word_hashes, n)
    return ids, (slots, word_hashes, word_bytes, offsets, n)


@kernel()
def build_word_slots(word_bytes: Bytes, offsets: Offsets) -> Hashes:
    """Return the slots of a table of these words."""
    n = offsets.size - 1
    size = 16
    while size < 2 * n:
        size *= 2
    slots, hashes = np.zeros(size, np.uint64), np.empty(n, np.uint64)
    for word in range(n):
        hashes[word] = hash_bytes(word_bytes, offsets[word], offsets[word + 1])
    _insert_words(slots, hashes, n)
    return slots


@kernel()
def lookup_words(
    text: Bytes, starts: Offsets, stops: Offsets, hashes: Hashes, slots: Hashes, word_bytes: Bytes, offsets: Offsets
) -> Ids:
    """Give each span the id of its word, or -1 if it is not in the table."""
    ids = np.empty(starts.size, np.int32)
    for t in range(starts.size):
        ids[t], _ = _find_word(text, starts[t], stops[t], hashes[t], slots, word_bytes, offsets)
    return ids
