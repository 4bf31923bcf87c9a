"""Predictions as a table with a row per document and label: .csv, .tsv, .parquet."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labelspace.data.answer_files.label_display import LabelDisplay
from labelspace.data.answer_files.prediction import Prediction
from labelspace.data.files import writing, writing_text
from labelspace.errors import require

COLUMNS = ("id", "rank", "label", "label_id", "notation", "score", "probability", "path")
_BATCH = 2**14  # rows of a Parquet file in memory at a time
_GROUP = 2**18  # rows of a row group

Add = Callable[[Prediction], None]


def table_rows(
    prediction: Prediction, display: LabelDisplay
) -> Iterator[tuple[str, int, str, str, str | None, float, float | None, str | None]]:
    """The rows of a document, in the order of ``COLUMNS``; a label's id is its URI, else its number.

    The probability is the score where that is one, else there is none.
    """
    pairs = zip(prediction.labels, prediction.scores, strict=True)
    for rank, (label, score) in enumerate(pairs, start=1):
        shown = display.shown(label)
        label_id, probability = shown.uri or str(label), score if display.are_probabilities else None
        yield prediction.record.id, rank, shown.name, label_id, shown.notation, score, probability, shown.path


@contextmanager
def writing_csv(path: str | Path, display: LabelDisplay, delimiter: str = ",") -> Iterator[Add]:
    """Write rows with a header; what a label has not is an empty cell."""
    with writing_text(path) as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(COLUMNS)

        def add(prediction: Prediction) -> None:
            for row in table_rows(prediction, display):
                writer.writerow([round(cell, 6) if isinstance(cell, float) else cell for cell in row])

        yield add


@contextmanager
def writing_parquet(path: str | Path, display: LabelDisplay) -> Iterator[Add]:
    """Write typed columns: the rank is int32, score and probability float32, all others are strings."""
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    types = {"rank": arrow.int32(), "score": arrow.float32(), "probability": arrow.float32()}
    schema = arrow.schema([(name, types.get(name, arrow.string())) for name in COLUMNS])
    rows: list[tuple[Any, ...]] = []
    with writing(path) as file, parquet.ParquetWriter(file, schema) as writer:

        def flush() -> None:
            columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in COLUMNS]
            batch = arrow.record_batch(
                [arrow.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
            )
            writer.write_batch(batch, row_group_size=_GROUP)
            rows.clear()

        def add(prediction: Prediction) -> None:
            rows.extend(table_rows(prediction, display))
            if len(rows) >= _BATCH:
                flush()

        yield add
        flush()
