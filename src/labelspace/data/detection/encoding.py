"""The encoding of a text file: UTF-8, UTF-16, UTF-32, or Windows-1252 and Latin-1 for what is Western and not UTF-8."""

import codecs
from pathlib import Path

from labelspace.data.archives import compression, is_data_file
from labelspace.data.files import UTF_8, reading
from labelspace.errors import DataError

WINDOWS_1252 = "windows-1252"
LATIN_1 = "latin-1"
SCANNED, UNPACKED = 2**26, 2**22  # bytes that are looked at, of a compressed file fewer: these cost more
_BLOCK = 2**18
_SAMPLE = 2**16  # bytes from which UTF-16 and the alphabet are told
_BOMS = (  # the longer ones first: that of UTF-32 starts with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_UNDEFINED = frozenset(b"\x81\x8d\x8f\x90\x9d")  # in Windows-1252
_MAX_FOREIGN = 0.4  # of the letters of a Western text that are not ASCII


def detect_encoding(path: str | Path) -> str:
    r"""The encoding of a file; where it is neither Unicode nor Western, the error asks for it.

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
        decoder, block, scanned = codecs.getincrementaldecoder(UTF_8)(), head, 0
        while block:
            try:
                decoder.decode(block)
            except UnicodeDecodeError:
                return _not_utf8(path, block, head)
            scanned += len(block)
            block = file.read(_BLOCK) if scanned < most else b""
    return UTF_8


def decode_head(head: bytes, encoding: str | None) -> str:
    """The first bytes of a file as text, with a mark for what cannot be decoded."""
    return head.decode(encoding or _by_start(head) or UTF_8, "replace").removeprefix("\ufeff")


def _by_start(head: bytes) -> str | None:
    """The encoding by a byte order mark or by zeros; None where there is neither."""
    marked = next((name for mark, name in _BOMS if head.startswith(mark)), None)
    return _utf16(head) if marked is None and b"\0" in head else marked


def _utf16(head: bytes) -> str:
    """UTF-16 without a byte order mark has a zero in most pairs; else it is left to whoever decodes UTF-8."""
    even, odd = head[::2].count(0), head[1::2].count(0)
    most = 0.3 * len(head) / 2
    if odd > most and odd > 10 * even:
        return "utf-16-le"
    if even > most and even > 10 * odd:
        return "utf-16-be"
    return UTF_8


def _not_utf8(path: str | Path, block: bytes, head: bytes) -> str:
    """The encoding of a text with bytes that are not UTF-8; UTF-8 where most of it is, and some bytes are damaged."""
    sample = block if any(byte > 0x7F for byte in block) else head
    replaced = sample.decode(UTF_8, "replace")
    wrong = replaced.count("\ufffd")
    right = sum(ord(char) > 0x7F for char in replaced) - wrong
    if right >= wrong:
        return UTF_8  # whoever reads it names the line
    decoded = sample.decode(LATIN_1)
    letters = [char for char in decoded if char.isalpha()]
    if sum(ord(char) > 0x7F for char in letters) > _MAX_FOREIGN * len(letters):
        raise DataError(
            f"the encoding of {path} must be known, but it is neither UTF-8, UTF-16 nor Western European; name it: "
            "encoding='windows-1251', 'shift_jis', 'gb18030', ...",
            options=["encoding="],
        )
    return LATIN_1 if _UNDEFINED.intersection(sample) else WINDOWS_1252
