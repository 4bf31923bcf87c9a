"""Explain the scores of GLaS by the shares of features in z = s phi(x).v + b.

1. The empty document and this one at every layer: before the activation, where the first layer is linear in x.
2. The contribution of a unit to z is linear in its activation. From the last layer to the first, a unit's multiplier
   is the multipliers of the units it feeds, times the weights between them, times the slope of its activation between
   the two documents. For one layer of ReLUs these are integrated gradients.
3. Feature f has the share x_f E_f . m, where E_f is its embedding and m are the multipliers of the first layer.

The length of phi before normalization is taken as that of this document, |h(x)|. The baseline is b, the score where
there is no embedding: the empty document has a small one, of the units' biases alone, and normalized it would be as
long as any. So what these biases add, s v.h(0) / |h(x)|, is the remainder; without them it is 0.
"""

import numpy as np

from labelspace.index import Index
from labelspace.kernels.normalize import MIN_NORM
from labelspace.models.evidence import ColumnShares, Evidence, logit, relu_slopes
from labelspace.models.glas.encoder import Int8Encoder
from labelspace.types import Csr, Doubles, Ints


def label_evidence(
    index: Index, bias_scale: float, encoder: Int8Encoder, normalized: bool, X: Csr, labels: Ints, view: str
) -> list[Evidence]:
    """Return the evidence for the z of some labels in one document X (1, n_features).

    ``index`` has the vectors (s v, b / bias_scale) of the labels.
    """
    document = EncodedDocument(encoder, X)
    norm = max(float(np.linalg.norm(document.output)), float(MIN_NORM)) if normalized else 1.0
    is_known, found = np.isin(labels, index.ids), []
    for label, known in zip(labels.tolist(), is_known.tolist(), strict=True):
        if not known:
            found.append(Evidence(logit(0.0), logit(0.0)))
            continue
        vector = index.vectors([label])[0].astype(np.float64)
        v, b = vector[:-1] / norm, float(vector[-1]) * bias_scale
        shares = ColumnShares(X.indices, document.shares(v))
        found.append(Evidence(float(document.output @ v) + b, b, {view: shares}))
    return found


class EncodedDocument:
    """The empty document and document X (1, n_features) at every layer of the encoder (step 1)."""

    def __init__(self, encoder: Int8Encoder, X: Csr) -> None:
        self.X = X
        scales = encoder.feature_scales[X.indices, None].astype(np.float64)
        self.embeddings = encoder.feature_embeddings[X.indices] * scales
        dim, bias = len(encoder.hidden_bias), encoder.hidden_bias.astype(np.float64)
        self.weights = encoder.dense_weights.reshape(-1, dim, dim).astype(np.float64)  # of each dense layer
        self.unit_slopes: list[Doubles] = []  # of the activation of each layer
        values = np.stack([bias, bias + X.data @ self.embeddings])
        for layer in range(max(len(self.weights), 1)):
            before, after = values
            self.unit_slopes.append(relu_slopes(after, before) if encoder.relu else np.ones(dim))
            values = np.maximum(values, 0) if encoder.relu else values
            if len(self.weights):
                values = values @ self.weights[layer] + encoder.dense_bias[layer * dim : (layer + 1) * dim]
        self.output: Doubles = values[1]  # h(x)

    def shares(self, multipliers: Doubles) -> Doubles:
        """Return the features' shares of the output's product with ``multipliers`` (steps 2 and 3)."""
        for layer in reversed(range(len(self.unit_slopes))):
            if len(self.weights):
                multipliers = self.weights[layer] @ multipliers
            multipliers = multipliers * self.unit_slopes[layer]
        return np.asarray(self.X.data * (self.embeddings @ multipliers))
