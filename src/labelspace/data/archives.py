"""Compressed files by their names, and zip archives as folders.

A file in an archive has the path of the archive in front of its own, ``data.zip/train.csv``, so that code that looks
for files in a folder finds them in an archive too.
"""

import zipfile
from functools import lru_cache
from pathlib import Path

from labelspace.errors import DataError

COMPRESSIONS = (".gz", ".zst", ".zip")
_ZIP, _OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_OFFICE = (b"[Content_Types].xml", b"docProps/", b"xl/workbook")  # in the first bytes of an .xlsx, which is a zip
_NO_TEXTS = {
    _OLD_EXCEL: ("an Excel workbook or another Office file", "open it there and save it as CSV UTF-8"),
    _ZIP: ("a zip archive", "name it .zip, or unpack it"),
    b"PAR1\x15": ("a Parquet file", "name it .parquet"),
    b"\x1f\x8b": ("compressed by gzip", "add .gz to its name, or unpack it"),
    b"%PDF-": ("a PDF file", "export its text"),
}
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


def check_no_pipe(path: str | Path) -> None:
    """Raise DataError for a pipe or a device, which can be read only once."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        problem = f"{path} is a pipe or a device"
        raise DataError(f"DATA is read more than once, but {problem}; write it to a file first")


def check_is_text(path: str | Path, head: bytes) -> None:
    """Raise DataError if the first bytes of a file are those of a well-known kind that is no text."""
    for start, (kind, remedy) in _NO_TEXTS.items():
        if head.startswith(start):
            if start == _ZIP and any(name in head for name in _OFFICE):
                kind, remedy = _NO_TEXTS[_OLD_EXCEL]
            raise DataError(f"{path} is read as text, but is {kind}; {remedy}")


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder or an archive, by name; of an archive, those in the folder that holds them all."""
    if folder.is_dir():
        return sorted(path for path in folder.iterdir() if path.is_file())
    names = list_archive(folder)
    top = min((name.rpartition("/")[0] for name in names), key=len, default="")
    return sorted(folder / name for name in names if name.rpartition("/")[0] == top)
