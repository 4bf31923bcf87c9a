"""A stream of records in batches that fit into memory."""

from collections.abc import Iterable, Iterator, Sequence

from labelspace.data.records import Record
from labelspace.data.sparse_rows import parse_features
from labelspace.errors import DataError
from labelspace.types import Csr
from labelspace.types.limits import MAX_LINE_BYTES


def record_batches(records: Iterable[Record], max_records: int) -> Iterator[list[Record]]:
    """Lists of at most ``max_records``, shorter where documents are long: a list ends with ``MAX_LINE_BYTES`` in all.

    >>> [len(batch) for batch in record_batches([Record("a", "it purrs")] * 5, 2)]
    [2, 2, 1]
    """
    limit = MAX_LINE_BYTES.value
    batch: list[Record] = []
    size = 0
    for record in records:
        if not isinstance(record, Record):
            raise DataError(
                f"records must be of class Record, but one is {type(record).__name__}; write Record(id, text)"
            )
        batch.append(record)
        size += len(record.text or "") + len(record.features or "")
        if len(batch) >= max_records or size >= limit:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def batch_inputs(batch: Sequence[Record], n_features: int | None, source: str) -> Csr | list[str]:
    """What a model reads of some records of a source: rows of so many features, or texts where that is None."""
    if n_features is None:
        return [_field(record, record.text, "text", source) for record in batch]
    rows = [_field(record, record.features, "features", source) for record in batch]
    return parse_features(rows, n_features, lambda row: f"{source}:{batch[row].line}")


def _field(record: Record, value: str | None, field: str, source: str) -> str:
    if value is None:
        raise DataError(
            f"{source}:{record.line}: expected {field!r}, which this model reads, but there is none; add it"
        )
    return value
