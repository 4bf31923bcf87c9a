"""The documents by which a new version is compared with the one before, and what is left to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labelspace.data.archives import is_folder
from labelspace.data.dataset_file import read_for_model
from labelspace.data.document_sketch import document_hashes
from labelspace.data.objects.inputs import Documents
from labelspace.data.read_options import ReadOptions
from labelspace.data.source import split_file
from labelspace.errors import DataError
from labelspace.experiment.learning.comparison import HeldOut
from labelspace.tagger import Tagger
from labelspace.tagger.held_out import are_among, put_aside
from labelspace.types import Bools, Csr, Dataset

SHARE = 0.1  # of the new documents that become the sample of a model that has none
MIN_DOCUMENTS = 50  # new ones of which a sample is put aside: a tenth of fewer tells nothing
MAX_HELD_OUT = 1000  # documents of a sample, which is a part of the model
STORED = "the held-out sample"


class LearningDocuments(NamedTuple):
    """Documents to learn from, and the labels that a person rejected."""

    documents: Dataset
    rejected: Csr

    def rows(self, chosen: Bools) -> LearningDocuments:
        """Return some of the documents."""
        at = np.flatnonzero(chosen)
        return LearningDocuments(self.documents.rows(at), self.rejected[at])

    def judged(self) -> LearningDocuments:
        """Return the documents with labels or rejected labels; nothing is known of others, such as those to review."""
        known = (np.diff(self.documents.Y.indptr) > 0) | (np.diff(self.rejected.indptr) > 0)
        return self if known.all() else self.rows(known)


def stored_held_out(tagger: Tagger) -> HeldOut | None:
    """Return the sample that is stored with a model."""
    if tagger.held_out_ is None:
        return None
    return HeldOut(tagger.held_out_.dataset(tagger.labels_, tagger.side_columns), STORED)


def given_held_out(tagger: Tagger, file: Path | None, data: Path | None, options: ReadOptions) -> HeldOut | None:
    """Return the held-out documents of a file, of ``test.*`` or ``dev.*`` of a data folder, or of the model."""
    if file is None and data is not None and is_folder(data):
        file = split_file(data, "test") or split_file(data, "dev")
    if file is None:
        return stored_held_out(tagger)
    columns = tagger.columns_ if options.columns is None else options.columns
    documents = read_for_model(file, tagger.labels_, columns, options.following(tagger.fields_))
    if not documents.Y.nnz:
        rule = f"held-out documents must have labels, but no document of {file} has any"
        raise DataError(f"{rule}; give another file, or name the column of the labels: --labels tags")
    return HeldOut(documents, file.name)


def without_held_out(tagger: Tagger, given: LearningDocuments, held_out: HeldOut | None) -> LearningDocuments:
    """Return the documents that are neither held out here nor in the sample of the model."""
    inputs = tagger.inputs_of(given.documents)
    is_kept = np.ones(len(given.documents), bool)
    for each in (held_out, stored_held_out(tagger)):
        if each is not None:
            is_kept &= ~are_among(inputs, document_hashes(tagger.inputs_of(each.documents)))
    return given if is_kept.all() else given.rows(is_kept)


def put_sample_aside(tagger: Tagger, given: LearningDocuments) -> tuple[LearningDocuments, HeldOut | None]:
    """Return the documents to learn from, and a sample that is put aside for a model without one.

    The sample is None if there are too few documents. Only documents with labels are chosen, and none that the model
    has seen.
    """
    documents = given.documents
    is_new = np.diff(documents.Y.indptr) > 0
    inputs = tagger.inputs_of(documents)
    if tagger.documents_ is not None:
        is_new &= ~are_among(inputs, tagger.documents_.hashes_)
    n = int(is_new.sum())
    if n < MIN_DOCUMENTS:
        return given, None
    chosen = np.zeros(len(documents), bool)
    chosen[is_new] = put_aside(_rows(inputs, is_new), max(1, min(round(SHARE * n), MAX_HELD_OUT)))
    sample = given.rows(chosen).documents
    # An equal document that is not chosen, since it has no labels, is not learned from either.
    rest = given.rows(~are_among(inputs, document_hashes(_rows(inputs, chosen))))
    return (given, None) if not len(sample) or not len(rest.documents) else (rest, HeldOut(sample, STORED))


def _rows(inputs: Documents, chosen: Bools) -> Documents:
    """Return some of the texts or rows of features."""
    at = np.flatnonzero(chosen)
    return [inputs[row] for row in at.tolist()] if isinstance(inputs, Sequence) else inputs[at]
