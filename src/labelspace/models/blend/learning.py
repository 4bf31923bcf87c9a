"""Go on learning: members that can learn the new documents, and the stacking model keeps its trees.

What the stacking model says of new documents before it has learned them tells whether its probabilities still hold,
and how much a rejection says.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from labelspace.errors import ParameterError
from labelspace.features.views import VIEWS, joined_parts
from labelspace.models.base import Model
from labelspace.models.blend import stacking_table as stacking
from labelspace.models.blend.members import Member, view_for
from labelspace.models.blend.recalibration import Recalibration
from labelspace.models.blend.rejections import Rejections
from labelspace.models.blend.stacking_model import add_pairs
from labelspace.models.blend.stacking_table import StackingTable
from labelspace.models.capabilities import PartialFit
from labelspace.models.partial_fit import NewDocuments, go_on, insert_features
from labelspace.types import Floats, Longs

if TYPE_CHECKING:
    from labelspace.models.blend.model import Blend

MAX_JUDGED = 500  # documents of a batch that are predicted before they are learned: more cost time, and tell little


def learn(blend: Blend, new: NewDocuments) -> list[str]:
    """Let the members that can learn new documents, and recalibrate; return the names of the parts that cannot.

    Documents of which only rejected labels are known do not count in the recalibration: they would make every
    probability too low.
    """
    judged = _judged(blend, new)
    table = stacking.stacking_table(blend.member_topk(judged.X), blend.n_candidates, blend.pairs_.log_counts)
    before = blend.both_passes(table)
    recalibration = _updated_recalibration(blend, table, before, judged)
    rejections = _extended_rejections(blend, table, before, judged)
    members, left_out = [copy(member) for member in blend.members_], []
    for member, view in zip(members, blend.member_views_, strict=True):
        left_out += _learn_or_name(member, view, new)
    blend.members_, blend.recalibration_, blend.rejections_ = members, recalibration, rejections
    weights = blend.label_weight_
    if weights is not None:  # a new label is worth as much as most
        further = np.full(new.n_labels - len(weights), np.median(weights), np.float32)
        blend.label_weight_ = np.append(weights, further)
    blend.pairs_ = add_pairs(blend.pairs_, new.Y[np.flatnonzero(new.are_complete)])
    return left_out


def _judged(blend: Blend, new: NewDocuments) -> NewDocuments:
    """Return the documents to predict before they are learned: a sample as long as nobody rejected a label."""
    n = len(new.are_complete)
    if n <= MAX_JUDGED or blend.rejections_ is not None or new.rejected.nnz:
        return new
    rows = np.arange(MAX_JUDGED) * n // MAX_JUDGED
    return new._replace(
        X=new.X.rows(rows), Y=new.Y[rows], rejected=new.rejected[rows], are_complete=new.are_complete[rows]
    )


def _updated_recalibration(
    blend: Blend, table: StackingTable, before: Floats, new: NewDocuments
) -> Recalibration | None:
    """Return the recalibration after complete documents, whose candidates had these probabilities."""
    counted = np.repeat(new.are_complete, np.diff(table.ends))
    if not counted.any() or not len(blend.forest_.roots):
        return blend.recalibration_
    right = table.targets(new.Y) > 0
    line = blend.recalibration_ or Recalibration.start()
    return line.updated(before[counted], right[counted], int(new.are_complete.sum()))


def _extended_rejections(blend: Blend, table: StackingTable, before: Floats, new: NewDocuments) -> Rejections | None:
    """Return the rejections with those of new documents; None as long as there are none."""
    view = blend.compared_view
    if view is None or (blend.rejections_ is None and not new.rejected.nnz):
        return None
    known = blend.rejections_ or Rejections.none(new.X.width(view), blend.n_labels_)
    probabilities = sp.csr_matrix((before, table.labels, table.ends), shape=new.Y.shape)
    return known.extended(blend.compared(new.X), new, probabilities)


def _learn_or_name(member: Model, view: str, new: NewDocuments) -> list[str]:
    """Let a member learn from its view of documents; return the names of the parts that cannot."""
    cannot = [str(Member(member.name, view))]
    if not isinstance(member, PartialFit):
        return cannot
    X = member.read(view_for(member, new.X, view))
    try:
        return [f"{member.name}: {part}" for part in go_on(member, new._replace(X=X))]
    except ParameterError:  # it was saved before what it needs was kept
        return cannot


def insert_columns(blend: Blend, at: Mapping[str, Longs]) -> None:
    """Insert features before columns of views, and of the views that are joined from these."""
    members = [copy(member) for member in blend.members_]
    for member, view in zip(members, blend.member_views_, strict=True):
        found, first = [], 0
        for name in joined_parts(view):
            found.append(at.get(name, np.zeros(0, np.int64)) + first)
            first += blend.width(VIEWS[name])
        columns = np.concatenate(found)
        if len(columns):
            insert_features(member, {member.view.name: columns})
    blend.members_ = members
    compared = at.get(str(blend.compared_view))
    if blend.rejections_ is not None and compared is not None:
        blend.rejections_ = blend.rejections_.insert_features(compared)
