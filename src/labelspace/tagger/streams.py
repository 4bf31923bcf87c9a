"""Tag a stream of records of any size: a batch of documents is in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from labelspace.data.records import Record, batch_inputs, record_batches
from labelspace.labels.tag_options import TagOptions
from labelspace.models.checks import Inputs, check_k
from labelspace.tagger.answers import DocumentAnswer

if TYPE_CHECKING:
    from labelspace.tagger.tagger import Tagger

# Both bound memory: the first the texts and features of a batch, the second its labels where k is in the thousands.
# Larger batches take more memory; smaller ones start the threads more often.
MAX_DOCUMENTS = 1024  # of a batch
MAX_TAGS = 2**20  # of a batch: documents times k
T = TypeVar("T")


def stream(
    tagger: Tagger, records: Iterable[Record], k: int, source: str, tag: Callable[[Inputs, int], list[T]]
) -> Iterator[tuple[Record, T]]:
    """Yield each record with what ``tag`` makes of its document; ``source`` names the records in messages."""
    tagger.check_fitted()
    check_k(k)
    k = min(k, len(tagger.labels_))  # the rest would be padding
    n_features = tagger.model.n_features_ if tagger.ready_made else None
    for batch in record_batches(records, min(MAX_DOCUMENTS, max(MAX_TAGS // k, 1))):
        yield from zip(batch, tag(batch_inputs(batch, n_features, source), k), strict=True)


def document_answers(
    tagger: Tagger, records: Iterable[Record], k: int, source: str, options: TagOptions
) -> Iterator[tuple[Record, DocumentAnswer]]:
    """Yield each record with its answer by label ids."""

    def tag(inputs: Inputs, k: int) -> list[DocumentAnswer]:
        return tagger.answers(inputs, k, **options).documents(tagger.labels_)

    return stream(tagger, records, k, source, tag)
