"""Rows in the text format ``l1,l2 f:v f:v ...`` to CSR and back, in blocks; feature strings are rows without labels.

A sparse matrix alone has a header ``rows columns``, then ``column:value column:value ...`` per row.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.data.files import reading, too_long, writing
from labelspace.data.formats import kernels
from labelspace.errors import DataError
from labelspace.kernels import large_arrays
from labelspace.types import Csr
from labelspace.types.limits import MAX_FEATURES, MAX_LINE_BYTES

MAX_COLUMNS = 2**31 - 1  # of an int32 index
_BLOCK_ENTRIES = 2**18  # entries formatted at a time: a buffer of 8 MB
_BATCH = 4096  # feature strings joined at a time

RowLocation = Callable[[int], str]
"""Row number (from 0) -> file and line, for error messages."""


class SparseRows:
    r"""Parsed rows, collected in blocks and joined at the end.

    >>> rows = SparseRows(n_features=20, n_labels=5, location=lambda row: f"row {row}")
    >>> rows.add(b"3,1 17:1 2:0.5\n", limit=1)
    15
    >>> X, Y = rows.matrices(20, 5)
    >>> X.indices.tolist(), X.data.tolist(), Y.indices.tolist()
    ([2, 17], [0.5, 1.0], [1, 3])
    """

    def __init__(self, n_features: int, n_labels: int, location: RowLocation) -> None:
        self.n_rows = self.n_values = self.n_occurrences = 0  # rows, features of all rows, labels of all rows
        self._limits = n_features, n_labels
        self._location = location
        # The counts, ids and values of features; the counts and ids of labels.
        self._parts = [large_arrays.growing(kind) for kind in (np.int32, np.int32, np.float32, np.int32, np.int32)]

    def add(self, block: bytes, limit: int) -> int:
        """Parse up to ``limit`` rows of a block of complete lines; return the number of bytes used."""
        if not block.endswith(b"\n"):
            block += b"\n"  # the kernel needs a line end
        n_lines = block.count(b"\n")
        max_rows, max_pairs = min(limit, n_lines), block.count(b":")
        x_counts, y_counts = np.empty(max_rows, np.int32), np.empty(max_rows, np.int32)
        x_ids, x_values = np.empty(max_pairs, np.int32), np.empty(max_pairs, np.float32)
        y_ids = np.empty(block.count(b",") + n_lines, np.int32)
        text = np.frombuffer(block, np.uint8)
        code, rows, used, x, y = kernels.parse_rows(
            text, max_rows, *self._limits, x_counts, x_ids, x_values, y_counts, y_ids
        )
        if code != kernels.PARSED:
            raise self._error(code, self.n_rows + rows, block[used : used + 200])
        for growing, part in zip(self._parts, (x_counts, x_ids[:x], x_values[:x], y_counts, y_ids[:y]), strict=True):
            growing.append(part)
        self.n_rows, self.n_values, self.n_occurrences = self.n_rows + rows, self.n_values + x, self.n_occurrences + y
        return int(used)

    def add_features(self, strings: Sequence[str]) -> None:
        """Parse feature strings, one row each."""
        for row, string in enumerate(strings, start=self.n_rows):
            if "\n" in string:
                rule = f"{self._location(row)}: expected features on one line"
                raise DataError(f"{rule}, but {string[:40]!r} has a line end; separate the pairs by spaces")
        # A leading space means: no labels.
        block = "".join(f" {string}\n" for string in strings).encode(errors="replace")
        self.add(block, limit=len(strings))

    def matrices(self, n_features: int | None, n_labels: int) -> tuple[Csr, Csr]:
        """Return X float32 (n_rows, n_features) and Y of ones; by default ``n_features`` is the largest index + 1.

        Clears the collected blocks on the way, to avoid a second copy of everything in memory.
        """
        x_counts, ids, values, y_counts, labels = (part.finish() for part in self._parts)
        if n_features is None:
            n_features = int(ids.max(initial=-1)) + 1
        Y = _csr(y_counts, labels, np.ones(len(labels), np.float32), n_labels)
        return _csr(x_counts, ids, values, n_features), Y

    def _error(self, code: int, row: int, rest: bytes) -> DataError:
        n_features, n_labels = self._limits
        piece, pair = (re.match(pattern, rest) for pattern in (rb"[^ \t\r\n,]*", rb"[^ \t\r\n]*"))
        text = (piece if code == kernels.BAD_LABEL else pair)[0].decode(errors="replace")  # type: ignore[index]
        rule, remedy = {
            kernels.BAD_LABEL: (
                f"label ids {_range(n_labels)} separated by commas",
                "correct it or the header; a line without labels starts with a space",
            ),
            kernels.BAD_INDEX: (
                f"index:value with an index {_range(n_features)}",
                "correct it or the number of features; indices count from 0",
            ),
            kernels.BAD_VALUE: ("a finite number after the colon", "write it like 1, -0.5 or 1e-5"),
            kernels.BAD_SUM: ("a finite sum of the values of a repeated index", "write each index once"),
        }[code]
        return DataError(f"{self._location(row)}: expected {rule}, but found {text[:40]!r}; {remedy}")


def check_width(n_features: int, n_values: int, where: str | Path) -> None:
    """Raise DataError for many more features than values, which a mistyped index makes.

    Methods would allocate billions of columns.
    """
    limit = max(MAX_FEATURES.value, n_values)
    if n_features > limit:
        remedy = f"correct the largest index, hash the features, or {MAX_FEATURES.raise_it}"
        raise DataError(f"{where}: expected at most {limit} features, but there are {n_features}; {remedy}")


def _range(size: int) -> str:
    return f"from 0 to {size - 1}" if size else "(the header says there are none)"


def _csr(counts: npt.NDArray[Any], ids: npt.NDArray[Any], values: npt.NDArray[Any], n_columns: int) -> Csr:
    indptr = np.zeros(len(counts) + 1, np.int64 if len(ids) > MAX_COLUMNS else np.int32)
    np.cumsum(counts, out=indptr[1:])
    matrix = sp.csr_matrix((values, large_arrays.cast(ids, indptr.dtype), indptr), shape=(len(counts), n_columns))
    matrix.has_canonical_format = True  # the kernel sorted and merged; SciPy need not check
    return matrix


def parse_features(
    strings: Sequence[str], n_features: int | None = None, location: RowLocation = lambda row: f"row {row}"
) -> Csr:
    """Return feature strings as rows of X, float32 (n, n_features); by default up to the largest index.

    >>> parse_features(["3:0.5 17:1", ""], n_features=20).toarray()[0, [3, 17]].tolist()
    [0.5, 1.0]
    """
    rows = SparseRows(MAX_COLUMNS if n_features is None else n_features, 0, location)
    for start in range(0, len(strings), _BATCH):
        rows.add_features(strings[start : start + _BATCH])
    return rows.matrices(n_features, 0)[0]


def format_rows(X: Csr, Y: Csr | None) -> Iterator[bytes]:
    """Return the lines of X, with the labels of Y in front, in blocks of complete lines."""
    if X.shape[1] > MAX_COLUMNS:
        raise DataError(f"at most {MAX_COLUMNS} features can be written, but there are {X.shape[1]}; hash them")
    if not np.isfinite(X.data).all():
        raise DataError("features must be finite to be written, but some are NaN or infinite; replace them")
    Y = sp.csr_matrix((X.shape[0], 0), dtype=np.float32) if Y is None else Y
    ends = X.indptr.astype(np.int64) + Y.indptr
    start = 0
    while start < X.shape[0]:
        stop = max(start + 1, int(np.searchsorted(ends, ends[start] + _BLOCK_ENTRIES, side="right")) - 1)
        x, y = (slice(matrix.indptr[start], matrix.indptr[stop]) for matrix in (X, Y))
        pair = kernels.ID_BYTES + kernels.VALUE_BYTES
        size = (x.stop - x.start) * pair + (y.stop - y.start) * kernels.ID_BYTES + (stop - start)
        out = np.empty(size, np.uint8)
        x_counts, y_counts = (np.diff(matrix.indptr[start : stop + 1]).astype(np.int64) for matrix in (X, Y))
        x_ids, y_ids = X.indices[x].astype(np.int64), Y.indices[y].astype(np.int64)
        filled = kernels.format_rows(x_counts, x_ids, X.data[x].astype(np.float32), y_counts, y_ids, out)
        yield out[:filled].tobytes()
        start = stop


def format_features(X: Csr) -> Iterator[str]:
    """Return the rows of X as feature strings.

    >>> list(format_features(sp.csr_matrix([[0.0, 0.5], [0.0, 0.0]])))
    ['1:0.5', '']
    """
    for block in format_rows(X, None):
        for line in block.decode("ascii").split("\n")[:-1]:
            yield line[1:]


BLOCK_BYTES = 16 * 2**20


def line_blocks(file: BinaryIO, path: str | Path, line: int = 1) -> Iterator[bytes]:
    r"""Return blocks of complete lines, from line number ``line`` on; a last line without an end gets one.

    >>> from io import BytesIO
    >>> list(line_blocks(BytesIO(b"a\nb\nc"), "a.txt"))
    [b'a\nb\n', b'c\n']
    """
    pieces: list[bytes] = []  # of a line that is not complete
    limit = MAX_LINE_BYTES.value
    while read := file.read(BLOCK_BYTES):
        cut = read.rfind(b"\n") + 1
        if cut:
            yield b"".join([*pieces, memoryview(read)[:cut]])
            line += read.count(b"\n")
            pieces = []
        pieces.append(read[cut:])
        if sum(map(len, pieces)) > limit:
            raise too_long(path, line)
    if last := b"".join(pieces):
        yield last + b"\n"


def header_numbers(line: bytes, path: str | Path, names: Sequence[str], remedy: str) -> list[int]:
    """Return the numbers of the first line of a file, called ``names``; raise DataError for any other line."""
    fields = line.removeprefix(b"\xef\xbb\xbf").split()  # a byte order mark
    if len(fields) != len(names) or not all(field.isdigit() for field in fields):
        rule = f"a header of {'two' if len(names) == 2 else 'three'} integers ({', '.join(names)})"
        found = line[:40].decode(errors="replace").strip()
        raise DataError(f"{path}:1: expected {rule}, but found {found!r}; {remedy}")
    return list(map(int, fields))


def add_rows(rows: SparseRows, file: BinaryIO, n: int, path: str | Path, with_labels: bool = True) -> None:
    """Add the n rows of a file, as its header says; fewer or more are an error. Blank lines may follow."""
    blocks = line_blocks(file, path, line=2)
    if not with_labels:  # a leading space: no labels before the pairs
        blocks = (b" " + lines[:-1].replace(b"\n", b"\n ") + b"\n" for lines in blocks)
    blank_end = 0  # bytes after the last row
    for block in blocks:
        rest = block[rows.add(block, limit=n - rows.n_rows) :]
        if rest.strip():
            found = rest.strip()[:30].decode(errors="replace")
            rule = f"{path}:{n + 2}: expected the end of the file after {n} rows as the header says"
            raise DataError(f"{rule}, but found {found!r}; correct the header")
        blank_end += len(rest)
        if blank_end > MAX_LINE_BYTES.value:
            raise too_long(path, n + 2)
    if rows.n_rows != n:
        remedy = "the file is truncated: download it again, or correct the header"
        raise DataError(f"{path}: expected {n} rows as the header says, but there are {rows.n_rows}; {remedy}")


_MAX_HEADER = 200


def read_pairs(path: str | Path) -> Csr:
    r"""Read a matrix as csr float32; repeated columns of a row are summed, zeros are dropped.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "tst_X_Y.txt").write_text("2 3\n0:1 2:0.5\n\n")
    ...     read_pairs(f"{folder}/tst_X_Y.txt").toarray().tolist()
    [[1.0, 0.0, 0.5], [0.0, 0.0, 0.0]]
    """
    with reading(path) as file:
        n, n_columns = _header(file.readline(_MAX_HEADER), path)
        rows = SparseRows(n_columns, 0, location=lambda row: f"{path}:{row + 2}")
        add_rows(rows, file, n, path, with_labels=False)
    return rows.matrices(n_columns, 0)[0]


def pair_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Return the line number and the pairs of each row, unparsed."""
    with reading(path) as file:
        _header(file.readline(_MAX_HEADER), path)
        lines = chain.from_iterable(block.splitlines() for block in line_blocks(file, path, line=2))
        for number, line in enumerate(lines, start=2):
            yield number, line.decode(errors="replace").strip()


def _header(line: bytes, path: str | Path) -> tuple[int, int]:
    n, n_columns = header_numbers(line, path, ("rows", "columns"), "write it in the first line")
    if max(n, n_columns) > MAX_COLUMNS:
        rule = f"expected at most {MAX_COLUMNS} rows and columns"
        raise DataError(f"{path}:1: {rule}, but found {n} {n_columns}; correct it")
    return n, n_columns


def write_pairs(path: str | Path, matrix: Csr) -> None:
    """Write a matrix; every float32 reads back to the same value, zeros are left out."""
    with writing(path) as file:
        file.write(f"{matrix.shape[0]} {matrix.shape[1]}\n".encode())
        for block in format_rows(matrix, None):
            file.write(block.removeprefix(b" ").replace(b"\n ", b"\n"))
