"""The encoding of a text file: UTF-8, UTF-16, UTF-32; or Windows-1252 and Latin-1 for Western text."""

import codecs
from pathlib import Path

from labelspace.data.archives import compression, is_data_file
from labelspace.data.files import UTF_8, reading
from labelspace.errors import DataError

WINDOWS_1252 = "windows-1252"
LATIN_1 = "latin-1"
SCANNED, UNPACKED = 2**26, 2**22  # bytes that are decoded; fewer of a compressed file, since unpacking takes time
_BLOCK = 2**18
_SAMPLE = 2**16  # bytes from which UTF-16 and the alphabet are detected
_BOMS = {  # the longer ones first: the mark of UTF-32 starts with the mark of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: UTF_8,
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_UNDEFINED = frozenset(b"\x81\x8d\x8f\x90\x9d")  # in Windows-1252
# Share of the letters that are not ASCII, up to which a text is Western. Western languages stay far below it; Cyrillic
# or Greek text, which is decoded into accented letters, is above it.
_MAX_FOREIGN = 0.4
# Share of the pairs of bytes with a zero from which a text is UTF-16, and how much rarer zeros are in the other byte.
# Nearly all pairs of Western text have one; other scripts need a byte order mark.
_ZEROS, _TIMES_ZEROS = 0.3, 10


def detect_encoding(path: str | Path) -> str:
    r"""Detect the encoding of a file; raise an error that asks for it if it is neither Unicode nor Western.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_bytes("text\nCrème brûlée, dulce de leche, Käse\n".encode("cp1252"))
    ...     detect_encoding(f"{folder}/a.csv")
    'windows-1252'
    """
    if not is_data_file(Path(path)):  # the standard input, or a pipe: it cannot be read twice
        return UTF_8
    most = UNPACKED if compression(path) else SCANNED
    with reading(path) as file:
        head = file.read(_SAMPLE)
        by_start = _by_start(head)
        if by_start is not None:
            return by_start
        decoder = codecs.getincrementaldecoder(UTF_8)()
        block = head
        scanned = 0
        while block:
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                return _not_utf8(path, block, head)
            scanned += len(block)
            block = file.read(_BLOCK) if scanned < most else b""
    return UTF_8


def decode_head(head: bytes, encoding: str | None) -> str:
    """Decode the first bytes of a file as text, with a mark for what cannot be decoded."""
    return head.decode(encoding or _by_start(head) or UTF_8, "replace").removeprefix("\ufeff")


def _by_start(head: bytes) -> str | None:
    """Return the encoding by a byte order mark or by zeros; None if there is neither."""
    marked = next((name for mark, name in _BOMS.items() if head.startswith(mark)), None)
    return _utf16(head) if marked is None and b"\0" in head else marked


def _utf16(head: bytes) -> str:
    """Return UTF-16 if most pairs of bytes have a zero in the same place; else UTF-8, whose decoder will complain."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    least = _ZEROS * len(head) / 2
    if odd > least and odd > _TIMES_ZEROS * even:
        return "utf-16-le"
    if even > least and even > _TIMES_ZEROS * odd:
        return "utf-16-be"
    return UTF_8


def _not_utf8(path: str | Path, block: bytes, head: bytes) -> str:
    """Return the encoding of a text with bytes that are not UTF-8; UTF-8 if most bytes are, and some are damaged."""
    sample = block if any(byte > 0x7F for byte in block) else head
    replaced = sample.decode(UTF_8, "replace")
    wrong = replaced.count("\ufffd")
    right = sum(ord(char) > 0x7F for char in replaced) - wrong
    if right >= wrong:
        return UTF_8  # the reader names the line
    decoded = sample.decode(LATIN_1)
    letters = [char for char in decoded if char.isalpha()]
    if sum(ord(char) > 0x7F for char in letters) > _MAX_FOREIGN * len(letters):
        problem = "it is neither UTF-8, UTF-16 nor Western European"
        remedy = "name it: encoding='windows-1251', 'shift_jis', 'gb18030', ..."
        raise DataError(f"the encoding of {path} must be known, but {problem}; {remedy}", options=["encoding="])
    return LATIN_1 if _UNDEFINED.intersection(sample) else WINDOWS_1252
