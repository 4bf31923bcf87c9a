"""Go on learning from further documents: the checks in front of every method's ``partial_fit``.

Known labels keep their ids, and new labels follow them. A method that can make room for them gets new features too, the
columns of further words (``Features.grown``).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelspace.errors import DataError
from labelspace.models import checks
from labelspace.models.base import Model
from labelspace.models.capabilities import AddsFeatures, PartialFit, require
from labelspace.types import Bools, Csr, LabelSpace, Longs


class NewDocuments(NamedTuple):
    """Documents to go on learning from, checked, as ``partial_fit`` takes them."""

    X: Any  # as the model's ``read`` returns it
    Y: Csr  # (n, n_labels) ones; the columns of new labels come last
    rejected: Csr  # (n, n_labels) ones where a person rejected a label; no label of Y is rejected
    are_complete: Bools  # (n,) whether Y has all labels of a document; else only those of Y and rejected are known
    labels: LabelSpace | None  # all labels, with the counts of the documents learned before and of these

    @property
    def n_labels(self) -> int:
        """The number of labels, with the new ones."""
        return int(self.Y.shape[1])

    @property
    def counts(self) -> Longs | None:
        """How many documents have each label, those learned before and these; None if nobody knows."""
        return None if self.labels is None else self.labels.counts


def learn_more(
    model: Model,
    X: checks.Inputs,
    Y: Csr,
    labels: LabelSpace | None = None,
    *,
    rejected: Csr | None = None,
    complete: bool = True,
) -> Sequence[str]:
    """Let a fitted model go on learning from documents X, in place; return the names of parts that cannot.

    ``Y`` and ``rejected`` (n, n_labels) have a column for each known label, in the order of their ids, and then one for
    each new label. ``labels`` names all of them. Without ``complete``, documents may have labels that Y lacks; this
    always holds for a document with rejected labels only. If a step fails, the model stays as it was.
    """
    model.check_fitted()
    require(model, PartialFit)
    views, Y = checks.check_inputs(X), checks.check_labels(Y)
    rejected = sp.csr_matrix(Y.shape, dtype=np.float32) if rejected is None else checks.check_labels(rejected)
    _check_new_labels(model, views.n, Y, rejected, labels)
    are_complete = complete & ((np.diff(Y.indptr) > 0) | (np.diff(rejected.indptr) == 0))
    known = model.labels_ if labels is None else labels
    if known is not None:
        known = known.counted_with(Y)
    with whole_or_not(model):
        _widen(model, views.widths)
        checks.check_widths(views, model.widths_)
        return go_on(model, NewDocuments(model.read(views), Y, rejected, are_complete, known))


def go_on(model: Model, new: NewDocuments) -> Sequence[str]:
    """Let a model that can go on learn from documents that are checked already; return the parts that cannot."""
    with whole_or_not(model):
        left_out = require(model, PartialFit).partial_fit(new)
        model.forget_derived()
        model.n_labels_ = new.n_labels
        model.attach_labels(new.labels)
    return left_out


def growing_views(model: Model) -> Collection[str]:
    """Return the views of a model that may get further columns."""
    return model.growing_views() if isinstance(model, AddsFeatures) else ()


def insert_features(model: Model, at: Mapping[str, Longs]) -> None:
    """Insert features before columns of the views of a model, which ``growing_views`` has all."""
    require(model, AddsFeatures).insert_features(at)
    model.forget_derived()
    model.widths_ = {view: width + len(at.get(view, ())) for view, width in model.widths_.items()}


def _widen(model: Model, widths: Mapping[str, int]) -> None:
    """Make room for further columns of views, which come after the known ones."""
    known = {view: model.widths_[view] for view in growing_views(model) if view in model.widths_}
    further = {view: widths[view] - width for view, width in known.items() if widths.get(view, 0) > width}
    if further:
        insert_features(model, {view: np.full(n, known[view], np.int64) for view, n in further.items()})


@contextmanager
def whole_or_not(model: Model) -> Iterator[None]:
    """Restore a model if a step of it fails, or is interrupted: half of a step must not answer."""
    before = dict(model.__dict__)
    try:
        yield
    except BaseException:
        model.__dict__ = before
        raise


def _check_new_labels(model: Model, n: int, Y: Csr, rejected: Csr, labels: LabelSpace | None) -> None:
    checks.check_same_rows(n, Y)
    if n == 0 and Y.shape[1] == model.n_labels_:
        raise DataError("learning needs at least one document or one new label, but got none; give some")
    if Y.shape[1] < model.n_labels_:
        rule = f"Y must have a column for each of the {model.n_labels_} known labels, but has {Y.shape[1]}"
        raise DataError(f"{rule}; give the known labels first, then the new ones")
    if rejected.shape != Y.shape:
        rule = f"rejected labels must have the shape of Y, {Y.shape}, but have {rejected.shape}"
        raise DataError(f"{rule}; give a row for each document and a column for each label")
    both = Y.multiply(rejected)
    if both.nnz:
        row, label = (int(at[0]) for at in both.nonzero())
        rule = f"a document cannot have a label that is rejected, but document {row} has label {label} as both"
        raise DataError(f"{rule}; leave one out")
    if labels is not None and len(labels) != Y.shape[1]:
        rule = f"labels must name every column of Y, but there are {len(labels)} names for {Y.shape[1]} columns"
        raise DataError(f"{rule}; give the LabelSpace that Y was built with")
    if labels is None and model.labels_ is not None and Y.shape[1] > model.n_labels_:
        raise DataError("new labels must have names, as the known ones have, but labels is None; give labels")
