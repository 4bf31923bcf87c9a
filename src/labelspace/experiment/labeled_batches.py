"""Stream documents that may have labels through a model, a batch in memory at a time."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labelspace.data.dataset_builder import LabelColumn
from labelspace.data.document_sketch import DocumentSketch
from labelspace.data.files import STDIN
from labelspace.data.label_files import labels_of_file
from labelspace.data.label_mapping import matched_labels
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Record, batch_inputs, record_batches
from labelspace.data.source import iter_records
from labelspace.labels.edits import labels_in_use
from labelspace.tagger import Tagger
from labelspace.types import Bools, Csr, LabelSpace

MAX_DOCUMENTS = 1024  # of a batch; bounds memory, while larger batches would hardly be faster


class LabeledBatch(NamedTuple):
    """Some documents, and the labels that they are given, if any."""

    records: Sequence[Record]
    inputs: Csr | list[str]  # what the model reads of them
    given: Csr  # (n, at least n_labels) ones; labels that the model does not have come last
    names: Sequence[str]  # of the columns of ``given``

    @property
    def are_labeled(self) -> Bools:
        """Whether each document has a label. Shape (n,)."""
        return np.asarray(np.diff(self.given.indptr) > 0, bool)

    def given_names(self, row: int) -> list[str]:
        """Return the names of the labels that a document is given."""
        ids = self.given.indices[self.given.indptr[row] : self.given.indptr[row + 1]]
        return [self.names[label] for label in ids.tolist()]


class LabeledDocuments:
    """The documents of a file of any size, or of the standard input, for a model; labels may be missing.

    >>> tagger = Tagger("neighbors").fit(["bake bread", "grill fish"] * 2, [["baking"], ["fish"]] * 2)
    >>> records = [Record("1", "rye bread", labels=("baking", "rye")), Record("2", "a fish")]
    >>> batch = next(LabeledDocuments(tagger, records, "records").batches())
    >>> batch.given_names(0), batch.are_labeled.tolist()
    (['baking', 'rye'], [True, False])
    """

    def __init__(self, tagger: Tagger, records: Iterable[Record], source: str, own: LabelSpace | None = None) -> None:
        tagger.check_fitted()
        self.tagger, self.records, self.source = tagger, records, source
        self.own = own  # labels of the file, which its label ids are of; None for those of the model
        self.n = self.n_labeled = 0
        self.seen = SeenDocuments(tagger.documents_)

    @classmethod
    def of_file(cls, tagger: Tagger, path: str, options: ReadOptions) -> "LabeledDocuments":
        """Open a file, which is read like the training file unless the options say otherwise."""
        tagger.check_fitted()
        reading = options.following(tagger.fields_)
        columns = tagger.columns_ if reading.columns is None else reading.columns
        records = iter_records(path, tagger.ready_made, columns, reading, known=tagger.labels_)
        return cls(tagger, records, path, None if path == STDIN else labels_of_file(Path(path)))

    def batches(self) -> Iterator[LabeledBatch]:
        """Yield all documents, and count them."""
        n_features = self.tagger.model.n_features_ if self.tagger.ready_made else None
        for records in record_batches(self.records, MAX_DOCUMENTS):
            inputs = batch_inputs(records, n_features, self.source)
            batch = LabeledBatch(records, inputs, *self._given(records))
            self.n += len(records)
            self.n_labeled += int(batch.are_labeled.sum())
            self.seen.count(inputs)
            yield batch

    def _given(self, records: Sequence[Record]) -> tuple[Csr, Sequence[str]]:
        """Return the given labels of documents, those in use of the model first, and the names of the columns."""
        column, known = LabelColumn(self.source), self.tagger.labels_
        for record in records:
            column.add(record)
        space = column.resolve(known if self.own is None else self.own)
        Y = column.matrix(space)
        if self.own is not None:
            Y, space = matched_labels(Y, space, known)
        return labels_in_use(Y, space), space.names


class SeenDocuments:
    """Estimates which share of a stream of documents was in the training data."""

    def __init__(self, sketch: DocumentSketch | None) -> None:
        self._sketch = sketch
        self._n_seen = self._n_comparable = 0

    def count(self, inputs: Csr | list[str]) -> None:
        """Compare further documents with the sketch of the training documents."""
        if self._sketch is not None:
            n_seen, n_comparable = self._sketch.count(inputs)
            self._n_seen += n_seen
            self._n_comparable += n_comparable

    @property
    def share(self) -> float | None:
        """The share from training; None if it is unknown."""
        return self._n_seen / self._n_comparable if self._n_comparable else None
