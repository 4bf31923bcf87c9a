"""Why a label tree gives a label its score: the shares of features at every step of the label's path.

1. The score is the mean over trees of p = exp(sum of g(z_n)) over the nodes n of a path, z_n = b_n + sum of w_nf x_f.
2. At a node, feature f has the share w_nf x_f times the slope of g between b_n and z_n: integrated gradients along the
   line from the empty document, in closed form.
3. These add up to log p. The log-odds of the mean rise with every log p, so that all shares of a tree are multiplied
   with the slope of that function between the empty document and this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labelspace.kernels.weight_lookup import lookup_weights
from labelspace.models.evidence import ColumnShares, Evidence, Numbers, Step, logit, logit_of_log, slopes
from labelspace.types import Csr, Doubles, Ints

if TYPE_CHECKING:
    from labelspace.models.label_tree.model import LabelTree

SHOWN_LABELS = 3  # below a node, that an explanation names
STEP = 1e-6  # for a slope at one point
LEAST_LOG = -700.0  # of a score: its exponential is still above 0


@dataclass
class PathEvidence:
    """The paths to one label in all trees, for one document X (1, n_features)."""

    model: LabelTree
    X: Csr
    label: int
    view: str

    def evidence(self) -> Evidence:
        """Steps 1 to 3."""
        found = [self._tree(nodes) for nodes in self._paths()]
        if not found:  # the label had no training documents
            return Evidence(logit(0.0), logit(0.0))
        n = len(self.model.roots_)
        sums = np.maximum([logs.sum(axis=1) for _, logs, _ in found], LEAST_LOG)  # (trees, 2)
        before, after = np.exp(sums.T) / n
        log_odds, baseline = (logit_of_log(float(np.log(p.sum()))) for p in (after, before))
        # of the log-odds by the mean p, and of the mean by each log p
        at_once = after.sum() * (1 - min(after.sum(), 1 - STEP))
        outer = slopes(np.array(log_odds), np.array(baseline), after.sum(), before.sum(), 1 / max(at_once, STEP))
        inner = slopes(after, before, np.log(after), np.log(before), before)
        shares, path = np.zeros(self.X.nnz), []
        for (nodes, logs, by_node), slope in zip(found, inner, strict=True):
            shares += outer * slope * by_node.sum(axis=0)
            by_step = outer * slope * by_node.sum(axis=1)
            path += [self._step(*step) for step in zip(nodes.tolist(), logs[1], by_step, strict=True)]
        return Evidence(log_odds, baseline, {self.view: ColumnShares(self.X.indices, shares)}, path=path)

    def _paths(self) -> list[Ints]:
        """The nodes from below the root to each leaf of the label."""
        paths = []
        for leaf in np.flatnonzero(self.model.label_ == self.label).tolist():
            nodes, node = [], leaf
            while self.model.parents_[node] >= 0:
                nodes.append(node)
                node = int(self.model.parents_[node])
            paths.append(np.array(nodes[::-1], np.int32))
        return paths

    def _tree(self, nodes: Ints) -> tuple[Ints, Doubles, Doubles]:
        """The nodes, their g for the empty document and for this one (2, nodes), and the shares (nodes, features)."""
        model = self.model
        weights = np.empty((len(nodes), self.X.nnz))
        lookup_weights(self.X.indices, nodes, model.values_, model.nodes_, model.starts_, model.scales_, weights)
        parts, b = weights * self.X.data, model.bias_[nodes].astype(np.float64)
        z = b + parts.sum(axis=1)
        before, after = self._log_activation(b), self._log_activation(z)
        at_b = (self._log_activation(b + STEP) - before) / STEP
        return nodes, np.stack([before, after]), parts * slopes(after, before, z, b, at_b)[:, None]

    def _log_activation(self, margin: Numbers) -> Doubles:
        """g: see ``kernels.beam_search.log_activation``."""
        if not self.model.power_of_gap:
            return np.asarray(-np.logaddexp(0.0, -margin))
        return np.asarray(-((np.logaddexp(0.0, 2.0 - 2.0 * margin) / 2.0) ** self.model.power_of_gap))

    def _step(self, node: int, log_probability: float, share: float) -> Step:
        below, nodes = [], np.array([node])
        while len(nodes):  # the children of neighboring nodes are neighbors
            inner = nodes[self.model.label_[nodes] < 0]
            below.append(self.model.label_[nodes[self.model.label_[nodes] >= 0]])
            ends = (self.model.first_child_[inner[:1]], self.model.last_child_[inner[-1:]])
            nodes = np.arange(*map(int, map(np.sum, ends)))
        labels = np.concatenate(below)
        return Step(labels[:SHOWN_LABELS], len(labels), float(log_probability), float(share))
