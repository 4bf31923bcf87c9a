"""The network of NeuralXC in training: two autoencoders, the regressor, and the loss of the output decoder."""

from dataclasses import dataclass

import numpy as np

from labelspace.kernels.losses import subtract_positives
from labelspace.kernels.sparse_layers import subtract_label_block
from labelspace.training.autoencoder import LearningRates, SparseDecoder, SparseEncoder, TrainingPhase
from labelspace.training.dense_layers import MLP
from labelspace.training.losses import SampledLabels, sigmoid_inplace, squared_error_gradient
from labelspace.training.output_layer import OutputLayer, SampledOutputLayer
from labelspace.types import Csr, Floats, Ints


@dataclass(frozen=True)
class OutputLoss:
    """The loss of the scores that psi_o gives a batch: the last two terms of eq. 1.

    The rows of scores come from the codes of documents, if the phase classifies, and then from the codes of label sets.
    """

    Y: Csr
    rows: Ints  # the documents of the batch
    sampled: SampledLabels | None  # the labels to train on; None for all
    phase: TrainingPhase
    mean: bool  # over labels, rather than the sum

    def to_gradient(self, scores: Floats, start: int) -> None:
        """Turn the scores of the labels from ``start`` on into the gradient of the loss by them, in place."""
        n_documents = len(self.rows) if self.phase.classify else 0
        sigmoid_inplace(scores)
        of_documents, of_label_sets = scores[:n_documents], scores[n_documents:]
        probabilities = of_label_sets.copy()
        for part in (of_documents, of_label_sets):
            if not len(part):
                continue
            if self.sampled is None:
                subtract_label_block(self.Y.indices, self.Y.indptr, self.rows, start, part)
            else:
                subtract_positives(self.sampled.columns, self.sampled.indptr, 0, False, part)
        squared_error_gradient(probabilities, of_label_sets)
        of_label_sets *= np.float32(2 * self.phase.beta)
        if self.sampled is not None and self.sampled.weights is not None:
            scores *= self.sampled.weights
        scores *= np.float32(1 / len(self.rows) / (self.Y.shape[1] if self.mean else 1))


@dataclass
class NeuralXCNet:
    """The encoders, decoders and the regressor of eq. 1."""

    phi_i: SparseEncoder
    psi_i: SparseDecoder
    f: MLP
    phi_o: SparseEncoder
    psi_o: MLP  # without the output layer
    output: OutputLayer | SampledOutputLayer  # the last layer of psi_o
    n_steps: int = 0
    n_classifier_steps: int = 0  # steps that update f: Adam counts the steps of what it updates

    def descend_psi_o(self, codes: Floats, loss: OutputLoss, rates: LearningRates) -> Floats:
        """Update psi_o on the codes of documents and of label sets, in this order; return the gradient by the codes."""
        values = self.psi_o.forward(codes)
        if isinstance(self.output, SampledOutputLayer):
            ids = np.zeros(0, np.int32) if loss.sampled is None else loss.sampled.ids
            gradient = self.output.backward(values[-1], ids, loss.to_gradient, rates.sparse)
        else:
            gradient = self.output.backward(values[-1], loss.to_gradient, rates.dense, rates.n_steps)
        return self.psi_o.backward(values, gradient, rates.dense, rates.n_steps)
