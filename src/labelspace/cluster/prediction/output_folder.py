"""Write files to the folder of the results, whole or not at all, however often and wherever they are written."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from labelspace.cluster.prediction.storage import file_system, is_local, refusing
from labelspace.errors import DataError

# They show an object only as a whole; on other remote file systems a file may be seen before all of it is written.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oci", "r2", "oss"})
WRITING = ".writing-"


class OutputFolder:
    """A folder by path or URL."""

    def __init__(self, url: str) -> None:
        self._fs, self.path = file_system(url)
        self.url = url
        self.is_local = is_local(self._fs)
        protocol = url.partition("://")[0]
        if not self.is_local and protocol not in OBJECT_STORES:
            raise DataError(
                f"--out must be a path, or in an object store ({', '.join(sorted(OBJECT_STORES))}), but is {url!r}; "
                "mount it, or give another"
            )

    def names(self) -> set[str]:
        """Return the names in the folder; none if it does not exist."""
        self._fs.invalidate_cache()
        with refusing(self.url, lambda why: f"--out must be readable, but {self.url} is not ({why}); give another"):
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

    def put_text(self, name: str, text: str) -> None:
        """Write a small file."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, name)
            file.write_text(text, encoding="utf-8")
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
        return refusing(
            self.url,
            lambda reason: (
                f"the predictions must be written to {self.url}, but that failed ({reason}); free some space or give "
                "another --out"
            ),
        )


def _sync(path: str) -> None:
    """Sync a file to disk: otherwise, after a power failure, its name may be there without its content."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
