"""HierarchicalXC on codes, in training: an autoencoder of documents, and a classifier on its code for each node."""

from dataclasses import dataclass

import numpy as np

from labelspace.models.hierarchicalxc.node_targets import NodeTargets
from labelspace.training.autoencoder import SparseDecoder, SparseEncoder
from labelspace.training.losses import sigmoid
from labelspace.training.output_layer import append_ones
from labelspace.training.sparse_layers import Batch, SparseLayer
from labelspace.types import Floats, Ints


@dataclass
class CodeNet:
    """The autoencoder and the node classifiers."""

    encoder: SparseEncoder
    decoder: SparseDecoder
    classifiers: SparseLayer  # (n_nodes, code + 1), the bias last
    targets: NodeTargets
    n_steps: int = 0

    def descend_classifiers(self, code: Floats, rows: Ints, learning_rate: float) -> Floats:
        """Update the classifiers on the cross-entropy, summed over the nodes of a row; the gradient by the code."""
        targets, nodes, ends = self.targets.of_rows(rows)
        inputs = append_ones(code)
        errors = sigmoid(self.classifiers.entry_scores((targets, nodes, ends), inputs)) - targets
        errors /= np.float32(len(rows))
        batch: Batch = (errors, nodes, ends)
        gradient = self.classifiers.embed(batch, np.zeros(inputs.shape[1], np.float32))[:, :-1]
        self.classifiers.backward(batch, inputs, learning_rate)
        return gradient


def init_classifiers(targets: NodeTargets, code_dim: int, prior_bias: bool, rng: np.random.Generator) -> SparseLayer:
    """Random weights; biases at the log-odds of each node, or at 0."""
    classifiers = SparseLayer(rng.standard_normal((len(targets.tree), code_dim + 1), np.float32))
    classifiers.vectors *= np.float32(code_dim**-0.5)
    classifiers.vectors[:, -1] = targets.log_odds() if prior_bias else 0
    return classifiers
