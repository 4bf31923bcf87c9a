"""Let a tagger go on learning: documents with labels, new labels among them, and labels that a person rejected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from labelspace.data.label_mapping import ones_of_rows, widened
from labelspace.data.objects.document_reader import DataOptions, DocumentReader, Labels
from labelspace.data.objects.inputs import Documents
from labelspace.errors import DataError
from labelspace.features.views import n_rows
from labelspace.labels import edits
from labelspace.labels.edits import labels_in_use
from labelspace.labels.selection import ids_of
from labelspace.models.capabilities import AddsLabels, ReadsLabelNames
from labelspace.models.partial_fit import growing_views, learn_more, whole_or_not
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


def add_label(
    tagger: Tagger, name: str, examples: Documents | None, alt: Sequence[str], description: str | None
) -> None:
    """Add a label, or give a known one further documents and synonyms; one that was retired is in use again."""
    labels, label = edits.added(tagger.labels_, name, alt, description)
    if examples is None:
        set_labels(tagger, labels)
        return
    if not n_rows(examples):
        raise DataError(f"a label is learned from at least one example, but {name!r} has none; leave examples out")
    reader = DocumentReader({}, labels, tagger.columns_, tagger.fields_)
    documents = reader.dataset(examples, [[labels.names[label]]] * n_rows(examples))
    learn(tagger, documents, sp.csr_matrix(documents.Y.shape, dtype=np.float32), complete=False)


def set_labels(tagger: Tagger, labels: LabelSpace) -> Sequence[str]:
    """Give a tagger edited labels, and new ones behind them; return the members that cannot take new ones.

    A model that reads their names gets the new names. If a step fails, the tagger stays as it was.
    """
    model = tagger.model
    if len(labels) > len(tagger.labels_):
        X = sp.csr_matrix((0, model.n_features_), dtype=np.float32) if tagger.ready_made else None
        none = sp.csr_matrix((0, len(labels)), dtype=np.float32)
        return learn(tagger, Dataset(none, labels, None if X is not None else [], X), none, complete=False)
    with whole_or_not(model):
        if isinstance(model, ReadsLabelNames):
            model.relabel(labels)
        model.attach_labels(labels)
    tagger.labels_ = labels
    return ()


@contextmanager
def whole_edit(tagger: Tagger) -> Iterator[None]:
    """Restore a tagger and its model if one of several edits fails, or is interrupted."""
    before, model = dict(tagger.__dict__), tagger.model
    saved: dict[str, Any] | None = None
    if isinstance(model, AddsLabels):  # it adds labels to what it has, in place
        saved = deepcopy(model.__dict__)
    try:
        with whole_or_not(model):
            yield
    except BaseException:
        tagger.__dict__ = before
        if saved is not None:
            model.__dict__ = saved
        raise
