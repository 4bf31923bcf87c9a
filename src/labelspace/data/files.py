"""Read and write data files, plain or compressed; writes are atomic. The encoding of a text file is detected.

It is UTF-8, UTF-16 or UTF-32; or Windows-1252 or Latin-1 for Western text.
"""

import codecs
import gzip
import io
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeVar, cast

from labelspace.data.archives import check_is_text, compression, is_data_file, zip_archive
from labelspace.data.waiting_input import waiting_file
from labelspace.errors import DataError, require
from labelspace.types.limits import MAX_LINE_BYTES

Item = TypeVar("Item")
STDIN = "-"
UTF_8 = "utf-8"
_BUFFER = 2**18
_report: ContextVar[Callable[[int, int], None] | None] = ContextVar("report of how much was read", default=None)
LATIN_1 = "latin-1"
SCANNED, UNPACKED = 2**26, 2**22  # bytes that are decoded; fewer of a compressed file, since unpacking takes time
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
_MAX_BLANK_LINES = 10**6  # in a row: a gzipped file of nothing else would be read for hours


@contextmanager
def reporting_progress(report: Callable[[int, int], None]) -> Iterator[None]:
    """Call ``report(bytes read, bytes in all)`` while a file is read within."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


class _CountedFile(io.FileIO):
    """A file that reports how much of it was read."""

    def __init__(self, path: str | Path, report: Callable[[int, int], None]) -> None:
        super().__init__(path)
        self._size = os.fstat(self.fileno()).st_size
        self._n_read = 0
        self._report = report

    def readinto(self, buffer: Any, /) -> int | None:  # noqa: ANN401 - any writable buffer
        n = super().readinto(buffer)
        self._n_read += n or 0
        self._report(min(self._n_read, self._size), self._size)
        return n


@contextmanager
def reading(path: str | Path) -> Iterator[BinaryIO]:
    """Open for reading bytes, decompressed if the name ends with .gz, .zst or .zip; ``-`` is the standard input.

    A file in a zip archive has the path of the archive in front of its own: ``data.zip/train.csv``.
    """
    try:
        with _opened(path) as file:
            yield file
    except FileNotFoundError as error:
        raise DataError(f"a data file must exist, but {path} does not; check the path") from error
    except BrokenPipeError:  # of answers that are written before more is read
        raise
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError) as error:
        remedy = "download or compress it again" if compression(path) else "give a file that can be read"
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} must be readable, but is not ({reason}); {remedy}") from error


def _opened(path: str | Path) -> AbstractContextManager[BinaryIO]:
    waiting = waiting_file(path)
    if str(path) == STDIN:
        return nullcontext(sys.stdin.buffer) if waiting is None else io.BufferedReader(waiting, _BUFFER)
    archive = zip_archive(path)
    if archive is not None:
        return decompressed(_member(*archive), archive[1])
    report = _report.get()
    raw = waiting or (io.FileIO(path) if report is None else _CountedFile(path, report))
    return decompressed(io.BufferedReader(raw, _BUFFER), path)


@contextmanager
def decompressed(file: BinaryIO, name: str | Path) -> Iterator[BinaryIO]:
    """Return the content of an open file, unpacked as its name says, and close it at the end."""
    kind = compression(name)
    with file:
        if kind == ".gz":
            with io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=file)), _BUFFER) as unpacked:
                yield unpacked
        elif kind == ".zst":
            zstandard = require("zstandard", "zstd")
            try:
                with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True) as raw:
                    yield io.BufferedReader(raw, _BUFFER)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
        else:
            yield file


def _member(archive: Path, name: str) -> BinaryIO:
    with zipfile.ZipFile(archive) as members:
        try:
            return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, members.open(name)), _BUFFER))
        except KeyError:
            raise FileNotFoundError(name) from None
        except RuntimeError as error:  # encrypted
            problem = f"{name} is encrypted"
            raise DataError(f"{archive} must be readable without a password, but {problem}; unpack it first") from error


def lines(path: str | Path, encoding: str = UTF_8) -> Iterator[tuple[int, str]]:
    """Return the number (from 1) and the text of each line, its end included; a byte order mark is skipped."""
    limit, n_blank = MAX_LINE_BYTES.value, 0
    with reading(path) as file:
        for number, line in _utf8_lines(path, file) if encoding == UTF_8 else _decoded_lines(path, file, encoding):
            if len(line) > limit:
                raise too_long(path, number)
            n_blank = n_blank + 1 if line.isspace() else 0
            if n_blank > _MAX_BLANK_LINES:
                problem = f"expected at most {_MAX_BLANK_LINES} blank lines in a row, but there are more"
                raise DataError(f"{path}:{number}: {problem}; remove them")
            yield number, line


def _utf8_lines(path: str | Path, file: BinaryIO) -> Iterator[tuple[int, str]]:
    limit = MAX_LINE_BYTES.value
    for number, raw in enumerate(iter(partial(file.readline, limit + 1), b""), start=1):
        if len(raw) > limit:
            raise too_long(path, number)
        try:
            yield number, (raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw).decode()
        except UnicodeDecodeError as error:
            problem = f"byte {error.start + 1} of the line is 0x{error.object[error.start]:02x}"
            remedy = "save the file as UTF-8, or name its encoding, such as encoding='windows-1252'"
            message = f"{path}:{number}: expected UTF-8 text, but {problem}; {remedy}"
            raise DataError(message, options=["encoding="]) from error


def _decoded_lines(path: str | Path, file: BinaryIO, encoding: str) -> Iterator[tuple[int, str]]:
    number = 0
    text = io.TextIOWrapper(file, encoding=encoding, newline="\n")  # only \n ends a line, as in UTF-8
    try:
        for line in iter(partial(text.readline, MAX_LINE_BYTES.value + 1), ""):
            number += 1
            yield number, line.removeprefix("\ufeff") if number == 1 else line
    except UnicodeError as error:
        reason = " ".join(str(error).split())[:120]
        rule = f"{path}:{number + 1}: expected {encoding} text"
        remedy = "name another encoding, or save the file as UTF-8"
        raise DataError(f"{rule}, but it cannot be decoded ({reason}); {remedy}", options=["encoding"]) from error
    finally:
        text.detach()


def too_long(path: str | Path, line: int) -> DataError:
    """Return the error for a line, or a row that starts in it, of more than ``MAX_LINE_BYTES``."""
    rule = f"{path}:{line}: expected at most {MAX_LINE_BYTES.value} bytes per line or row"
    return DataError(f"{rule}, but there are more; split the document, or {MAX_LINE_BYTES.raise_it}")


def without_blank_end(items: Iterable[Item], is_blank: Callable[[Item], bool]) -> Iterator[Item]:
    """Return the items without trailing blank ones: editors leave such lines at the end of a file.

    Of several blank ones in a row only the first is kept: its reader refuses it, and a file may have any number.

    >>> list(without_blank_end(["a", "", "", "b", "", ""], lambda line: not line))
    ['a', '', 'b']
    """
    pending: list[Item] = []
    for item in items:
        if not is_blank(item):
            yield from pending
            yield item
            pending.clear()
        elif not pending:
            pending.append(item)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path in the same folder, renamed to ``path`` on success and deleted on failure."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.writing-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(target)
    except OSError as error:
        problem = f"that failed ({error.strerror or error}); free some space or give another name"
        raise DataError(f"the data must be written to {path}, but {problem}") from error
    except UnicodeEncodeError as error:
        problem = f"has the lone surrogate {error.object[error.start]!r}"
        raise DataError(f"text for {path} must be valid Unicode, but {problem}; replace it before writing") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def writing(path: str | Path) -> Iterator[BinaryIO]:
    """Open for writing bytes, compressed if the name ends with .gz or .zst; equal data give equal files."""
    kind = compression(path)
    if kind == ".zip":
        raise DataError(f"data are written plain, or compressed as .gz or .zst, but {path} is a zip; name it so")
    zstandard = require("zstandard", "zstd") if kind == ".zst" else None
    with replacing(path) as temporary, temporary.open("wb") as raw:
        if kind == ".gz":
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as file:
                yield cast(BinaryIO, file)
        elif zstandard is not None:
            with zstandard.ZstdCompressor(level=10).stream_writer(raw, closefd=False) as file:
                yield cast(BinaryIO, file)
        else:
            yield raw


@contextmanager
def writing_text(path: str | Path) -> Iterator[TextIO]:
    """Open for writing UTF-8 text, without newline translation."""
    with writing(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        yield text


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
        check_is_text(path, head)
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
            block = file.read(_BUFFER) if scanned < most else b""
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
    letters = [char for char in sample.decode(LATIN_1) if char.isalpha()]
    if sum(ord(char) > 0x7F for char in letters) > _MAX_FOREIGN * len(letters):
        problem = "it is neither UTF-8, UTF-16 nor Western European"
        remedy = "name it: encoding='windows-1251', 'shift_jis', 'gb18030', ..."
        raise DataError(f"the encoding of {path} must be known, but {problem}; {remedy}", options=["encoding="])
    return LATIN_1 if _UNDEFINED.intersection(sample) else "windows-1252"
