"""Older versions of a model folder: ``MODEL.versions/NUMBER``, each a complete model folder.

MODEL is replaced by a new version in these steps, so that a process may be killed between any two:

1. MODEL is copied to its number, by hard links where the file system has them. The copy is there whole or not at all.
2. The new version replaces MODEL in one step (see ``atomic``).
3. Of too many older versions, the oldest are removed. Each is renamed first, so that none is half removed.

What a killed process leaves is swept by the next that changes MODEL. Only one changes it at a time: it holds a lock
file, which the system frees if it is killed.
"""

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from labelspace.errors import ModelError
from labelspace.estimator.parameter_constraints import MAX_INTEGER
from labelspace.store.atomic import locked, recover, remove_folder, replacing_folder, sweep
from labelspace.store.model_folder import (
    CARD,
    MANIFEST,
    Card,
    check_writable,
    read_manifest,
    refusing_failed_writes,
    sealed,
    write_card,
    write_manifest,
)

KEPT = 5  # older versions
_NUMBER = re.compile("[0-9]+")
_LEFTOVER = re.compile(r"\.([0-9]+)\.(?:writing|old)-[0-9a-f]{8}")


def real_folder(folder: str | Path) -> Path:
    """Return the path of a model folder without links: its versions lie next to it."""
    return Path(os.path.realpath(folder))


def versions_folder(folder: str | Path) -> Path:
    """Return the folder with the older versions of a model."""
    real = real_folder(folder)
    return real.with_name(f"{real.name}.versions")


@contextmanager
def changing(folder: str | Path) -> Iterator[None]:
    """Hold the lock of a model folder, and sweep what killed processes left; raise ModelError if it is held."""
    real = real_folder(folder)
    with ExitStack() as stack:
        try:
            is_free = stack.enter_context(locked(real.with_name(f".{real.name}.lock")))
        except OSError as error:
            rule = f"a model must lie in a folder that can be written, but {real.parent} cannot"
            raise ModelError(f"{rule} ({error.strerror or error}); copy the model to another folder") from error
        if not is_free:
            rule = f"only one process may change {folder} at a time, but another one does"
            raise ModelError(f"{rule}; wait until it has ended")
        recover(real)
        _sweep_versions(folder)
        yield


def _sweep_versions(folder: str | Path) -> None:
    where = versions_folder(folder)
    names = [] if where.is_symlink() or not where.is_dir() else os.listdir(where)
    for match in {found[1]: found for found in map(_LEFTOVER.fullmatch, names) if found is not None}.values():
        sweep(where / match[1])


def kept_versions(folder: str | Path) -> dict[int, Path]:
    """Return the folders of the older versions by number, in order; other names are not ours, and left alone."""
    where = versions_folder(folder)
    if not os.path.lexists(where):
        return {}
    try:
        if where.is_symlink() or not where.is_dir():
            raise ModelError(f"{where} must be a folder of older versions, but is a link or a file; move it away")
        found = {}
        for name in os.listdir(where):
            if _NUMBER.fullmatch(name):
                found[_checked_number(where, name)] = where / name
    except OSError as error:
        rule = f"the older versions in {where} must be readable, but are not ({error.strerror or error})"
        raise ModelError(f"{rule}; check the folder") from error
    return dict(sorted(found.items()))


def _checked_number(where: Path, name: str) -> int:
    path, number = where / name, int(name) if len(name) <= len(str(MAX_INTEGER)) else 0
    if str(number) != name or not 1 <= number < MAX_INTEGER:
        rule = f"older versions must be numbered from 1 to {MAX_INTEGER - 1}"
        raise ModelError(f"{rule}, but one in {where} is {name[:40]!r}; move it away")
    if path.is_symlink() or not path.is_dir():
        raise ModelError(f"an older version must be a folder, but {path} is a link or a file; move it away")
    return number


def keep_version(folder: str | Path, number: int) -> None:
    """Copy a model folder to its older versions, unless it is there; step 1 above."""
    real, target = real_folder(folder), versions_folder(folder) / str(number)
    manifest = read_manifest(real)
    if number in kept_versions(folder):
        if read_manifest(target).get("checksum") == manifest["checksum"]:
            return
        rule = f"{target} must be version {number} of {folder}, but is of another model"
        raise ModelError(f"{rule}; move {target.parent} away")
    with refusing_failed_writes(target), replacing_folder(target, lambda path: None) as work:
        card = [CARD] if (real / CARD).is_file() else []
        for name in (MANIFEST, *card, *_file_names(real, manifest)):
            _link(real / name, work / name)
        if read_manifest(work) != read_manifest(real):
            raise ModelError(f"only one process may change {folder} at a time, but another one does; try again")


def restore_version(folder: str | Path, number: int, changes: Mapping[str, Any], card: Card) -> None:
    """Replace a model folder by one of its older versions, with some entries of its ``model.json`` changed."""
    source = kept_versions(folder)[number]
    manifest = read_manifest(source)
    names = _file_names(source, manifest)
    for name in names:
        if not stat.S_ISREG(os.lstat(source / name).st_mode):
            rule = f"an older version must hold its files itself, but {source / name} is a link"
            raise ModelError(f"{rule}; copy the whole folder again, or go back to another version")
    with refusing_failed_writes(folder), replacing_folder(folder, check_writable) as work:
        for name in names:
            _link(source / name, work / name)
        write_manifest(work, sealed({**manifest, **changes}))
        write_card(work, card)


def drop_versions(folder: str | Path, current: int, n_kept: int) -> None:
    """Remove the oldest of more than ``n_kept`` versions other than the current one; step 3 above."""
    older = [path for number, path in kept_versions(folder).items() if number != current]
    for path in older[: max(0, len(older) - n_kept)]:
        with refusing_failed_writes(path):
            remove_folder(path)


def _file_names(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Return the names of the files of a model besides ``model.json``; raise ModelError for one outside of it."""
    listed = manifest.get("files")
    names = list(listed) if isinstance(listed, dict) else []
    for name in names:
        if name != os.path.basename(name) or name in ("", os.curdir, os.pardir, MANIFEST) or "\\" in name:
            rule = f"the files of {folder} must lie in it, but one is {name[:80]!r}"
            raise ModelError(f"{rule}; copy it again, or train it again")
        if not (folder / name).is_file():
            raise ModelError(f"the model must hold {name}, but {folder / name} is missing; copy the whole folder again")
    return names


def _link(source: Path, target: Path) -> None:
    """Link a file, or copy it where that is not possible, or where it is a link or the file of another user."""
    about = os.lstat(source)
    is_ours = not hasattr(os, "geteuid") or about.st_uid == os.geteuid()
    if stat.S_ISREG(about.st_mode) and is_ours:
        try:
            os.link(source, target)
        except OSError:  # no hard links on this file system, or too many
            pass
        else:
            return
    shutil.copyfile(source, target)
