"""List the files of an input by name: one file, the files of a folder, or those of a pattern.

On this machine links are followed, and an unreadable file or folder is an error: no file is left out silently.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from labelspace.cluster.prediction.storage import InputFile, file_system, is_local, refusing_failures
from labelspace.errors import DataError

GLOB = "*?["


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
    return [
        InputFile(str(fs.unstrip_protocol(path)), about["size"] or 0, _modified(about)) for path, about in found.items()
    ]


def _modified(about: dict[str, Any]) -> str:
    keys = ("mtime", "ETag", "etag", "LastModified", "last_modified", "updated")
    return next((str(about[key]) for key in keys if about.get(key)), "")


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
