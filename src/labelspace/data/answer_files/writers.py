"""Predictions as files: the writer is chosen by the ending of the name.

The matrices of scores (.npz, .txt) are collected as one number and one score per label and written at the end, since
both need the number of documents first. Labels with a score of 0 are left out: 0 in such a matrix means no label.
"""

import csv
import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelspace.data.answer_files.answer_columns import COLUMNS, LabelDisplay, answer_columns
from labelspace.data.archives import compression, without_compression
from labelspace.data.array_files import write_matrix
from labelspace.data.files import writing, writing_text
from labelspace.data.records import Record
from labelspace.data.sparse_rows import write_pairs
from labelspace.errors import DataError, require

ANNIF = ".annif.jsonl"
ENDINGS = {
    ANNIF: "documents with subjects, which Annif reads",
    ".jsonl": "a JSON object per document",
    ".csv": "a row per document and label",
    ".tsv": "the same, separated by tabs",
    ".parquet": "the same, typed",
    ".npz": "a sparse matrix of scores (SciPy)",
    ".txt": "the same as text, label:score",
}
# Rows of a Parquet file in memory at a time: more need more memory, fewer more calls of pyarrow.
_BATCH = 2**14
_GROUP = 2**18  # rows of a row group: larger groups compress better, and readers need more memory


@dataclass(frozen=True, slots=True)
class Prediction:
    """A document with its labels, best first, their scores, and the JSON object that says all of it."""

    record: Record
    labels: Sequence[int]
    scores: Sequence[float]
    as_json: Mapping[str, object]


Add = Callable[[Prediction], None]
Dump = Callable[[Mapping[str, object]], str]


def answer_format(path: str | Path) -> str:
    """Return the kind of a file of predictions, which is its ending; raise DataError for an unknown one.

    >>> answer_format("answers.csv.gz"), answer_format("answers.annif.jsonl")
    ('.csv', '.annif.jsonl')
    """
    name = Path(path).name.lower()
    ending = next((ending for ending in ENDINGS if without_compression(name).endswith(ending)), "")
    kind = compression(name)
    if not ending or kind == ".zip":
        rule = f"a file of predictions must end with {', '.join(ENDINGS)}, most of them also with .gz or .zst"
        raise DataError(f"{rule}, but is {Path(path).name!r}; rename it")
    if kind and ending in (".parquet", ".npz"):
        problem = f"so it must not end with {kind}, but is {Path(path).name!r}"
        raise DataError(f"{ending} is read without unpacking, {problem}; leave {kind} out")
    if ending == ".parquet":
        require("pyarrow", "parquet", "writing .parquet")
    return ending


def writing_answers(
    path: str | Path, display: LabelDisplay, n_labels: int, dump: Dump = json.dumps
) -> AbstractContextManager[Add]:
    """Open a file of predictions; it is there once all were added, and not at all after an error.

    ``dump`` makes a line of the JSON object of a document.
    """
    ending = answer_format(path)
    if ending in (".npz", ".txt"):
        return _writing_scores(path, n_labels, as_text=ending == ".txt")
    if ending == ".parquet":
        return _writing_parquet(path, display)
    if ending in (".csv", ".tsv"):
        return _writing_csv(path, display, "," if ending == ".csv" else "\t")
    if ending == ANNIF:
        return _writing_lines(path, lambda prediction: dump(_annif_document(prediction, display)))
    return _writing_lines(path, lambda prediction: dump(prediction.as_json))


@contextmanager
def _writing_lines(path: str | Path, line: Callable[[Prediction], str]) -> Iterator[Add]:
    with writing_text(path) as file:

        def add(prediction: Prediction) -> None:
            file.write(line(prediction) + "\n")

        yield add


def _annif_document(prediction: Prediction, display: LabelDisplay) -> dict[str, object]:
    """Return a document with subjects as Annif 1.4 and later read them; Annif has no place for scores."""
    record = prediction.record
    if record.text is None:
        problem = f"document {record.id!r} has only features"
        raise DataError(f"documents for Annif must have texts, but {problem}; write .jsonl or .csv")
    shown = map(display.shown, prediction.labels)
    subjects = [
        {"label": label.name} if label.uri is None else {"uri": label.uri, "label": label.name} for label in shown
    ]
    return {"document_id": record.id, "text": record.text, "subjects": subjects}


def _table_rows(prediction: Prediction, display: LabelDisplay) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a document, with the cells of ``COLUMNS``."""
    labels, scores = prediction.labels, prediction.scores
    probabilities = scores if display.are_probabilities else None
    ids, ranks = repeat(prediction.record.id, len(labels)), range(1, len(labels) + 1)
    return zip(*answer_columns(display, ids, ranks, labels, scores, probabilities).values(), strict=True)


@contextmanager
def _writing_csv(path: str | Path, display: LabelDisplay, delimiter: str) -> Iterator[Add]:
    """Write rows with a header; what a label lacks is an empty cell."""
    with writing_text(path) as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(COLUMNS)

        def add(prediction: Prediction) -> None:
            for row in _table_rows(prediction, display):
                writer.writerow([round(cell, 6) if isinstance(cell, float) else cell for cell in row])

        yield add


@contextmanager
def _writing_parquet(path: str | Path, display: LabelDisplay) -> Iterator[Add]:
    """Write columns of the types that ``COLUMNS`` says."""
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    schema = arrow.schema([(name, arrow.type_for_alias(kind)) for name, kind in COLUMNS.items()])
    rows: list[tuple[Any, ...]] = []
    with writing(path) as file, parquet.ParquetWriter(file, schema) as writer:

        def flush() -> None:
            columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in COLUMNS]
            arrays = [arrow.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
            writer.write_batch(arrow.record_batch(arrays, schema=schema), row_group_size=_GROUP)
            rows.clear()

        def add(prediction: Prediction) -> None:
            rows.extend(_table_rows(prediction, display))
            if len(rows) >= _BATCH:
                flush()

        yield add
        flush()


@contextmanager
def _writing_scores(path: str | Path, n_labels: int, as_text: bool) -> Iterator[Add]:
    """Collect rows, and write them as a matrix float32 (n, n_labels) at the end."""
    labels, scores, ends = array("i"), array("f"), array("q", [0])

    def add(prediction: Prediction) -> None:
        labels.extend(prediction.labels)
        scores.extend(prediction.scores)
        ends.append(len(labels))

    yield add
    parts = np.array(scores, np.float32), np.array(labels, np.int32), np.array(ends)
    matrix = sp.csr_matrix(parts, shape=(len(ends) - 1, n_labels))
    matrix.eliminate_zeros()
    matrix.sort_indices()
    (write_pairs if as_text else write_matrix)(path, matrix)
