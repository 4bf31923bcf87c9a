"""List and read input files by path or URL: on a file system that all machines share, or in an object store.

Files are listed by name: one file, the files of a folder, or those of a pattern. On this machine links are followed,
and an unreadable file or folder is an error: no file is left out silently.
"""

import io
import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, BinaryIO, cast

from labelspace.data.files import decompressed
from labelspace.errors import DataError, LabelspaceError, MissingExtraError, require

LOCAL = "file"
GLOB = "*?["
MODIFIED = ("mtime", "ETag", "etag", "LastModified", "last_modified", "updated")  # keys of the time of a file
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
        problem = f"{protocol}:// needs a package that is not installed ({error})"
        raise MissingExtraError(f"{problem}; install it on all machines") from error
    except ValueError as error:
        raise DataError(f"a path must be one that fsspec knows, but is {url!r} ({error}); check it") from error
    if "memory" in _protocols(found):
        problem = f"{url} is in the memory of one process"
        raise DataError(f"all machines must see the same files, but {problem}; write a path")
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
def refusing(url: str, problem: str, remedy: str) -> Iterator[None]:
    """Turn failures of the file system of a path or URL into a DataError with the problem, its reason and a remedy."""
    # Packages of object stores raise errors of their own.
    failures = (OSError, EOFError, zlib.error) if _is_path(url) else Exception
    try:
        yield
    except (LabelspaceError, MemoryError):
        raise
    except failures as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(f"{problem} ({reason}); {remedy}") from error


@contextmanager
def refusing_failures(path: str) -> Iterator[None]:
    """Turn failures to read a file into a DataError."""
    with refusing(path, f"{path} must be readable, but is not", "give a file that can be read"):
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
        changed = f"has {size:,} bytes and not {file.size:,}"
        rule = f"{file.path} must stay as it is and be the same on all machines"
        raise DataError(f"{rule}, but {changed}; start anew with --force")


def list_inputs(url: str) -> list[InputFile]:
    """Return the files of a path, by name: one file, those of a folder and its subfolders, or those of a pattern.

    Like in other tools, names that begin with a dot or an underscore are left out of folders.
    """
    fs, root = file_system(url)
    found = list(map(_local_file, _local_paths(root))) if is_local(fs) else _stored_files(fs, url, root)
    if not found:
        raise DataError(f"--input must be a file, or a folder with files, but {url} has none; check the path")
    return sorted(found, key=lambda file: file.path)


def _stored_files(fs: Any, url: str, root: str) -> list[InputFile]:  # noqa: ANN401 - fsspec has no types
    with refusing_failures(url):
        if fs.isdir(root):
            paths = fs.find(root, detail=True).items()
            found = {path: about for path, about in paths if not any(map(_is_hidden, path[len(root) :].split("/")))}
        elif _is_pattern(root) and not fs.exists(root):
            found = {path: about for path, about in fs.glob(root, detail=True).items() if about["type"] == "file"}
        else:
            found = {root: fs.info(root)}
    files = []
    for path, about in found.items():
        modified = next((str(about[key]) for key in MODIFIED if about.get(key)), "")
        files.append(InputFile(str(fs.unstrip_protocol(path)), about["size"] or 0, modified))
    return files


def _local_paths(root: str) -> Iterable[str]:
    if os.path.isdir(root):
        walked = _walk(root, with_hidden=False)
        return (os.path.join(folder, name) for folder, names in walked for name in names if not _is_hidden(name))
    if not _is_pattern(root) or os.path.exists(root):
        return [root]
    parts = root.split("/")
    n_fixed = [_is_pattern(part) for part in parts].index(True)
    return set(_matching("/".join(parts[:n_fixed]) or "/", parts[n_fixed:]))


def _local_file(path: str) -> InputFile:
    """Return a file as it is now; for a link, its target."""
    with refusing_failures(path):
        about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        raise DataError(f"--input must be a file, or a folder with files, but {path} is neither; leave it out")
    return InputFile(path, about.st_size, str(about.st_mtime))


def _walk(root: str, with_hidden: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield a folder and its subfolders with the names of their files; each once, however many links lead to it."""
    seen = {os.path.realpath(root)}
    for folder, folders, names in os.walk(root, onerror=_refuse, followlinks=True):
        kept = [name for name in sorted(folders) if with_hidden or not _is_hidden(name)]
        folders[:] = [name for name in kept if _add(seen, os.path.join(folder, name))]
        yield folder, names


def _add(seen: set[str], path: str) -> bool:
    """Record that a folder was seen; return whether it is new."""
    real = os.path.realpath(path)
    is_new = real not in seen
    seen.add(real)
    return is_new


def _refuse(error: OSError) -> None:
    with refusing_failures(str(error.filename)):
        raise error


def _matching(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield files whose path in a folder matches part by part; ``**`` stands for any number of folders."""
    part, *rest = parts
    if part == "**":
        for below, _ in _walk(folder, with_hidden=True):
            yield from _matching(below, rest or ["*"])
        return
    with refusing_failures(folder), os.scandir(folder) as entries:
        found = [(entry.path, entry.is_dir()) for entry in entries if fnmatchcase(entry.name, part)]
    for path, is_folder in found:
        if is_folder and rest:
            yield from _matching(path, rest)
        elif not is_folder and not rest:
            yield path


def _is_pattern(path: str) -> bool:
    return any(mark in path for mark in GLOB)


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))
