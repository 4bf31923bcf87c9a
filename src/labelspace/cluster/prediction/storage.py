"""Files by path or URL: on a file system that all machines share, or in an object store, through fsspec."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from labelspace.data.files import decompressed
from labelspace.errors import DataError, MissingExtraError, require

LOCAL = "file"
GLOB = "*?["
_BUFFER = 2**20


@dataclass(frozen=True)
class InputFile:
    """A file of documents, as it was when the work began."""

    path: str  # absolute, or a URL
    size: int  # bytes
    modified: str  # as its file system says it; empty where that says nothing


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a path or URL, and the path in it."""
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
    """Whether the paths of a file system are those of this machine."""
    return LOCAL in _protocols(fs)


def _protocols(fs: Any) -> tuple[str, ...]:  # noqa: ANN401 - fsspec has no types
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def list_inputs(url: str) -> list[InputFile]:
    """The files of a path: one, those of a folder and its folders, or those of a pattern with ``*``; by their names.

    As other tools do, names that begin with a dot or an underscore are left out of folders.
    """
    fs, root = file_system(url)
    with refusing_failures(url):
        if fs.isdir(root):
            found = {path: about for path, about in fs.find(root, detail=True).items() if not _is_hidden(path, root)}
        elif any(mark in root for mark in GLOB) and not fs.exists(root):
            found = {path: about for path, about in fs.glob(root, detail=True).items() if about["type"] == "file"}
        else:
            found = {root: fs.info(root)}
    if not found:
        raise DataError(f"--input must be a file, or a folder with files, but {url} has none; check the path")
    return [InputFile(_named(fs, path), about["size"] or 0, _modified(about)) for path, about in sorted(found.items())]


def _is_hidden(path: str, root: str) -> bool:
    return any(part.startswith((".", "_")) for part in path[len(root) :].split("/"))


def _named(fs: Any, path: str) -> str:  # noqa: ANN401 - fsspec has no types
    return path if is_local(fs) else str(fs.unstrip_protocol(path))


def _modified(about: dict[str, Any]) -> str:
    keys = ("mtime", "ETag", "etag", "LastModified", "last_modified", "updated")
    return next((str(about[key]) for key in keys if about.get(key)), "")


@contextmanager
def refusing_failures(path: str) -> Iterator[None]:
    """What a file system cannot do is an error of one line."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"a data file must exist, but {path} does not; check the path") from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} must be readable, but is not ({reason}); give a file that can be read") from error


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked as its name says."""
    fs, name = file_system(path)
    with refusing_failures(path):
        raw = io.BufferedReader(cast(io.RawIOBase, fs.open(name, "rb")), _BUFFER)
        with decompressed(cast(BinaryIO, raw), name) as file:
            yield file


def read_range(path: str, start: int, stop: int) -> bytes:
    """Some bytes of a file that is not compressed."""
    fs, name = file_system(path)
    with refusing_failures(path):
        return cast(bytes, fs.cat_file(name, start=start, end=stop))


def check_unchanged(file: InputFile) -> None:
    """Refuse a file that has another size than when the work began."""
    fs, name = file_system(file.path)
    with refusing_failures(file.path):
        size = fs.info(name)["size"] or 0
    if size != file.size:
        raise DataError(
            f"{file.path} must stay as it is and be the same on all machines, but has {size:,} bytes and not "
            f"{file.size:,}; start anew with --force"
        )
