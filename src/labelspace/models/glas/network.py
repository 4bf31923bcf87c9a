"""The trained parameters: the document encoder, label embeddings, biases and the scale of the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from labelspace import index, store
from labelspace.kernels.normalize import row_norms
from labelspace.kernels.sparse_layers import adagrad_unit_rows
from labelspace.kernels.threads import run_blocks
from labelspace.models.glas.encoder import Encoder, FixedNumbers, SgdNumbers, update_rows
from labelspace.models.glas.losses import RegularizerGradient
from labelspace.training.epochs import VALIDATION_K, r_precision
from labelspace.training.losses import SampledLabels, log_odds
from labelspace.training.optimizers import AdagradParameter, AdamParameter, SgdParameter
from labelspace.training.replay import Squares
from labelspace.types import Csr, Floats, Ints, Rng, TopK

if TYPE_CHECKING:
    from labelspace.models.glas.hard_negatives import LabelLists

LABEL_BLOCK = 512  # labels per task: their scores of a batch stay in the cache


class Net:
    """All parameters, with the state of their optimizers.

    ``label_embeddings`` (n_labels, dim + 1) have one more column, in which ``write_bias_column`` puts the biases.
    """

    def __init__(
        self, encoder: Encoder, embeddings: Floats, bias: AdagradParameter, log_scale: AdamParameter, normalized: bool
    ) -> None:
        self.encoder, self.label_embeddings, self.bias, self.log_scale = encoder, embeddings, bias, log_scale
        self.normalized = normalized  # label embeddings keep length 1
        self.sgd = isinstance(log_scale, SgdParameter)
        n_squares = 0 if self.sgd else len(embeddings)
        self.label_squares = np.zeros(n_squares, np.float32)  # row-wise Adagrad: sums of squared gradients
        self.lists: LabelLists | None = None  # to search hard negatives in, if any
        self.n_steps = 0  # steps started

    @classmethod
    def random(cls, encoder: Encoder, Y: Csr, scale: float, bias: str, rng: Rng, sgd: bool, normalized: bool) -> Self:
        """Draw label embeddings of length 1; biases start at their ``log_odds``, at ``zero``, or there are ``none``."""
        dim, n_labels = len(encoder.bias.value), Y.shape[1]
        embeddings = np.zeros((n_labels, dim + 1), np.float32)
        for start in range(0, n_labels, LABEL_BLOCK):
            block = rng.standard_normal((min(LABEL_BLOCK, n_labels - start), dim), np.float32)
            embeddings[start : start + LABEL_BLOCK, :-1] = block / row_norms(block)[:, None]
        biases = log_odds(Y) if bias == "log_odds" else np.zeros(n_labels, np.float32)
        log_scale = np.full(1, np.log(scale), np.float32)
        numbers = SgdNumbers if sgd else AdagradParameter
        if bias == "none":
            numbers = FixedNumbers
        scale_parameter = SgdParameter(log_scale) if sgd else AdamParameter(log_scale)
        return cls(encoder, embeddings, numbers(biases), scale_parameter, normalized)

    @property
    def biased(self) -> bool:
        """Return whether labels have biases."""
        return not isinstance(self.bias, FixedNumbers)

    @property
    def scale(self) -> float:
        """s, the factor of inner products."""
        return float(np.exp(self.log_scale.value[0]))

    def arrays(self) -> store.Arrays:
        """Return every array that a step changes, by name, for checkpoints."""
        features = self.encoder.features
        arrays: store.Arrays = {"label_embeddings": self.label_embeddings, "label_squares": self.label_squares}
        arrays |= {"feature_embeddings": features.vectors, "feature_squares": features.squares}
        arrays |= {"unit_squares": features.squared_norms, "bias": self.bias.value, "bias_square": self.bias.square}
        by_adam = {"log_scale": self.log_scale, "hidden_bias": self.encoder.bias, "gain": self.encoder.gain}
        for at, dense in enumerate(self.encoder.dense):
            name = f"dense{at or ''}"
            by_adam |= {name: dense.rows, f"{name}_bias": dense.bias, f"{name}_gain": dense.norm}
        for name, weights in by_adam.items():
            arrays |= {name: weights.value, f"{name}_mean": weights.mean, f"{name}_square": weights.square}
        return arrays if self.lists is None else arrays | self.lists.arrays()

    def squares(self) -> Squares:
        """Return Adagrad's sums of squared gradients, of the weights as they are stored; 0 with SGD."""
        features, none = self.encoder.features, np.zeros(len(self.label_embeddings), np.float32)
        of_features = features.squares
        if features.normalized:  # stored weights are those that are trained, times these factors
            factors = features.unit_scales * self.encoder.gain.value
            of_features = of_features / np.mean(factors * factors)
        of_labels = none if self.sgd else self.label_squares
        return Squares(of_features, of_labels, self.bias.square if len(self.bias.square) else none)

    def is_finite(self) -> bool:
        """Return whether training has not diverged."""
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite([weights.sum() for weights in self.arrays().values()]).all())

    def scores(self, phi: Floats, sampled: SampledLabels) -> Floats:
        """Return the scores z = s phi.v + b of the sampled labels. Shape (batch, len(sampled.ids))."""
        out = np.empty((len(phi), len(sampled.ids)), np.float32)
        scaled = phi * np.float32(self.scale)

        def score(start: int, stop: int) -> None:
            block = out[:, start:stop]
            np.matmul(scaled, self._sampled_embeddings(sampled, start, stop).T, out=block)
            block += self.bias.value[sampled.ids[start:stop]]

        run_blocks(score, len(sampled.ids), LABEL_BLOCK)
        return out

    def update_labels(
        self, score_gradient: Floats, phi: Floats, sampled: SampledLabels, regularizer: RegularizerGradient, rate: float
    ) -> Floats:
        """Update the embeddings and biases of the sampled labels; return the loss' gradient by phi (batch, dim)."""
        ids, regularized, scale = sampled.ids, regularizer.labels, np.float32(self.scale)
        columns = regularized if sampled.covers_all else np.searchsorted(ids[: sampled.n_fixed], regularized)
        phi_gradients = np.empty((-(-len(ids) // LABEL_BLOCK), *phi.shape), np.float32)

        def update(start: int, stop: int) -> None:
            block = score_gradient[:, start:stop]
            np.matmul(block, self._sampled_embeddings(sampled, start, stop), out=phi_gradients[start // LABEL_BLOCK])
            gradient = block.T @ phi
            gradient *= scale
            first, last = np.searchsorted(columns, [start, stop])
            gradient[columns[first:last] - start] += regularizer.of_labels[first:last]
            if self.normalized and not self.sgd:
                adagrad_unit_rows(gradient, ids, start, stop, rate, self.label_embeddings, self.label_squares)
            else:
                squares = None if self.sgd else self.label_squares
                update_rows(gradient, ids[start:stop], rate, self.label_embeddings, squares, self.normalized)
            self.bias.step(block.sum(axis=0), rate, ids[start:stop])

        run_blocks(update, len(ids), LABEL_BLOCK)
        phi_gradient: Floats = phi_gradients.sum(axis=0)  # in one order, whatever the threads did
        phi_gradient *= scale
        return phi_gradient

    def _sampled_embeddings(self, sampled: SampledLabels, start: int, stop: int) -> Floats:
        """The embeddings of a block of the sampled labels; a view where these are all labels."""
        return self.label_embeddings[slice(start, stop) if sampled.covers_all else sampled.ids[start:stop], :-1]

    def write_bias_column(self, norm: float = 1.0) -> float:
        """Write b / bias_scale next to label embeddings of this norm, and return bias_scale.

        The inner product with ``append_bias(s phi, bias_scale)`` is then z. The scale is such that b / bias_scale
        is not much larger than the other coordinates: the index treats all of them alike.
        """
        rms = norm / np.sqrt(self.label_embeddings.shape[1])
        largest = float(np.abs(self.bias.value).max()) if self.biased else norm  # a label may be added with a bias
        bias_scale = max(float(largest / (2 * rms)), 1e-3)
        np.divide(self.bias.value, np.float32(bias_scale), out=self.label_embeddings[:, -1])
        return bias_scale

    def compact(self, labels: Ints) -> Floats:
        """Return the embeddings of some labels, ascending, with their bias column; other embeddings are overwritten."""
        for start in range(0, len(labels), LABEL_BLOCK):  # forward and in place: no second table
            ids = labels[start : start + LABEL_BLOCK]
            self.label_embeddings[start : start + len(ids)] = self.label_embeddings[ids]
        return self.label_embeddings[: len(labels)]

    def validation_score(self, X: Csr, Y: Csr, seen: Ints) -> float:
        """Return the R-precision at 5 of the labels seen in training."""
        return r_precision(self.rank(X, VALIDATION_K, seen), Y)

    def precision_at_1(self, X: Csr, Y: Csr, seen: Ints) -> float:
        """Return P@1 over the documents with labels; 0 without any."""
        labeled = np.flatnonzero(np.diff(Y.indptr))
        return float(Y[labeled, self.rank(X[labeled], 1, seen).labels[:, 0]].mean()) if len(labeled) else 0.0

    def rank(self, X: Csr, k: int, seen: Ints) -> TopK:
        """Return the best k of the labels seen in training, by an exact search."""
        bias_scale = self.write_bias_column()
        queries = append_bias(self.encoder.embed(X) * np.float32(self.scale), bias_scale)
        return index.Exact(self.label_embeddings[seen], seen).search(queries, k)


def append_bias(embeddings: Floats, bias_scale: float) -> Floats:
    """Append a coordinate to document embeddings, by which the bias column of the labels is multiplied."""
    return np.concatenate([embeddings, np.full((len(embeddings), 1), bias_scale, np.float32)], axis=1)
