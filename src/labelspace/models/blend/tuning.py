"""The regularization of linear members, chosen once by cross-validation on a sample, for all folds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelspace.features.views import GIVEN, Views
from labelspace.models.blend.members import Member, member_params
from labelspace.models.blend.training import table_of
from labelspace.models.fit_context import FitContext
from labelspace.models.registry import create
from labelspace.training.model_selection import choose
from labelspace.types import Csr, TopK, no_progress

FEWEST_LABELS = 50  # of a sample, that may speak for all: of long texts it has fewer, and then C stays as it is
CANDIDATES = {"pdsparse": (0.5, 1.0, 2.0)}  # values of C, by method


def tuned_params(members: Sequence[Member], views: Views, Y: Csr, random_state: int) -> dict[Member, dict[str, Any]]:
    """The C of each member that has candidates; nothing where documents are too few to choose by."""
    tuned, n_labels = {}, len(np.unique(Y.indices))
    for member in members:
        if member.method in CANDIDATES:
            tables, Cs = {member.view: table_of(views, member.view)}, CANDIDATES[member.method]

            def rank(X: Csr, Y: Csr, held_out: Csr, C: float, k: int, member: Member = member) -> TopK:
                model = create(member.method, **{**member_params(member, random_state), "C": C})
                model.fit_checked(Views({GIVEN: X}), Y, FitContext())
                return model._predict(held_out, k)

            choice = choose(tables, Y, Cs, rank, random_state, no_progress, min(FEWEST_LABELS, n_labels))
            if choice is not None:
                tuned[member] = {"C": choice.C}
    return tuned
