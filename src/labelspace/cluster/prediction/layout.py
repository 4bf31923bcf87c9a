"""Find the layout of input files by a look at their beginning, and copy rows of Parquet files."""

import codecs
import tempfile
from bisect import bisect_right
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from labelspace.cluster.prediction.input_files import InputFile, file_system, is_local, opened, refusing_failures
from labelspace.data.archives import compression, without_compression
from labelspace.data.dataset_file import settle
from labelspace.data.files import UNPACKED, UTF_8
from labelspace.data.formats.csvfile import Dialect, open_csv, read_dialect
from labelspace.data.formats.json_documents import open_jsonl
from labelspace.data.formats.parquet import open_parquet, refusing_damage
from labelspace.data.formats.registry import formats_of
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Rows
from labelspace.data.source import document_layout, layout_records
from labelspace.errors import DataError, require
from labelspace.types import Columns, Fields
from labelspace.types.limits import MAX_LINE_BYTES

EXTRA = "parquet"
_BATCH, _BATCH_BYTES = 4096, 2**25  # rows in memory at a time, fewer where they are long


class ParquetRows(ExitStack):
    """An open file whose rows are read in order: a row group is read once, however many blocks it has."""

    def __init__(self, path: str, columns: Collection[str] | None = None, first: int = 0) -> None:
        """Open a file at the row group with the row ``first``, for some of its columns."""
        super().__init__()
        self.path = path
        parquet = require("pyarrow.parquet", EXTRA)
        with refusing_failures(path), refusing_damage(path):
            self._file = parquet.ParquetFile(self.enter_context(opened(path)))
            about = self._file.metadata
            groups = [about.row_group(i) for i in range(about.num_row_groups)]
            self.n_rows = about.num_rows
            self.n_bytes = sum(group.total_byte_size for group in groups)
            self._ends = list(accumulate(group.num_rows for group in groups))
            self.schema = _selected(path, self._file.schema_arrow, columns)
            left = range(self._group(first), len(groups))
            size = max(min(_BATCH, _BATCH_BYTES * self.n_rows // max(self.n_bytes, 1)), 1)
            names = None if columns is None else self.schema.names
            self._batches = self._file.iter_batches(size, row_groups=left, columns=names)
        self._batch: Any = self.schema.empty_table()
        self.at = self._ends[left[0] - 1] if left and left[0] else 0  # the row that the batch begins with

    def _group(self, row: int) -> int:
        return bisect_right(self._ends, row)

    def leads_to(self, row: int) -> bool:
        """Return whether a row is best read from here; a later row group is reached faster in a new file."""
        return self.at <= row and self._group(row) <= self._group(self.at + len(self._batch))

    def take(self, rows: range) -> Iterator[Any]:
        """Yield batches with these rows, which must not begin before ``at``."""
        while rows:
            end = self.at + len(self._batch)
            if end > rows.start:
                yield self._batch.slice(max(rows.start - self.at, 0), min(end, rows.stop) - max(rows.start, self.at))
            if end >= rows.stop:  # the batch is kept: the next rows may begin in it
                return
            batch = next(self._batches, None)
            if batch is None:
                rule = f"{self.path} must have {self.n_rows:,} rows"
                raise DataError(f"{rule}, but ends with row {end:,}; write it again")
            self._batch, self.at = batch, end

    def copy(self, rows: range, target: Path) -> None:
        """Write these rows to a file."""
        parquet = require("pyarrow.parquet", EXTRA)
        with refusing_failures(self.path), refusing_damage(self.path):
            with parquet.ParquetWriter(target, self.schema, compression="none") as writer:
                for batch in self.take(rows):
                    writer.write_batch(batch)


def _selected(path: str, schema: Any, columns: Collection[str] | None) -> Any:  # noqa: ANN401 - pyarrow has no types
    """Return the schema of some columns, or of all; a needed column must be there once."""
    if columns is None:
        return schema
    names = [name for name in schema.names if name in columns]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise DataError(f"{path} must have the column {double!r} once, but has it several times; rename the others")
    return schema.empty_table().select(names).schema


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
        if self.dialect is None:
            return open_jsonl(path, ReadOptions(encoding=self.encoding))
        return open_csv(path, self.encoding, self.dialect)


def check_format(file: InputFile, options: ReadOptions) -> None:
    """Raise DataError for a file that cannot be read in blocks, by its name."""
    possible = [options.format] if options.format is not None else [fmt.name for fmt in formats_of(file.path)]
    kind = compression(file.path)
    if not set(possible).intersection(FORMATS) or kind == ".zip" or (kind and "parquet" in possible):
        endings = f"{', '.join(f'.{name}' for name in FORMATS)}, the first three also with .gz or .zst"
        remedy = "convert it (labelspace data convert), or name the others: --input 'FOLDER/*.jsonl'"
        raise DataError(f"files for a cluster must end with {endings}, but one is {file.path}; {remedy}")


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
        rule = "files for a cluster must be JSON lines, CSV, TSV or Parquet"
        raise DataError(f"{rule}, but {file.path} is {fmt.title}; convert it: labelspace data convert")
    encoding = options.encoding or UTF_8
    if codecs.lookup(encoding).name == "utf-8-sig":  # a byte order mark is skipped in any case
        encoding = UTF_8
    if "\n".encode(encoding) != b"\n":
        problem = f"{file.path} is in {codecs.lookup(encoding).name}"
        raise DataError(f"files for a cluster must be read line by line, but {problem}; save it as UTF-8")
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
            with ParquetRows(file.path) as rows:
                rows.copy(range(min(rows.n_rows, 1)), path)
        else:
            with opened(file.path) as unpacked:
                head = unpacked.read(UNPACKED)
                head += unpacked.readline(MAX_LINE_BYTES.value + 1)  # the last line as a whole
            path.write_bytes(head)
        yield path
