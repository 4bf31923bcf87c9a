"""Let a tagger go on learning: documents with labels, new labels among them, and labels that a person rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from labelspace.data.label_mapping import merged_columns, ones_of_rows, widened
from labelspace.data.objects.document_reader import DataOptions, DocumentReader, Labels
from labelspace.data.objects.inputs import Documents
from labelspace.errors import DataError
from labelspace.features.views import n_rows
from labelspace.labels import edits
from labelspace.labels.masks import labels_among
from labelspace.labels.selection import ids_of
from labelspace.models.capabilities import ReadsLabelNames
from labelspace.models.partial_fit import growing_views, learn_more
from labelspace.types import Csr, Dataset, LabelSpace

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


def learn(tagger: Tagger, documents: Dataset, rejected: Csr, complete: bool = True) -> Sequence[str]:
    """Learn from documents that ``read_documents`` returned; return the names of the members that cannot.

    A label that was merged into another one counts as that one, and a retired label is left out.
    """
    labels, inputs, n_before = documents.labels, tagger.inputs_of(documents), tagger.labels_.n_documents
    Y, rejected = (labels_in_use(table, labels) for table in (documents.Y, rejected))
    features = tagger.features_
    if features is not None and documents.texts:
        features = features.grown(documents.texts, growing_views(tagger.model))
    views = tagger.read(inputs) if features is None else features.transform(documents.texts or [])
    left_out = learn_more(tagger.model, views, Y, labels, rejected=rejected, complete=complete)
    tagger.features_ = features
    tagger.labels_ = tagger.model.labels_ or labels
    if tagger.documents_ is not None:
        tagger.documents_ = tagger.documents_.extended(inputs)
    if tagger.training_documents_ is not None:
        tagger.training_documents_ = tagger.training_documents_.extended(documents, n_before)
    return left_out


def labels_in_use(table: Csr, labels: LabelSpace) -> Csr:
    """Return a table (n, n_labels) of labels with those that are answered in their place."""
    if labels.current is None:
        return table
    return merged_columns(labels_among(table, labels.answerable), np.maximum(labels.current, 0), table.shape[1])


def add_label(tagger: Tagger, name: str, examples: Documents | None, alt: Sequence[str]) -> None:
    """Add a label, or give a known one further documents and synonyms; one that was retired is in use again."""
    known = tagger.labels_
    label = known.find(name)
    if label is None:
        labels = known.extended([edits.check_new_name(known, name)])
        label = len(known)
    else:
        labels = edits.restored(known, label)
    labels = edits.described(labels, label, alt)
    if examples is None and len(labels) == len(known):
        set_labels(tagger, labels)
        return
    names = [labels.names[label]]
    if examples is not None:
        reader = DocumentReader({}, labels, tagger.columns_, tagger.fields_)
        documents = reader.dataset(examples, [names] * n_rows(examples))
    else:
        X = sp.csr_matrix((0, tagger.model.n_features_), dtype=np.float32) if tagger.ready_made else None
        documents = Dataset(sp.csr_matrix((0, len(labels)), dtype=np.float32), labels, None if X is not None else [], X)
    learn(tagger, documents, sp.csr_matrix(documents.Y.shape, dtype=np.float32), complete=False)


def set_labels(tagger: Tagger, labels: LabelSpace) -> None:
    """Give a tagger edited labels; a model that reads their names gets the new names."""
    if isinstance(tagger.model, ReadsLabelNames):
        tagger.model.relabel(labels)
    tagger.model.attach_labels(labels)
    tagger.labels_ = labels
