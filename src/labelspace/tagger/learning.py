"""Let a tagger go on learning: documents with labels, new labels among them, and labels that a person rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import scipy.sparse as sp

from labelspace.data.label_mapping import ones_of_rows, widened
from labelspace.data.objects.document_reader import DataOptions, DocumentReader, Labels
from labelspace.data.objects.inputs import Documents
from labelspace.errors import DataError
from labelspace.labels.selection import ids_of
from labelspace.models.partial_fit import learn_more
from labelspace.types import Csr, Dataset

if TYPE_CHECKING:
    from labelspace.tagger.tagger import Tagger

Rejected = Sequence[Sequence[str]]
"""The names of the rejected labels of each document."""


def read_documents(
    tagger: Tagger, data: Documents, labels: Labels, rejected: Rejected | None, options: DataOptions
) -> tuple[Dataset, Csr]:
    """Return documents to learn from, with the known labels first, and the labels that a person rejected."""
    reader = DocumentReader(options, tagger.labels_, tagger.columns_, tagger.fields_)
    if labels is None and rejected is not None and isinstance(data, Sequence) and not isinstance(data, str):
        labels = [[] for _ in data]  # only rejected labels are known
    documents = reader.dataset(data, labels)
    if rejected is None:
        return documents, sp.csr_matrix(documents.Y.shape, dtype=documents.Y.dtype)
    if len(rejected) != len(documents):
        rule = f"there must be one list of rejected labels per text, but there are {len(rejected)}"
        raise DataError(f"{rule} for {len(documents)} texts; give [] for a text without any")
    rows = [sorted(set(ids_of(tagger.labels_, list(names)).tolist())) for names in rejected]
    return documents, widened(ones_of_rows(rows, len(tagger.labels_)), len(documents.labels))


def learn(tagger: Tagger, documents: Dataset, rejected: Csr) -> Sequence[str]:
    """Learn from documents that ``read_documents`` returned; return the names of the members that cannot."""
    inputs, n_before = tagger.inputs_of(documents), tagger.labels_.n_documents
    left_out = learn_more(tagger.model, tagger.read(inputs), documents.Y, documents.labels, rejected)
    tagger.labels_ = tagger.model.labels_ or documents.labels
    if tagger.documents_ is not None:
        tagger.documents_ = tagger.documents_.extended(inputs)
    if tagger.training_documents_ is not None:
        tagger.training_documents_ = tagger.training_documents_.extended(documents, n_before)
    return left_out
