"""Write the predictions to a folder, with a manifest.json by which a restart continues or is refused.

Files are written whole or not at all, however often and wherever they are written.
"""

import json
import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from labelspace.cluster.prediction.input_files import file_system, is_local, refusing
from labelspace.errors import DataError
from labelspace.report.terminal import json_text

# They show an object only as a whole; on other remote file systems a file may be seen before all of it is written.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oci", "r2", "oss"})
WRITING = ".writing-"
MANIFEST = "manifest.json"


class OutputFolder:
    """A folder by path or URL."""

    def __init__(self, url: str) -> None:
        self._fs, self.path = file_system(url)
        self.url = url
        self.is_local = is_local(self._fs)
        protocol = url.partition("://")[0]
        if not self.is_local and protocol not in OBJECT_STORES:
            rule = f"--out must be a path, or in an object store ({', '.join(sorted(OBJECT_STORES))})"
            raise DataError(f"{rule}, but is {url!r}; mount it, or give another")

    def names(self) -> set[str]:
        """Return the names in the folder; none if it does not exist."""
        self._fs.invalidate_cache()
        with refusing(self.url, f"--out must be readable, but {self.url} is not", "give another"):
            if not self._fs.exists(self.path):
                return set()
            if not self._fs.isdir(self.path):
                raise DataError(f"--out must be a folder, but {self.url} is a file; give another name")
            return {name.rstrip("/").rpartition("/")[2] for name in self._fs.ls(self.path, detail=False)}

    def put(self, file: Path) -> None:
        """Copy a file into the folder, under its own name."""
        with self._refusing_failures():
            target = f"{self.path}/{file.name}"
            if not self.is_local:
                self._fs.put_file(str(file), target)
                return
            os.makedirs(self.path, exist_ok=True)
            # Another machine may write the same file at the same time, so a process id would not do.
            temporary = f"{self.path}/.{file.name}{WRITING}{uuid.uuid4().hex}"
            try:
                shutil.copyfile(file, temporary)
                _sync(temporary)
                os.replace(temporary, target)
            except OSError:
                Path(temporary).unlink(missing_ok=True)
                raise

    def put_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, MANIFEST)
            file.write_text(json_text(manifest, indent=1) + "\n", encoding="utf-8")
            self.put(file)

    def text(self, name: str) -> str:
        """Return the text of a small file."""
        with self._refusing_failures():
            return bytes(self._fs.cat_file(f"{self.path}/{name}")).decode("utf-8", "replace")

    def remove(self, names: Iterable[str]) -> None:
        """Remove some files."""
        with self._refusing_failures():
            for name in names:
                self._fs.rm_file(f"{self.path}/{name}")

    def sweep(self) -> None:
        """Remove temporary files of processes that were killed."""
        self.remove(name for name in self.names() if name.startswith(".") and WRITING in name)

    def _refusing_failures(self) -> AbstractContextManager[None]:
        problem = f"the predictions must be written to {self.url}, but that failed"
        return refusing(self.url, problem, "free some space or give another --out")


def _sync(path: str) -> None:
    """Sync a file to disk: otherwise, after a power failure, its name may be there without its content."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


PART = re.compile(r"part-\d{5,}\.[a-z.]+")
REMEDY = "give another --out, or start anew with --force"


def earlier_manifest(output: OutputFolder, force: bool) -> dict[str, Any] | None:
    """Return the manifest of a folder, or None if it is empty or with ``force``; refuse a folder of other files."""
    names = {name for name in output.names() if WRITING not in name}
    if force or not names:
        return None
    if MANIFEST not in names:
        raise DataError(f"--out must be an empty folder or one with a {MANIFEST}, but {output.url} has files; {REMEDY}")
    try:
        found = json.loads(output.text(MANIFEST))
        if isinstance(found, dict) and type(found.get("block_bytes")) is int and found["block_bytes"] > 0:
            return found
    except (ValueError, RecursionError):
        pass
    raise DataError(f"{output.url}/{MANIFEST} must be one of predictions, but cannot be read as one; {REMEDY}")


def refuse_other(output: OutputFolder, earlier: Mapping[str, Any], now: Mapping[str, Any], keys: Iterable[str]) -> None:
    """Raise DataError if the earlier predictions have other settings, inputs or blocks."""
    for key in keys:
        if earlier.get(key) != now[key]:
            changed = _changed(earlier.get(key), now[key])
            raise DataError(f"{output.url} must have predictions of the same {key}, but {changed}; {REMEDY}")


def _changed(earlier: Any, now: Any) -> str:  # noqa: ANN401 - any JSON
    """Describe the first difference.

    >>> _changed({"k": 5}, {"k": 10}), _changed([{"path": "a.csv", "size": 7}], [{"path": "b.csv", "size": 7}])
    ('k was 5 and is 10', 'a.csv is not among them now')
    """
    if isinstance(earlier, dict) and isinstance(now, dict):
        for key in [*now, *earlier]:
            if earlier.get(key) != now.get(key):
                return f"{key} was {_shown(earlier.get(key))} and is {_shown(now.get(key))}"
    if isinstance(earlier, list) and isinstance(now, list):
        before, after = _by_path(earlier), _by_path(now)
        for path in [*before, *after]:
            if before.get(path) != after.get(path):
                if path not in after:
                    return f"{path} is not among them now"
                return f"{path} has changed" if path in before else f"{path} is new"
    return "they differ"


def _by_path(files: list[Any]) -> dict[str, Any]:
    return {str(file.get("path", file.get("output"))): file for file in files if isinstance(file, dict)}


def _shown(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:57] + "..."
