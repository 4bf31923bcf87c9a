"""Folders and files replaced whole or not at all, whenever the process is killed or the power fails.

New content is written to ``.NAME.writing-TOKEN`` next to the target and synced to disk. A file is then renamed over the
target. A folder is exchanged with it in one system call (Linux); where a file system cannot, there are two renames:

1. target -> ``.NAME.old-TOKEN``
2. ``.NAME.writing-TOKEN`` -> target

Only between them is there no target but both of the others, and the new folder is whole: ``recover`` makes the second
rename, at the next load or save. Doing so while the writer lives is what the writer would have done.

A writer locks its ``.writing`` folder while it lives; the next writer removes those of dead ones. Several writers may
write at once: each replaces the target by its own whole folder, and the last one stays.
"""

import ctypes
import errno
import os
import re
import secrets
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")
TRIES = 100  # of a step that another process undid meanwhile: more than any number of writers should need
READ_SECONDS = 30.0  # for which a read that writers overtake is repeated; then something is wrong
MISSING_TRIES = 3  # to read a missing file: a writer may be between its two renames
PAUSE = 0.03  # seconds between two tries; two renames take less
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_NO_EXCHANGE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}
_NOT_WRITTEN = {errno.EIO, errno.ENOSPC, errno.EDQUOT}  # other errors of a folder's sync: the file system has none


@contextmanager
def replacing_folder(folder: str | Path, check: Callable[[Path], None]) -> Iterator[Path]:
    """Yield a new folder that replaces ``folder`` at the end, synced to disk; on failure ``folder`` is unchanged.

    ``check`` raises an error if the folder must not be replaced. It is called before the writing and again after it.
    """
    target = Path(os.path.realpath(folder))
    read_unreplaced(target, lambda: check(target))
    before = _identity(target) if os.path.lexists(target) else ()
    with _working_folder(target) as work:
        yield work
        _sync_all(work)
        now = _identity(target)
        if before is not None and now is not None and now[:2] != before[:2]:
            warnings.warn(f"another process wrote {target} meanwhile; what it wrote is replaced", stacklevel=2)
        _swap(work, target, check)
        _sync_renamed(target)
        _remove(_retired(target, work))


@contextmanager
def replacing_file(path: Path, durable: bool = True) -> Iterator[Path]:
    """Yield a path to write to; the file written there replaces ``path`` at the end, synced to disk if ``durable``."""
    with _working_folder(path) as work:
        yield work / path.name
        if durable:
            _sync_all(work)
        os.replace(work / path.name, path)
        if durable:
            _sync_renamed(path)


def recover(folder: str | Path) -> None:
    """Finish a replacement that was cut off between its two renames."""
    target = Path(os.path.realpath(folder))
    if os.path.lexists(target):
        return
    for work in _unfinished(target):
        try:
            os.rename(work, target)
            _sync_renamed(target)
        except OSError:
            time.sleep(PAUSE)  # it is finished by another process, or cannot be finished by this one


def read_unreplaced(folder: str | Path, read: Callable[[], Result]) -> Result:
    """Return or raise what ``read`` does; call it again if the folder was replaced meanwhile, so that no two mix."""
    deadline = time.monotonic() + READ_SECONDS
    for tried in count():
        before = _identity(folder)
        try:
            result = read()
        except Exception:
            after = _identity(folder)
            if after == before and (after or tried >= MISSING_TRIES):
                raise
            if after is None:  # perhaps a writer is between its two renames
                time.sleep(PAUSE)
        else:
            if before == _identity(folder):
                return result
        if time.monotonic() > deadline:
            raise OSError(errno.EBUSY, "other processes keep replacing it", str(folder))
    raise AssertionError("counting does not end")


