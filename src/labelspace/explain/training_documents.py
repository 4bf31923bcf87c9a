"""The ids, and if kept the texts, of training documents, for explanations that show which documents voted."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from labelspace.errors import ModelError
from labelspace.estimator import Stateful, learned
from labelspace.estimator.state_constraints import array, must, offsets
from labelspace.kernels.tokenize import Bytes
from labelspace.types import Dataset, Ints, Longs


class TrainingDocuments(Stateful):
    """Ids of documents, and their texts if kept; a document without an id has the number of its row, from 1.

    >>> from labelspace.data.texts import dataset_from_names
    >>> documents = dataset_from_names(["bake bread", "grill fish"], [["bread"], ["fish"]])
    >>> TrainingDocuments.of(documents, rows=None, keep_texts=True)[1]
    ('2', 'grill fish')
    """

    name = "training_documents"

    rows_: Ints = learned(array("int32", "n_documents", at_least=0))  # of the training data
    id_bytes_: Bytes = learned(array("uint8", "n_id_bytes"))
    id_starts_: Longs = learned(offsets("n_ids", into="n_id_bytes"))
    text_bytes_: Bytes = learned(array("uint8", "n_text_bytes"))
    text_starts_: Longs = learned(offsets("n_texts", into="n_text_bytes"))

    @classmethod
    def of(cls, documents: Dataset, rows: Longs | None, keep_texts: bool) -> Self:
        """Return the ids and texts of some rows of the training documents; None takes all rows."""
        made = cls()
        made.rows_ = np.arange(len(documents), dtype=np.int32) if rows is None else rows.astype(np.int32)
        made.id_bytes_, made.id_starts_ = _joined(documents.ids, made.rows_)
        made.text_bytes_, made.text_starts_ = _joined(documents.texts if keep_texts else None, made.rows_)
        return made

    def extended(self, documents: Dataset, first_row: int) -> Self:
        """Return these documents and further ones, whose rows are numbered from ``first_row``."""
        keeps_texts = len(self.text_starts_) > 1
        further = type(self).of(documents, None, keeps_texts)
        made = type(self)()
        made.rows_ = np.concatenate([self.rows_, further.rows_ + np.int32(first_row)])
        made.id_bytes_, made.id_starts_ = self._both_ids(further)
        made.text_bytes_ = np.concatenate([self.text_bytes_, further.text_bytes_])
        made.text_starts_ = _joined_starts(self.text_starts_, further.text_starts_)
        return made

    def _both_ids(self, further: Self) -> tuple[Bytes, Longs]:
        """Return the ids of these and of further documents; a document without an id gets the number of its row."""
        if len(self.id_starts_) == len(further.id_starts_) == 1:
            return self.id_bytes_, self.id_starts_
        ids = [part[at][0] for part in (self, further) for at in range(len(part))]
        return _joined(ids, np.arange(len(ids), dtype=np.int32))

    def check_state(self) -> None:
        """Check that all documents have ids, or none, and likewise for texts."""
        for starts in (self.id_starts_, self.text_starts_):
            must(len(starts) - 1 in (0, len(self.rows_)), "ids and texts of all documents, or of none")

    def __len__(self) -> int:
        return len(self.rows_)

    def __getitem__(self, at: int) -> tuple[str, str | None]:
        """Return the id of a document, and its text if kept."""
        if not 0 <= at < len(self):
            rule = "a saved model must have an id for each training document"
            had = f"has {len(self)} and needs that of {at}"
            raise ModelError(f"{rule}, but {had}; copy the whole folder again, or train it again")
        named = _entry(self.id_bytes_, self.id_starts_, at)
        return str(self.rows_[at] + 1) if named is None else named, _entry(self.text_bytes_, self.text_starts_, at)


def _joined(texts: Sequence[str] | None, rows: Ints) -> tuple[Bytes, Longs]:
    """Return some of the texts as bytes, and where each begins; none if there are no texts."""
    parts = [] if texts is None else [texts[row].encode("utf-8", "surrogatepass") for row in rows.tolist()]
    return np.frombuffer(b"".join(parts), np.uint8), np.cumsum([0, *map(len, parts)], dtype=np.int64)


def _joined_starts(starts: Longs, further: Longs) -> Longs:
    return np.concatenate([starts, further[1:] + starts[-1]])


def _entry(text_bytes: Bytes, starts: Longs, at: int) -> str | None:
    if at + 1 >= len(starts):
        return None
    return text_bytes[starts[at] : starts[at + 1]].tobytes().decode("utf-8", "replace")
