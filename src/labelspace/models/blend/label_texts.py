"""What the members that read label texts find: ``lexical`` their words, ``semantic`` their meaning by an encoder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from labelspace.features.views import Views
from labelspace.models.blend import stacking_table as stacking
from labelspace.models.blend import training
from labelspace.models.blend.members import FAST, encoder_for, view_for
from labelspace.models.blend.text_evidence import READERS, TextEvidence
from labelspace.models.capabilities import RanksByText, require
from labelspace.types import Csr

if TYPE_CHECKING:
    from labelspace.models.blend.model import Blend

VECTORS = "semantic"  # the member that compares texts and labels by vectors of an encoder
MAX_SAMPLE = 2000  # documents by which labels without documents are judged
WORTH = "label texts by meaning gained 1.3 points of nDCG@5 on CookingSE, and find labels without documents"
WORD = re.compile(r"[^\W\d_]{3}")


def fit_text_evidence(blend: Blend, views: Views, Y: Csr) -> TextEvidence | None:
    """Learn when labels without documents are right from the rarer half of the others, ranked by texts alone.

    Return None unless both members that read label texts are there.
    """
    if not set(READERS) <= set(blend.member_names):
        return None
    rows = np.random.default_rng(blend.random_state).permutation(Y.shape[0])
    rows = np.sort(rows[:MAX_SAMPLE])
    counts = blend.pairs_.counts
    allowed = (counts > 0) & (counts <= np.median(counts[counts > 0]))
    k, tops = blend.n_predicted(Y.shape[1]), []
    for name in READERS:
        at = blend.member_names.index(name)
        member = blend.members_[at]
        X = member.read(view_for(member, views.rows(rows), blend.member_views_[at]))
        tops.append(require(member, RanksByText).text_topk(X, k, allowed).padded(k))
    table = stacking.stacking_table(training.side_by_side(tops), blend.n_candidates, blend.pairs_.log_counts)
    right = table.targets(Y[rows]) if len(table.labels) else np.zeros(0, np.float32)
    return TextEvidence.fitted(table.columns, right)


def vector_note(blend: Blend) -> str:
    """Say what the member that reads vectors gains, or what would install it; nothing if neither is known."""
    is_member = VECTORS in blend.member_names
    if blend.vector_gain_ is not None:
        left_out = "" if is_member else "left out: "
        return f"{left_out}{blend.vector_gain_:+.1f} points of nDCG@5 on held-out documents"
    chosen = blend.members is None and blend.effort != FAST and _reads_names(blend)
    if chosen and not is_member and encoder_for([]) is None:
        return f"not installed; {WORTH}; run: pip install 'labelspace[encoder]'"
    return ""


def _reads_names(blend: Blend) -> bool:
    """Return whether a member reads the labels' names, and these are words."""
    names = [] if blend.labels_ is None else blend.labels_.names[:1000]
    n_words = sum(WORD.search(name) is not None for name in names)
    return 2 * n_words > len(names) and "lexical" in blend.member_names