def remove_folder(target: Path) -> None:
    """Remove a folder such that it is there whole or not at all; ``sweep`` removes what a killed process leaves."""
    retired = target.with_name(f".{target.name}.old-{secrets.token_hex(4)}")
    os.rename(target, retired)
    _sync_renamed(target)
    _remove(retired)


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold a lock file, which is removed at the end; yield False if another process or thread holds it."""
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            try:
                free = _lock(descriptor)
            except OSError:  # the file system has no locks
                free = True
            if free and not _is_at(descriptor, path):  # its last holder removed it
                continue
            try:
                yield free
            finally:
                if free:
                    with suppress(OSError):
                        os.unlink(path)
            return
        finally:
            os.close(descriptor)


@contextmanager
def _working_folder(target: Path) -> Iterator[Path]:
    """Yield a new locked folder next to the target; remove leftovers before, and the folder at the end."""
    missing = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        _sync_renamed(folder)
    recover(target)
    sweep(target)
    with _new_folder(target) as work:
        try:
            yield work
        finally:
            retired = _retired(target, work)
            if os.path.lexists(retired) and not os.path.lexists(target):  # stopped between the renames
                with suppress(OSError):
                    os.rename(retired, target)
            if not os.path.lexists(retired):  # else ``recover`` needs both
                _remove(work)


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder next to the target, locked if the system can lock folders."""
    while True:
        work = target.with_name(f".{target.name}.writing-{secrets.token_hex(4)}")
        work.mkdir()
        if sys.platform == "win32":
            yield work
            return
        try:
            descriptor = os.open(work, os.O_RDONLY)
        except FileNotFoundError:  # swept before it was locked
            continue
        except OSError:
            _remove(work)
            raise
        try:
            try:
                ours = _lock(descriptor) and _is_at(descriptor, work)
            except OSError:  # the file system has no locks
                ours = True
            if ours:
                yield work
                return
        finally:
            os.close(descriptor)


def _swap(work: Path, target: Path, check: Callable[[Path], None]) -> None:
    """Put a folder in the place of the target, which is then at ``work`` or retired."""
    retired, is_retired = _retired(target, work), False
    for _ in range(TRIES):
        read_unreplaced(target, lambda: check(target))
        try:
            os.rename(work, target)  # succeeds where there is no target or an empty one
            return
        except OSError as error:
            if is_retired and not os.path.lexists(work):
                return  # another process found no target and recovered it
            if error.errno not in _NOT_EMPTY:
                raise
        with suppress(FileNotFoundError):  # another writer has just moved the target away
            if _exchange(work, target):
                return
            _remove(retired)
            os.rename(target, retired)
            is_retired = True
    raise OSError(errno.EBUSY, "other processes keep replacing it")


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; return False if the system or the file system cannot."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(other))


def sweep(target: Path) -> None:
    """Remove what writers of this target left that no longer live."""
    if sys.platform == "win32" or (not target.exists() and _unfinished(target)):
        return
    for work in _leftovers(target):
        descriptor = None
        try:
            if work.exists():
                descriptor = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            if descriptor is None or _lock(descriptor):
                _remove(_retired(target, work))  # first: without it nothing is recovered
                _remove(work)
        except OSError:  # a link, of another user, or the file system has no locks
            continue
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _leftovers(target: Path) -> list[Path]:
    """Return the working folders of this target, also those of which only the retired target is left."""
    pattern = re.compile(re.escape(f".{target.name}.") + r"(?:writing|old)-([0-9a-f]{8})")
    try:
        with os.scandir(target.parent) as entries:
            found = [pattern.fullmatch(entry.name) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:  # no such folder, or it may not be read
        return []
    return sorted({target.with_name(f".{target.name}.writing-{match[1]}") for match in found if match})


def _unfinished(target: Path) -> list[Path]:
    """Return the working folders of writers that retired the target and have not yet replaced it."""
    return [work for work in _leftovers(target) if work.is_dir() and _retired(target, work).is_dir()]


def _retired(target: Path, work: Path) -> Path:
    """Return the path of the target between the two renames."""
    return target.with_name(f".{target.name}.old-{work.name[-8:]}")


def _remove(folder: Path) -> None:
    """Remove a folder that this module made, as far as possible."""
    if not os.path.islink(folder):
        with suppress(OSError):
            folder.chmod(0o700)  # a model may have been made read-only
        shutil.rmtree(folder, ignore_errors=True)


def _lock(descriptor: int) -> bool:
    """Lock a file or folder until its descriptor is closed; return False if it is locked already."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _identity(folder: str | Path) -> tuple[int, ...] | None:
    """Return numbers that differ between two folders of the same name; None if there is no folder."""
    try:
        about = os.stat(folder)
    except OSError:
        return None
    return about.st_dev, about.st_ino, about.st_mtime_ns, about.st_ctime_ns


def _sync_all(folder: Path) -> None:
    """Sync a folder and its files to disk. The files get the rights of new ones: some libraries make private files."""
    mode = folder.stat().st_mode & 0o666  # as the umask left it
    for path in folder.iterdir():
        path.chmod(mode)
        _sync(path)
    try:
        _sync(folder)
    except OSError as error:
        if error.errno in _NOT_WRITTEN:
            raise


def _sync_renamed(path: Path) -> None:
    """Sync the new name of a file or folder to disk. Where that fails, it has its new name all the same."""
    with suppress(OSError):
        _sync(path.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
