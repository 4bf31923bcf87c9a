"""Why the ensemble gives a label its probability.

1. Take the label's row in the stacking table, and a reference row in which no member lists the label.
2. First pass: the Shapley value of each member between the two rows, all columns of a member at once. What the columns
   of all members together are worth (sum of the scores, members that list the label) is theirs by their scores.
3. Second pass: the Shapley values of two groups of columns, those that follow from the label's own first pass, and what
   the document's other labels say of it. The former is shared by the members as the first pass is.
4. A member's own evidence (words, phrases, documents) is scaled to its share. Where the member's log-odds and the share
   do not go together, the scale stays between 0 and ``MAX_SCALE``, and what is left counts as the remainder.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import factorial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from labelspace.features.views import Views, joined_parts
from labelspace.models.blend.boosting.kernels import ForestNodes, forest_shapley
from labelspace.models.blend.kernels import COLUMNS_PER_MEMBER, N_COLUMNS, SHARED_COLUMNS
from labelspace.models.blend.members import Member, view_for
from labelspace.models.blend.stacking_model import SHORTLIST, shortlist
from labelspace.models.blend.stacking_table import BELOW, MemberTopK, StackingTable, further_table, stacking_table
from labelspace.models.capabilities import Explains
from labelspace.models.evidence import ColumnShares, Evidence, MemberShare, PhraseShare, Step, Voter, logit
from labelspace.types import Doubles, Floats, Ints

if TYPE_CHECKING:
    from labelspace.models.base import Model
    from labelspace.models.blend.boosting.forest import Forest
    from labelspace.models.blend.model import Blend

OTHER_LABELS = "other labels"  # the name of the share of a document's other labels
REJECTED = "rejected for similar documents"  # the name of the share of a person's rejections
# A member's evidence is scaled between these bounds: beyond, words would get shares that are not theirs, or none.
MAX_SCALE = 3.0
MIN_SCALE = 0.05
SMALL = 1e-9  # differences and sums below are taken for 0, and not divided by
OWN, OTHERS, SAME = 0, 1, 2  # the groups of the columns of the second pass; the last are of the label alone
CONTEXT_GROUPS = np.array([OWN, OWN, OTHERS, OWN, OWN, *4 * [OTHERS], SAME, OWN, OWN], np.int32)
FACTORIALS = np.array([float(factorial(n)) for n in range(40)])


class MemberView(NamedTuple):
    """A member and the view that it reads."""

    model: Model
    view: str


def shapley_values(forest: Forest, x: Floats, reference: Floats, players: Ints) -> tuple[Doubles, float, float]:
    """Return the Shapley value of each player, then the log-odds of the reference row and of x."""
    n_players = int(players.max()) + 1
    out = np.empty(n_players + 2)
    nodes = ForestNodes(forest.roots, forest.column, forest.threshold, forest.left, forest.value)
    forest_shapley(x, reference, players, nodes, n_players, FACTORIALS, out)
    base = float(forest.base[0])
    return out[:n_players], base + float(out[-2]), base + float(out[-1])


class BlendEvidence:
    """The evidence for labels of one document."""

    def __init__(self, blend: Blend, views: Views, labels: Ints) -> None:
        self.blend, self.views, self.labels = blend, views, labels
        self.members = [MemberView(*pair) for pair in zip(blend.members_, blend.member_views_, strict=True)]
        self.predicted: MemberTopK = blend.member_topk(views)
        self.table: StackingTable = stacking_table(self.predicted, blend.n_candidates, blend.pairs_.log_counts)
        self.best = shortlist(self.table, blend.first_pass(self.table), blend.pairs_)
        self.further = self._further()

    def _further(self) -> StackingTable | None:
        """Return the labels that are no candidates, with their scores and ranks by the members."""
        others = self.labels[~np.isin(self.labels, self.table.labels)]
        if not len(others):
            return None
        allowed = np.zeros(self.blend.n_labels_, bool)
        allowed[others] = True
        asked = self.blend.member_topk(self.views, int(allowed.sum()), allowed)
        document = np.zeros(1, np.int64)
        return further_table(self.predicted, self.table, asked, document, self.blend.pairs_.log_counts)

    def of_labels(self) -> list[Evidence]:
        """Return the evidence for each label."""
        n = len(self.labels)
        by_member = [self._of_member(member) or [None] * n for member in self.members]
        return list(map(self._of_label, self.labels.tolist(), zip(*by_member, strict=True)))

    def _of_member(self, member: MemberView) -> Sequence[Evidence | None] | None:
        if not isinstance(member.model, Explains):
            return None
        return member.model.explain(member.model.read(view_for(member.model, self.views, member.view)), self.labels)

    def _of_label(self, label: int, by_member: Sequence[Evidence | None]) -> Evidence:
        row = self._row(label)
        by_text = self._text_shares(label, row)
        if by_text is not None:
            log_odds, baseline, shares = by_text
        elif len(self.blend.forest_.roots) == 0:
            scores = row[: len(self.members) * COLUMNS_PER_MEMBER : COLUMNS_PER_MEMBER].astype(np.float64)
            log_odds, baseline = logit(float(scores.mean())), logit(0.0)
            shares = (log_odds - baseline) * scores / max(float(scores.sum()), SMALL)
        else:
            log_odds, baseline, shares = self._member_shares(label, row)
        if len(self.blend.forest_.roots) and self.blend.recalibration_ is not None:
            slope, shift = self.blend.recalibration_.line.tolist()
            log_odds, baseline, shares = slope * log_odds + shift, slope * baseline + shift, slope * shares
        evidence = self._assembled(label, row, log_odds, baseline, shares, by_member)
        change = self._change_by_rejections(label)
        if not change:
            return evidence
        members = [*evidence.members, MemberShare(REJECTED, None, None, change)]
        return replace(evidence, log_odds=evidence.log_odds + change, members=members)

    def _text_shares(self, label: int, row: Floats) -> tuple[float, float, Doubles] | None:
        """Return log-odds, reference and shares of a label without documents; None if the trees judge the label."""
        evidence, has_trees = self.blend.text_evidence_, len(self.blend.forest_.roots) > 0
        if evidence is None or (has_trees and self.blend.pairs_.counts[label]):
            return None
        names = [member.model.name for member in self.members]
        both = evidence.shares(np.stack([row, self._reference(label)]), names)
        log_odds, baseline = (both.sum(axis=1) + evidence.weights[0]).tolist()
        if has_trees and label not in self.table.labels:
            log_odds = min(log_odds, self._highest(label))
        return log_odds, baseline, both[0] - both[1]

    def _change_by_rejections(self, label: int) -> float:
        """Return what the rejections of the label for similar documents add to its log-odds."""
        at = np.flatnonzero(self.table.labels == label)
        if self.blend.rejections_ is None or not len(at):
            return 0.0
        return float(self.blend.rejections_.changes(self.blend.compared(self.views), self.table)[at[0]])

    def _row(self, label: int) -> Floats:
        """Return the label's row of the stacking table, or of the further candidates (step 1)."""
        for table in [self.table, *([] if self.further is None else [self.further])]:
            at = np.flatnonzero(table.labels == label)
            if len(at):
                row: Floats = table.columns[at[0]]
                return row
        return self._reference(label)  # no member lists the label

    def _rank(self, member: int, label: int) -> int | None:
        """Return the rank that a member gives a label, from 0; None if the member does not list the label."""
        ranks = np.flatnonzero(self.predicted.labels[member, 0] == label)
        return int(ranks[0]) if len(ranks) else None

    def _reference(self, label: int) -> Floats:
        """Return the row of a label that no member lists."""
        n = len(self.members)
        row = np.zeros(COLUMNS_PER_MEMBER * n + SHARED_COLUMNS, np.float32)
        row[1 : COLUMNS_PER_MEMBER * n : COLUMNS_PER_MEMBER] = self.predicted.labels.shape[2]
        row[COLUMNS_PER_MEMBER * n] = self.blend.pairs_.log_counts[label]
        return row

    def _member_shares(self, label: int, row: Floats) -> tuple[float, float, Doubles]:
        """Return the log-odds of the label and of the reference, and the share of each member (steps 2 and 3)."""
        n, reference = len(self.members), self._reference(label)
        players = np.repeat(np.arange(n + 1, dtype=np.int32), [*n * [COLUMNS_PER_MEMBER], SHARED_COLUMNS])
        values, before, after = shapley_values(self.blend.forest_, row, reference, players)
        scores = row[: n * COLUMNS_PER_MEMBER : COLUMNS_PER_MEMBER].astype(np.float64)
        by_first = values[:n] + values[n] * scores / max(float(scores.sum()), SMALL)
        context = self._context(label)
        if context is None:  # not among the best of the first pass
            return min(after, self._highest(label)), before, by_first
        empty = np.zeros(N_COLUMNS, np.float32)
        empty[0], empty[1], empty[9] = before, SHORTLIST, reference[-SHARED_COLUMNS]
        (own, _, _), baseline, log_odds = shapley_values(self.blend.second_forest_, context, empty, CONTEXT_GROUPS)
        scale = float(np.clip(own / (after - before), 0.0, MAX_SCALE)) if abs(after - before) > SMALL else 0.0
        return log_odds, baseline, scale * by_first

    def _highest(self, label: int) -> float:
        """Return the log-odds below which a label outside the shortlist, or outside the candidates, stays."""
        scores = self.blend.both_passes(self.table)
        above = scores if label not in self.table.labels else scores[self.best.listed]
        return logit(float(above.min(initial=1.0) * BELOW))

    def _context(self, label: int) -> Floats | None:
        """Return the label's row of the second pass; None if it has none."""
        listed = self.best.listed
        at = np.flatnonzero(self.table.labels[listed] == label)
        if not len(at):
            return None
        row: Floats = self.best.table[at[0]]
        return row

    def _assembled(
        self,
        label: int,
        row: Floats,
        log_odds: float,
        baseline: float,
        shares: Doubles,
        by_member: Sequence[Evidence | None],
    ) -> Evidence:
        """Join the members' evidence, each scaled to the member's share (step 4)."""
        columns: defaultdict[str, list[ColumnShares]] = defaultdict(list)
        phrases: list[PhraseShare] = []
        voters: list[Voter] = []
        path: list[Step] = []
        members = []
        for i, (member, share, evidence) in enumerate(zip(self.members, shares.tolist(), by_member, strict=True)):
            rank = self._rank(i, label)
            score = float(row[COLUMNS_PER_MEMBER * i])
            name = str(Member(member.model.name, member.view))
            members.append(MemberShare(name, score, None if rank is None else rank + 1, share))
            if evidence is None:
                continue
            scale = _scale(share, evidence.difference)
            for part in evidence.columns.values():
                for view, own in self._by_view(member, part):
                    columns[view].append(ColumnShares(own.columns, scale * own.shares))
            phrases += [phrase._replace(share=scale * phrase.share) for phrase in evidence.phrases]
            voters += [voter._replace(share=scale * voter.share, view=member.view) for voter in evidence.voters]
            path += [step._replace(share=scale * step.share) for step in evidence.path]
        members.append(MemberShare(OTHER_LABELS, None, None, log_odds - baseline - float(shares.sum())))
        merged = {view: ColumnShares(*map(np.concatenate, zip(*own, strict=True))) for view, own in columns.items()}
        return Evidence(log_odds, baseline, merged, phrases, voters, path, members)

    def _by_view(self, member: MemberView, part: ColumnShares) -> list[tuple[str, ColumnShares]]:
        """Return the shares of a member's columns by the views that the member's view is joined from."""
        found, first = [], 0
        for view in joined_parts(member.view):
            end = first + self.views.width(view)
            own = (part.columns >= first) & (part.columns < end)
            found.append((view, ColumnShares(part.columns[own] - np.int32(first), part.shares[own])))
            first = end
        return found


def _scale(share: float, difference: float) -> float:
    """Return the factor of a member's evidence, which explains a difference, that makes it the member's share."""
    if abs(difference) < SMALL:
        return MIN_SCALE
    return float(np.clip(share / difference, MIN_SCALE, MAX_SCALE))
