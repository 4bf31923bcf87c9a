"""Labels that come and go without training: the embedding and bias of a new label, and its entry in the label space."""

from dataclasses import replace

import numpy as np

from labelspace.errors import DataError, ParameterError
from labelspace.types import Floats, LabelSpace

DEFAULT_SHARE = 0.005  # of all documents, expected to carry a new label


def place_label(examples: Floats, background: Floats, scale: float, share: float) -> tuple[Floats, float]:
    """The embedding v and bias b of a new label, by the embeddings of documents that carry it and of others.

    v points from the mean of the others (the background) to the mean of the examples. b is such that z is above 0 for
    this share of the background: no more documents than are expected to carry the label.
    """
    if not 0 < share < 1:
        raise ParameterError(f"share must be above 0 and below 1, but is {share}; give a part of all documents")
    v: Floats = examples.mean(axis=0) - background.mean(axis=0)
    v /= max(float(np.linalg.norm(v)), 1e-12)
    return v, -scale * float(np.quantile(background @ v, 1.0 - share))


def require_names(labels: LabelSpace | None) -> LabelSpace:
    """The labels, which must have names."""
    if labels is None:
        raise DataError("labels must have names to come and go, but the model has none; fit it with labels=")
    return labels


def with_count(labels: LabelSpace, label: int, n_documents: int) -> LabelSpace:
    """The labels with another count of training documents of one of them."""
    counts = np.zeros(len(labels), np.int64) if labels.counts is None else labels.counts.copy()
    counts[label] = n_documents
    return replace(labels, counts=counts)


def without_label(labels: LabelSpace, label: int) -> LabelSpace:
    """The labels with one retired: its id stays, its count is 0, and the hierarchy bypasses it."""
    if labels.hierarchy is not None:  # else consistent predictions would include it as an ancestor
        labels = replace(labels, hierarchy=labels.hierarchy.without(label))
    return with_count(labels, label, 0)
