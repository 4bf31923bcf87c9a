"""The cache folder of a training: its documents, kept for the next training, and its large arrays, which are not."""

import json
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from labelspace.data.archives import zip_archive
from labelspace.data.cache.resident import ResidencyLimiter
from labelspace.data.cache.scratch import Scratch
from labelspace.data.cache.stored_documents import UnusableError, open_documents, save_documents
from labelspace.data.dataset_file import files_of, read_dataset, streamed_format
from labelspace.data.files import replacing
from labelspace.data.read_options import ReadOptions
from labelspace.errors import DataError
from labelspace.kernels import large_arrays
from labelspace.store.atomic import locked
from labelspace.types import Dataset
from labelspace.version import __version__

MARKER, LOCK, DOCUMENTS = "labelspace-cache.json", "lock", "documents"
MIN_MEMORY = 250 * 10**6  # bytes: the program itself needs as much


class CacheFolder:
    """A folder for a training with little memory: within it, large arrays live in memory-mapped files.

    ``memory`` is in bytes: the pages of files that are in memory are dropped when the process gets near it. What a
    model learns must fit into memory, the documents need not.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     _ = Path(place, "pets.jsonl").write_text('{"text": "it purrs", "labels": ["cat"]}')
    ...     with CacheFolder(f"{place}/cache", memory=2**30) as cache:
    ...         documents = cache.read(f"{place}/pets.jsonl")
    >>> documents.texts[0], documents.labels.names
    ('it purrs', ['cat'])
    """

    def __init__(self, folder: str | Path, memory: int) -> None:
        if memory < MIN_MEMORY:
            raise DataError(
                f"a training must have at least {MIN_MEMORY // 10**6} MB of memory, but has {memory // 10**6} MB; "
                "allow more"
            )
        self.folder = Path(folder)
        self.memory = memory
        self.scratch = Scratch(self.folder, memory)
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        check_cache_folder(self.folder)
        with self._opened as opened:
            self._make()
            if not opened.enter_context(locked(self.folder / LOCK)):
                raise DataError(
                    f"a cache is for one training at a time, but {self.folder} is in use; give another folder"
                )
            opened.enter_context(large_arrays.stored_in(self.scratch))
            opened.enter_context(ResidencyLimiter(self.scratch.relieve))
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._opened.close()

    def _make(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self.folder / MARKER) as path:
                path.write_text(json.dumps({"labelspace": __version__}), encoding="utf-8")
        except OSError as error:
            raise DataError(
                f"the cache must be a folder that can be written to, but {self.folder} is not "
                f"({error.strerror or error}); give another folder"
            ) from error

    def read(self, path: str | Path, options: ReadOptions | None = None) -> Dataset:
        """Read a data set into the folder; a file that was read before, and did not change, is not read again."""
        options = options or ReadOptions()
        key = document_key(Path(path), options)
        stored = self.folder / DOCUMENTS
        try:
            documents, reported = open_documents(stored, key, self.scratch.map_file)
        except UnusableError as reason:
            if stored.exists():
                options.say(f"the documents in {self.folder} are read anew: {reason}")
        else:
            for line in reported:
                options.say(line)
            options.say(f"{path} is unchanged: its documents are those in {self.folder}")
            return documents
        for old in (stored, *self.folder.glob(f".{DOCUMENTS}.writing-*")):  # of a process that was killed
            shutil.rmtree(old, ignore_errors=True)  # so that the disk does not hold both
        detected: list[str] = []

        def say(line: str) -> None:
            detected.append(line)
            options.say(line)

        documents = read_dataset(path, options=replace(options, say=say))
        with self.scratch.refusing_full_disk():
            save_documents(stored, documents, key, detected)
        return open_documents(stored, key, self.scratch.map_file)[0]

    @property
    def kept_bytes(self) -> int:
        """The bytes that stay on disk for the next training."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def check_cache_folder(folder: Path) -> None:
    """Raise DataError for a path that is no folder, and for a folder with other files than a cache's."""
    if folder.exists() and not folder.is_dir():
        raise DataError(f"a cache must be a folder, but {folder} is a file; give another name")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARKER).is_file():
        raise DataError(f"a cache must be a new or empty folder, but {folder} holds other files; give another name")


def document_key(path: Path, options: ReadOptions) -> dict[str, Any]:
    """Return what the documents of a file depend on: the files that are read for it, and how."""
    files = [_on_disk(file) for file in [*files_of(path), *streamed_format(path, options).other_files(path)]]
    stats = [(str(file.resolve()), file.stat()) for file in dict.fromkeys(files)]
    return {
        "files": [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats],
        "options": repr(options),
        "version": __version__,
    }


def _on_disk(path: Path) -> Path:
    """Return the file itself, or the archive that it is in."""
    archive = zip_archive(path)
    return path if archive is None else archive[0]
