"""Read and write data files, plain or compressed; writes are atomic."""

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

from labelspace.data.archives import compression, zip_archive
from labelspace.errors import DataError, require
from labelspace.types.limits import MAX_LINE_BYTES

Item = TypeVar("Item")
STDIN = "-"
UTF_8 = "utf-8"
_BOM = b"\xef\xbb\xbf"
_BUFFER = 2**18
_report: ContextVar[Callable[[int, int], None] | None] = ContextVar("report of how much was read", default=None)
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
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError) as error:
        remedy = "download or compress it again" if compression(path) else "give a file that can be read"
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} must be readable, but is not ({reason}); {remedy}") from error


def _opened(path: str | Path) -> AbstractContextManager[BinaryIO]:
    if str(path) == STDIN:
        return nullcontext(sys.stdin.buffer)
    archive = zip_archive(path)
    if archive is not None:
        return decompressed(_member(*archive), archive[1])
    report = _report.get()
    raw = io.FileIO(path) if report is None else _CountedFile(path, report)
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
            yield number, (raw.removeprefix(_BOM) if number == 1 else raw).decode()
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
        problem = f"that failed ({error.strerror or error})"
        remedy = "free some space or give another name"
        raise DataError(f"the data must be written to {path}, but {problem}; {remedy}") from error
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
