"""The Extreme Classification Repository's text format: a header ``N D L``, then ``l1,l2 f:v f:v ...`` per line.

Ids count from 0. A line without labels starts with a space; a line with neither is blank.
"""

from collections.abc import Iterator
from pathlib import Path

from labelspace.data.files import lines, reading, writing
from labelspace.data.formats.base import MatrixFormat, features_of
from labelspace.data.label_files import labels_of_file, numbered_labels, with_hierarchy
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Location, Record
from labelspace.data.sparse_rows import MAX_COLUMNS, SparseRows, add_rows, check_width, format_rows, header_numbers
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace

_MAX_HEADER = 200


def read(path: str | Path, labels: LabelSpace | None = None, options: ReadOptions | None = None) -> Dataset:
    """Read a file of features; see ``read_dataset`` for the label space."""
    with reading(path) as file:
        n, n_features, n_labels = _header(file.readline(_MAX_HEADER), path)
        rows = SparseRows(n_features, n_labels, location=lambda row: f"{path}:{row + 2}")
        known = labels_of_file(path) if labels is None else labels
        if known is not None and len(known) < n_labels:
            source = "its labels file has" if labels is None else "the label space has"
            problem = f"the header says {n_labels} and {source} {len(known)}"
            remedy = "give the label names of this data set"
            raise DataError(f"{path}:1: expected no more labels than are known, but {problem}; {remedy}")
        add_rows(rows, file, n, path)
    check_width(n_features, rows.n_values, f"{path}:1")
    space = numbered_labels(n_labels, rows.n_occurrences, path, 1) if known is None else known
    space = with_hierarchy(path, space)
    X, Y = rows.matrices(n_features, len(space))
    return Dataset(Y, space, X=X, name=Path(path).name.split(".")[0])


def documents(path: str | Path, options: ReadOptions | None = None) -> Iterator[Record]:
    """Return the rows as records of features, without labels; the id is the row number from 0."""
    for number, line in lines(path):
        if number == 1:
            _header(line[:_MAX_HEADER].encode(), path)
            continue
        first, _, rest = line.partition(" ")
        yield Record(str(number - 2), None, (line if ":" in first else rest).strip(), line=number)


def _header(line: bytes, path: str | Path) -> tuple[int, int, int]:
    names = ("documents", "features", "labels")
    remedy = "write it in the first line (.txt is the format of the Extreme Classification Repository)"
    n, n_features, n_labels = header_numbers(line, path, names, remedy)
    if n == 0:
        raise DataError(f"{path}:1: expected at least one document, but the header says 0; give another file")
    if max(n_features, n_labels) > MAX_COLUMNS:
        problem = f"the header says {n_features} and {n_labels}"
        raise Location(path, 1).expected(f"at most {MAX_COLUMNS} features and labels", problem, "correct the header")
    return n, n_features, n_labels


def write(path: str | Path, dataset: Dataset) -> None:
    """Write the features and labels of a data set; every float32 reads back to the same value."""
    X, Y = features_of(dataset, path), dataset.Y
    if (Y.data == 0).any():
        Y = Y.copy()
        Y.eliminate_zeros()
    with writing(path) as file:
        file.write(f"{len(dataset)} {X.shape[1]} {len(dataset.labels)}\n".encode())
        file.writelines(format_rows(X, Y))


FORMAT = MatrixFormat("xmc", "XMC repository format", (".txt",), write, read=read, documents=documents)
