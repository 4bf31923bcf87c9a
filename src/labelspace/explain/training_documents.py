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

    >>> documents = TrainingDocuments.of_texts(["bake bread", "grill fish"], ids=["q-7", "q-8"])
    >>> documents[1]
    ('q-8', 'grill fish')
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
        rows = np.arange(len(documents)) if rows is None else rows
        ids = None if documents.ids is None else [documents.ids[i] for i in rows.tolist()]
        texts = None if documents.texts is None or not keep_texts else [documents.texts[i] for i in rows.tolist()]
        return cls._of(rows, ids, texts)

    @classmethod
    def of_texts(cls, texts: Sequence[str], ids: Sequence[str] | None = None) -> Self:
        """Return the documents of some texts."""
        return cls._of(np.arange(len(texts)), ids, texts)

    @classmethod
    def _of(cls, rows: Longs, ids: Sequence[str] | None, texts: Sequence[str] | None) -> Self:
        made = cls()
        made.rows_ = rows.astype(np.int32)
        made.id_bytes_, made.id_starts_ = _joined(ids or [])
        made.text_bytes_, made.text_starts_ = _joined(texts or [])
        return made

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


def _joined(texts: Sequence[str]) -> tuple[Bytes, Longs]:
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)]).astype(np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), starts


def _entry(text_bytes: Bytes, starts: Longs, at: int) -> str | None:
    if at + 1 >= len(starts):
        return None
    return text_bytes[starts[at] : starts[at + 1]].tobytes().decode("utf-8", "replace")
