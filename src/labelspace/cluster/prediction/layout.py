"""Find out how a file of rows is read, once at its beginning, so that each block is read like the whole file."""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from labelspace.cluster.prediction.parquet_rows import ParquetRows
from labelspace.cluster.prediction.storage import InputFile, file_system, is_local, opened
from labelspace.data.archives import compression, without_compression
from labelspace.data.dataset_file import settle
from labelspace.data.detection.dialect import Dialect
from labelspace.data.detection.encoding import UNPACKED
from labelspace.data.files import UTF_8
from labelspace.data.formats.csvfile import open_csv, read_dialect
from labelspace.data.formats.jsonl import open_jsonl
from labelspace.data.formats.parquet import open_parquet
from labelspace.data.formats.registry import formats_of
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Rows
from labelspace.data.source import document_layout, layout_records
from labelspace.errors import DataError
from labelspace.types import Columns, Fields
from labelspace.types.limits import MAX_LINE_BYTES

FORMATS = ("jsonl", "csv", "tsv", "parquet")  # each is also the ending of what is written


@dataclass(frozen=True)
class FileLayout:
    """The format of a file, and what its columns hold."""

    format: str
    encoding: str = UTF_8
    dialect: Dialect | None = None  # of CSV
    columns: Columns | Fields | None = None  # None if there are no documents

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that documents are read from."""
        columns = self.columns
        if isinstance(columns, Columns):
            return ("id", *columns.inputs)
        return () if columns is None else (*columns.text, columns.features, *filter(None, [columns.id]))

    def open_rows(self, path: Path) -> AbstractContextManager[Rows]:
        """Open the rows of a file of this layout on this machine."""
        if self.format == "parquet":
            return open_parquet(path)
        return open_jsonl(path, self.encoding) if self.dialect is None else open_csv(path, self.encoding, self.dialect)


def check_format(file: InputFile, options: ReadOptions) -> None:
    """Raise DataError for a file that cannot be read in blocks, by its name."""
    possible = [options.format] if options.format is not None else [fmt.name for fmt in formats_of(file.path)]
    kind = compression(file.path)
    if not set(possible).intersection(FORMATS) or kind == ".zip" or (kind and "parquet" in possible):
        endings = f"{', '.join(f'.{name}' for name in FORMATS)}, the first three also with .gz or .zst"
        raise DataError(
            f"files for a cluster must end with {endings}, but one is {file.path}; convert it (labelspace data "
            "convert), or name the others: --input 'FOLDER/*.jsonl'"
        )


def find_layout(file: InputFile, options: ReadOptions) -> FileLayout:
    """Return the layout of a file; report what is unusual to ``options.say``."""
    with _beginning(file) as path:
        shown = replace(options, say=lambda line: options.say(line.replace(str(path), file.path)))
        try:
            return _layout(path, file, shown)
        except DataError as error:
            raise DataError(str(error).replace(str(path), file.path)) from error


def _layout(path: Path, file: InputFile, options: ReadOptions) -> FileLayout:
    fmt, options = settle(path, options)
    if fmt.name not in FORMATS:
        raise DataError(
            f"files for a cluster must be JSON lines, CSV, TSV or Parquet, but {file.path} is {fmt.title}; convert it: "
            "labelspace data convert"
        )
    encoding = options.encoding or UTF_8
    if codecs.lookup(encoding).name == "utf-8-sig":  # a byte order mark is skipped in any case
        encoding = UTF_8
    if "\n".encode(encoding) != b"\n":
        raise DataError(
            f"files for a cluster must be read line by line, but {file.path} is in {codecs.lookup(encoding).name}; "
            "save it as UTF-8"
        )
    dialect = read_dialect(path, encoding, options.delimiter) if fmt.name in ("csv", "tsv") else None
    layout = FileLayout(fmt.name, encoding, dialect)
    with layout.open_rows(path) as rows:
        columns = document_layout(path, rows.names(), options)
        if columns is not None:
            next(layout_records(path, rows, columns), None)  # an error in the header is reported at the first row
    return replace(layout, columns=columns)


@contextmanager
def _beginning(file: InputFile) -> Iterator[Path]:
    """Yield a path on this machine: the file itself if it is here, otherwise a copy of its beginning."""
    fs, name = file_system(file.path)
    if is_local(fs):
        yield Path(name)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, without_compression(Path(name).name))
        if formats_of(path) and formats_of(path)[0].name == "parquet":
            rows = ParquetRows(file.path)
            rows.copy(range(min(rows.n_rows, 1)), path)
            rows.close()
        else:
            with opened(file.path) as unpacked:
                head = unpacked.read(UNPACKED)
                head += unpacked.readline(MAX_LINE_BYTES.value + 1)  # the last line as a whole
            path.write_bytes(head)
        yield path
