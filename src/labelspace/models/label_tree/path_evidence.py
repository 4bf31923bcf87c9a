"""Why a label tree gives a label its score: the shares of features at every step of the label's path.

1. The score is the mean over trees of p = exp(sum of g(z_n)) over the nodes n of a path, z_n = b_n + sum of w_nf x_f.
2. At a node, feature f has the share w_nf x_f times the slope of g between b_n and z_n: integrated gradients along the
   line from the empty document, in closed form.
3. These add up to log p; see ``models.tree_paths`` for the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from labelspace.kernels.csr_arrays import CsrArrays
from labelspace.kernels.linear_scores import lookup_weights
from labelspace.models.evidence import Evidence, Numbers
from labelspace.models.tree_paths import TreePath, labels_below, log_sigmoid, margin_shares, mean_of_paths, path_to
from labelspace.types import Csr, Doubles, Ints

if TYPE_CHECKING:
    from labelspace.models.label_tree.model import LabelTree


@dataclass
class PathEvidence:
    """The paths to one label in all trees, for one document X (1, n_features)."""

    model: LabelTree
    X: Csr
    label: int
    view: str

    def evidence(self) -> Evidence:
        """Return the evidence for the label (steps 1 to 3)."""
        leaves = np.flatnonzero(self.model.label_ == self.label).tolist()
        paths = [self._path(path_to(self.model.parents_, leaf)) for leaf in leaves]
        return mean_of_paths(paths, len(self.model.roots_), self.X.indices, self.view, self._labels_of)

    def _path(self, nodes: Ints) -> TreePath:
        model = self.model
        weights = np.empty((len(nodes), self.X.nnz))
        known = CsrArrays(model.values_, model.nodes_, model.starts_)
        lookup_weights(self.X.indices, nodes, known, model.scales_, weights)
        parts, b = weights * self.X.data, model.bias_[nodes].astype(np.float64)
        return TreePath(nodes, *margin_shares(self._log_activation, b, b + parts.sum(axis=1), parts))

    def _log_activation(self, margin: Numbers) -> Doubles:
        """Return g of margins: see ``kernels.beam_search.log_activation``."""
        if not self.model.power_of_gap:
            return log_sigmoid(margin)
        return np.asarray(-((np.logaddexp(0.0, 2.0 - 2.0 * margin) / 2.0) ** self.model.power_of_gap))

    def _labels_of(self, node: int) -> Ints:
        return labels_below(self.model.first_child_, self.model.last_child_, self.model.label_, node)
