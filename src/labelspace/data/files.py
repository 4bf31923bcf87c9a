"""Read and write data files, plain or gzipped; writes are atomic."""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO, TextIO, TypeVar, cast

from labelspace.errors import DataError
from labelspace.limits import MAX_LINE_BYTES

Item = TypeVar("Item")
STDIN = "-"
_BOM = b"\xef\xbb\xbf"
_BUFFER = 2**18
_MAX_BLANK_LINES = 10**6  # in a row: a gzipped file of nothing else would be read for hours


def is_gzipped(path: str | Path) -> bool:
    """Whether the name ends with .gz."""
    return str(path).lower().endswith(".gz")


@contextmanager
def reading(path: str | Path) -> Iterator[BinaryIO]:
    """Open for reading bytes, decompressed where the name ends with .gz; ``-`` is the standard input."""
    try:
        if str(path) == STDIN:
            yield sys.stdin.buffer
        elif is_gzipped(path):
            with io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(path)), _BUFFER) as file:
                yield file
        else:
            with open(path, "rb", buffering=_BUFFER) as file:
                yield file
    except FileNotFoundError as error:
        raise DataError(f"a data file must exist, but {path} does not; check the path") from error
    except (OSError, EOFError, zlib.error) as error:
        remedy = "download or compress it again" if is_gzipped(path) else "give a file that can be read"
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} must be readable, but is not ({reason}); {remedy}") from error


def lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Line number (from 1) and line, its end included, of a UTF-8 file; a byte order mark is skipped."""
    limit, n_blank = MAX_LINE_BYTES.value, 0
    with reading(path) as file:
        for number, raw in enumerate(iter(partial(file.readline, limit + 1), b""), start=1):
            if len(raw) > limit:
                raise too_long(path, number)
            n_blank = n_blank + 1 if raw.isspace() else 0
            if n_blank > _MAX_BLANK_LINES:
                problem = f"expected at most {_MAX_BLANK_LINES} blank lines in a row, but there are more"
                raise DataError(f"{path}:{number}: {problem}; remove them")
            try:
                line = (raw.removeprefix(_BOM) if number == 1 else raw).decode()
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{path}:{number}: expected UTF-8 text, but byte {error.start + 1} of the line is "
                    f"0x{error.object[error.start]:02x}; save the file as UTF-8"
                ) from error
            yield number, line


def too_long(path: str | Path, line: int) -> DataError:
    """The error for a line, or a row that starts in it, of more than ``MAX_LINE_BYTES``."""
    return DataError(
        f"{path}:{line}: expected at most {MAX_LINE_BYTES.value} bytes per line or row, but there are more; split the "
        f"document, or {MAX_LINE_BYTES.raise_it}"
    )


def without_blank_end(items: Iterable[Item], is_blank: Callable[[Item], bool]) -> Iterator[Item]:
    """The items without trailing blank ones: editors leave such lines at the end of a file.

    Of several blank ones in a row, only the first is kept: its reader refuses it, and a file may have any number.

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
    """A temporary path in the same folder, renamed to ``path`` on success and deleted on failure."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.writing-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(target)
    except OSError as error:
        raise DataError(
            f"the data must be written to {path}, but that failed ({error.strerror or error}); "
            "free some space or give another name"
        ) from error
    except UnicodeEncodeError as error:
        raise DataError(
            f"text for {path} must be valid Unicode, but has the lone surrogate {error.object[error.start]!r}; "
            "replace it before writing"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def writing(path: str | Path) -> Iterator[BinaryIO]:
    """Open for writing bytes, compressed where the name ends with .gz; equal data give equal files."""
    with replacing(path) as temporary, temporary.open("wb") as raw:
        if is_gzipped(path):
            with gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as file:
                yield cast(BinaryIO, file)
        else:
            yield raw


@contextmanager
def writing_text(path: str | Path) -> Iterator[TextIO]:
    """Open for writing UTF-8 text, without newline translation."""
    with writing(path) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        yield text
