"""The folder for compiled kernels, and who is told when a kernel is compiled; does not import numba.

numba reads its cache with pickle: another user who could write a file there could run code in this process. So the
folder must be one that no other user can write to.
"""

import atexit
import os
import shutil
import stat
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"
NAME = "labelspace-kernels"
OPEN = stat.S_IWGRP | stat.S_IWOTH  # users other than the owner may write
Watcher = Callable[[str, bool], None]
"""Called with the name of a kernel and True when its compilation starts, and with False when it ends."""
_watchers: list[Watcher] = []


def set_cache_folder(*packages: Path) -> None:
    """Choose the folder in which numba caches the kernels of ``packages``: one that no other user can write to.

    The first of these is taken: ``NUMBA_CACHE_DIR``, the ``__pycache__`` of each package, a folder in the user's cache,
    a folder for temporary files.
    """
    if not hasattr(os, "geteuid"):  # Windows: folders of a user are private
        return
    given = sys.modules["numba"].config.CACHE_DIR if "numba" in sys.modules else os.environ.get(VARIABLE)
    if given:
        folder = private_folder(given)
        if folder is None:
            rule = "a folder that only its owner can write to, below folders that no other user can rename"
            remedy = "kernels are compiled into another folder (chmod 700, or choose one)"
            warnings.warn(f"{VARIABLE} must be {rule}, but {given!r} is not; {remedy}", RuntimeWarning, stacklevel=2)
    elif all(beside_sources_is_safe(each) and is_writable(each / "__pycache__") for each in packages):
        return  # numba's own choice
    else:
        folder = None
    _use(folder or next(filter(None, map(private_folder, _user_folders())), None) or _fresh_folder())


def cache_folder(root: Path) -> Path:
    """Return the folder below which numba caches kernels; ``root`` is the folder with all packages of kernels."""
    given = sys.modules["numba"].config.CACHE_DIR if "numba" in sys.modules else os.environ.get(VARIABLE)
    return Path(given) if given else root


def cached_bytes(folder: Path) -> int:
    """Return the bytes of the compiled kernels in a folder and below it."""
    return sum(file.stat().st_size for file in folder.rglob("*.nb[ci]"))


def private_folder(path: str) -> str | None:
    """Return the real path of a folder, made if missing; None if another user could put a file there."""
    above, name = os.path.split(os.path.abspath(path))
    target = Path(os.path.realpath(above), name)  # without links that could be changed later
    try:
        for folder in reversed((target, *target.parents)):
            if not os.path.lexists(folder):
                with suppress(FileExistsError):  # by another process that starts at the same time
                    folder.mkdir(mode=0o700)
            if folder != target and _can_be_swapped(os.lstat(folder)):
                return None
        found = os.lstat(target)
    except OSError:
        return None
    is_private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & OPEN
    return str(target) if is_private and is_writable(target) else None


def beside_sources_is_safe(package: Path) -> bool:
    """Return whether only users who can change the sources can write to their ``__pycache__``."""
    try:
        sources, cache = os.lstat(package), os.lstat(package / "__pycache__")
    except OSError:
        return True  # it is missing, and made by this user
    if not stat.S_ISDIR(cache.st_mode) or cache.st_uid not in (os.geteuid(), sources.st_uid, 0):
        return False
    same_group = cache.st_gid == sources.st_gid
    also_open = sources.st_mode & (OPEN if same_group else stat.S_IWOTH) if not sources.st_mode & stat.S_ISVTX else 0
    return not cache.st_mode & OPEN & ~also_open


def is_writable(folder: str | Path) -> bool:
    """Return whether a file can be written to a folder, made if missing; numba decides in the same way."""
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _can_be_swapped(parent: os.stat_result) -> bool:
    """Return whether another user can rename the folders in it; in a sticky folder, such as /tmp, only owners can."""
    is_sticky = parent.st_mode & stat.S_ISVTX
    return parent.st_uid not in (os.geteuid(), 0) or bool(parent.st_mode & OPEN and not is_sticky)


def _user_folders() -> Iterator[str]:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(cache):
        yield os.path.join(cache, NAME)
    yield os.path.join(tempfile.gettempdir(), f"{NAME}-{os.geteuid()}")


def _fresh_folder() -> str:
    folder, owner = os.path.realpath(tempfile.mkdtemp(prefix=f"{NAME}-")), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not in a forked process
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _use(folder: str) -> None:
    os.environ[VARIABLE] = folder
    if "numba" in sys.modules:  # numba has read its settings already
        sys.modules["numba"].config.CACHE_DIR = folder


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Call ``watcher`` for each kernel that is compiled, also within another kernel; not for kernels in the cache."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def tell(name: str, starts: bool) -> None:
    """Call all watchers; numba compiles one kernel at a time, on any thread."""
    for watcher in tuple(_watchers):
        watcher(name, starts)
