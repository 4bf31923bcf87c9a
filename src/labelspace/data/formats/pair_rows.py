"""Sparse matrices as text: a header ``rows columns``, then ``column:value column:value ...`` per row."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from labelspace.data.files import reading, writing
from labelspace.data.sparse_rows import MAX_COLUMNS, SparseRows, add_rows, format_rows, header_numbers, line_blocks
from labelspace.errors import DataError
from labelspace.types import Csr

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
        # A leading space: no labels before the pairs.
        blocks = (b" " + lines[:-1].replace(b"\n", b"\n ") + b"\n" for lines in line_blocks(file, path, line=2))
        add_rows(rows, blocks, n, path)
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
