"""The objective of one training step as the paper writes it, in float64; ``xp`` is numpy or torch.

``w`` has the weights: E, c, g feature embeddings, bias and gain of the first layer; R, c2, g2 of the dense layer; V, b
label embeddings and biases; log_s. ``drawn`` has what the step sampled.
"""

import numpy as np
import scipy.sparse as sp

from labelspace.training.sparse_layers import INIT_STD
from tests.models.glas.cases import similarities_by_definition


def objective(w, drawn, model, xp):
    sampled = drawn["sampled"]
    ids = sampled.ids.astype(np.int64)
    phi, V = embeddings(w, drawn["activations"], model, xp), w["V"] / row_norms(w["V"], xp)
    z = xp.exp(w["log_s"]) * (phi @ V[ids].T) + w["b"][ids]
    labeled = np.diff(sampled.indptr) > 0
    labels = np.unique(ids[sampled.columns[drawn["positives"][labeled]]])
    loss = {"bce": bce, "softmax": softmax, "margin": margin}[model.loss](z, drawn, model, xp)
    return loss / len(phi) + model.reg_weight * regularizer(phi, V[labels], labels, drawn["Y"], model, xp)


def embeddings(w, activations, model, xp):
    E, n_features = w["E"], len(w["E"])
    if model.weight_norm:
        E = E / xp.sqrt((E * E).sum(0)) * (INIT_STD * n_features**0.5) * w["g"]
    X = sp.csr_matrix(activations.inputs, shape=(len(activations.embeddings), n_features)).toarray()
    hidden = as_float64(X, xp) @ E + w["c"]
    if model.activation == "relu":
        hidden = hidden * (hidden > 0)
    hidden = hidden * as_float64(activations.mask > 0, xp) / (1 - model.dropout)  # which units were dropped is random
    if model.n_layers == 2:
        R = w["R"] / row_norms(w["R"], xp) * w["g2"] if model.weight_norm else w["R"]
        hidden = hidden @ R.T + w["c2"]
    return hidden / row_norms(hidden, xp)


def bce(z, drawn, model, xp):
    return (label_weights(drawn, xp) * xp.logaddexp(0 * z, z) - as_float64(is_true(drawn), xp) * z).sum()


def softmax(z, drawn, model, xp):
    """Rows without labels have no loss."""
    some = np.flatnonzero(drawn["Y_batch"].any(axis=1))
    shares = as_float64(is_true(drawn)[some] / drawn["Y_batch"][some].sum(axis=1, keepdims=True), xp)
    return (xp.log((label_weights(drawn, xp) * xp.exp(z[some])).sum(1)) - (shares * z[some]).sum(1)).sum()


def margin(z, drawn, model, xp):
    """Eq. 1 for one true label per document, and the hardest of the wrong ones."""
    total, plain = 0.0, z if xp is np else z.detach().numpy()
    for row in np.flatnonzero(drawn["Y_batch"].any(axis=1)):
        positive = z[row, drawn["sampled"].columns[drawn["positives"][row]]]
        wrong = np.flatnonzero(is_true(drawn)[row] == 0)
        for i in wrong[np.argsort(-plain[row, wrong])[: model.n_hardest]]:
            loss = z[row, i] - positive + model.margin
            total = total + loss * (loss > 0) / model.n_hardest
    return total


def regularizer(phi, V, labels, Y, model, xp):
    """Eq. 3, eq. 2, or the mean square of the inner products of documents and labels."""
    if model.regularizer == "glas":
        U = similarities_by_definition(Y, model.similarity)[np.ix_(labels, labels)]
        return ((V @ V.T - as_float64(U, xp)) ** 2).sum() / len(labels) ** 2
    if model.regularizer == "spread_out":
        return ((V @ V.T) ** 2).sum() / len(labels) ** 2
    return ((phi @ V.T) ** 2).mean() if model.regularizer == "gravity" else 0.0


def is_true(drawn):
    return drawn["Y_batch"][:, drawn["sampled"].ids]


def label_weights(drawn, xp):
    """The number of labels that each sampled one represents."""
    sampled = drawn["sampled"]
    return as_float64(np.ones(len(sampled.ids)) if sampled.weights is None else sampled.weights, xp)


def row_norms(rows, xp):
    return xp.sqrt((rows * rows).sum(1))[:, None]


def as_float64(array, xp):
    return xp.asarray(np.asarray(array, np.float64))
