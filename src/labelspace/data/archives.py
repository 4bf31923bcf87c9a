"""Compressed files by their names, and zip archives as folders.

A file in an archive has the path of the archive in front of its own, ``data.zip/train.csv``, so that code that looks
for files in a folder finds them in an archive too.
"""

import zipfile
from functools import lru_cache
from pathlib import Path

from labelspace.errors import DataError

COMPRESSIONS = (".gz", ".zst", ".zip")
_MAX_MEMBERS = 10**6


def compression(path: str | Path) -> str:
    """Return the ending of a compressed file, or ''.

    >>> compression("a.csv.GZ"), compression("a.csv")
    ('.gz', '')
    """
    return next((ending for ending in COMPRESSIONS if str(path).lower().endswith(ending)), "")


def without_compression(name: str) -> str:
    """Return a file name without the ending of its compression.

    >>> without_compression("a.csv.zst")
    'a.csv'
    """
    return name[: len(name) - len(compression(name))]


def zip_archive(path: str | Path) -> tuple[Path, str] | None:
    """Return the archive of a file and its name there; an archive that holds one file stands for that file."""
    if ".zip" not in str(path).lower():
        return None
    path = Path(path)
    for parent in (path, *path.parents):
        if parent.suffix.lower() == ".zip" and parent.is_file():
            if parent != path:
                return parent, path.relative_to(parent).as_posix()
            members = list_archive(path)
            if len(members) != 1:
                raise DataError(f"{path} must hold one file, but holds {len(members):,}; name one: {path}/NAME")
            return path, members[0]
    return None


def list_archive(archive: Path) -> tuple[str, ...]:
    """Return the names of the files in a zip archive, without those that file managers add."""
    stat = archive.stat()
    return _list_archive(archive, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _list_archive(archive: Path, modified: int, size: int) -> tuple[str, ...]:
    try:
        with zipfile.ZipFile(archive) as members:
            names = [info.filename for info in members.infolist()[:_MAX_MEMBERS] if not info.is_dir()]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise DataError(f"{archive} must be a zip archive, but is not ({error}); download or pack it again") from error
    return tuple(name for name in names if not any(part.startswith((".", "__MACOSX")) for part in name.split("/")))


def is_folder(path: Path) -> bool:
    """Return whether a path is a folder, or an archive with several files."""
    if path.is_dir():
        return True
    return path.suffix.lower() == ".zip" and path.is_file() and len(list_archive(path)) != 1


def is_data_file(path: Path) -> bool:
    """Return whether there is such a file, on disk or in an archive."""
    if path.is_file():
        return True
    archive = zip_archive(path)
    return archive is not None and archive[1] in list_archive(archive[0])


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder or an archive, by name; of an archive, those in the folder that holds them all."""
    if folder.is_dir():
        return sorted(path for path in folder.iterdir() if path.is_file())
    names = list_archive(folder)
    top = min((name.rpartition("/")[0] for name in names), key=len, default="")
    return sorted(folder / name for name in names if name.rpartition("/")[0] == top)
