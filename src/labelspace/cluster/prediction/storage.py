"""Read files by path or URL: on a file system that all machines share, or in an object store, through fsspec."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from labelspace.data.files import decompressed
from labelspace.errors import DataError, LabelspaceError, MissingExtraError, require

LOCAL = "file"
_BUFFER = 2**20


@dataclass(frozen=True)
class InputFile:
    """A file of documents, as it was when the work began."""

    path: str  # absolute, or a URL
    size: int  # bytes
    modified: str  # as the file system reports it; empty if it does not


def file_system(url: str) -> tuple[Any, str]:
    """Return the file system of a path or URL, and the path in it."""
    core = require("fsspec.core", "cluster", "--cluster")
    if "://" not in url:
        return core.filesystem(LOCAL), os.path.abspath(url)
    protocol = url.partition("://")[0]
    try:
        found, path = core.url_to_fs(url)
    except ImportError as error:
        raise MissingExtraError(
            f"{protocol}:// needs a package that is not installed ({error}); install it on all machines"
        ) from error
    except ValueError as error:
        raise DataError(f"a path must be one that fsspec knows, but is {url!r} ({error}); check it") from error
    if "memory" in _protocols(found):
        raise DataError(
            f"all machines must see the same files, but {url} is in the memory of one process; write a path"
        )
    return found, path


def is_local(fs: Any) -> bool:  # noqa: ANN401 - fsspec has no types
    """Return whether the paths of a file system are paths of this machine."""
    return LOCAL in _protocols(fs)


def _protocols(fs: Any) -> tuple[str, ...]:  # noqa: ANN401 - fsspec has no types
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def _is_path(url: str) -> bool:
    protocol, found, _ = url.partition("://")
    return not found or protocol in (LOCAL, "local")


@contextmanager
def refusing(url: str, says: Callable[[str], str]) -> Iterator[None]:
    """Turn failures of the file system of a path or URL into a DataError; ``says`` makes its text from the reason."""
    failures = (
        (OSError, EOFError, zlib.error) if _is_path(url) else Exception
    )  # packages of object stores raise errors of their own
    try:
        yield
    except (LabelspaceError, MemoryError):
        raise
    except failures as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(says(reason)) from error


@contextmanager
def refusing_failures(path: str) -> Iterator[None]:
    """Turn failures to read a file into a DataError."""
    with refusing(path, lambda reason: f"{path} must be readable, but is not ({reason}); give a file that can be read"):
        try:
            yield
        except FileNotFoundError as error:
            raise DataError(f"a data file must exist, but {path} does not; check the path") from error


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open a file for its bytes, decompressed by the ending of its name."""
    fs, name = file_system(path)
    with refusing_failures(path):
        raw = io.BufferedReader(cast(io.RawIOBase, fs.open(name, "rb")), _BUFFER)
        with decompressed(cast(BinaryIO, raw), name) as file:
            yield file


def read_range(path: str, start: int, stop: int) -> bytes:
    """Return some bytes of a file that is not compressed."""
    fs, name = file_system(path)
    with refusing_failures(path):
        return cast(bytes, fs.cat_file(name, start=start, end=stop))


def check_unchanged(file: InputFile) -> None:
    """Raise DataError if the size of a file has changed since the work began."""
    fs, name = file_system(file.path)
    with refusing_failures(file.path):
        size = fs.info(name)["size"] or 0
    if size != file.size:
        raise DataError(
            f"{file.path} must stay as it is and be the same on all machines, but has {size:,} bytes and not "
            f"{file.size:,}; start anew with --force"
        )
