"""A stream of records in batches that fit into memory."""

from collections.abc import Iterable, Iterator

from labelspace.data.records import Record
from labelspace.errors import DataError
from labelspace.limits import MAX_LINE_BYTES


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
