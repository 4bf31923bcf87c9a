"""The objective of one training step as the paper writes it, in float64; ``xp`` is numpy or torch.

``w`` has the weights: E, c, g feature embeddings, bias and gain of the first layer; R0, c0, g0, R1, ... of the dense
layers; V, b label embeddings and biases; log_s. ``drawn`` has what the step sampled.
"""

import numpy as np
import scipy.sparse as sp

from labelspace.training.sparse_layers import INIT_STD
from tests.models.glas.cases import similarities_by_definition


def objective(w, drawn, model, xp):
    sampled = drawn["sampled"]
    ids = sampled.ids.astype(np.int64)
    phi, V = embeddings(w, drawn["activations"], model, xp), w["V"]
    if model.normalize_label_embeddings:
        V = V / row_norms(V, xp)
    z = xp.exp(w["log_s"]) * (phi @ V[ids].T) + w["b"][ids]
    labeled = np.diff(sampled.indptr) > 0
    labels = ids[sampled.columns[drawn["positives"][labeled]]]
    if not model.repeat_labels:
        labels = np.unique(labels)
    loss = {"bce": bce, "softmax": softmax, "margin": margin}[model.loss](z, drawn, model, xp)
    return loss / len(phi) + model.reg_weight * regularizer(phi, V[labels], labels, drawn["Y"], model, xp)


def embeddings(w, activations, model, xp):
    E, n_features = w["E"], len(w["E"])
    if model.weight_norm:
        E = E / xp.sqrt((E * E).sum(0)) * (INIT_STD * n_features**0.5) * w["g"]
    X = sp.csr_matrix(activations.inputs, shape=(len(activations.embeddings), n_features)).toarray()
    hidden = as_float64(X, xp) @ E + w["c"]
    for at in range(max(model.n_layers - 1, 1)):
        if model.activation == "relu":
            hidden = hidden * (hidden > 0)
        kept = as_float64(activations.masks[at] > 0, xp)  # which units were dropped is random
        hidden = hidden * kept / (1 - model.dropout)
        if model.n_layers > 1:
            R = w[f"R{at}"]
            R = R / row_norms(R, xp) * w[f"g{at}"] if model.weight_norm else R
            hidden = hidden @ R.T + w[f"c{at}"]
    return hidden / row_norms(hidden, xp) if model.normalize_document_embeddings else hidden


def bce(z, drawn, model, xp):
    return (label_weights(drawn, xp) * xp.logaddexp(0 * z, z) - as_float64(is_true(drawn), xp) * z).sum()


def softmax(z, drawn, model, xp):
    """Rows without labels have no loss."""
    true = drawn["Y_batch"].copy()
    some = np.flatnonzero(true.any(axis=1))
    if model.positives == "one":
        true[:] = 0
        for row in some:
            true[row, drawn["sampled"].ids[drawn["sampled"].columns[drawn["positives"][row]]]] = 1
    shares = (true / np.maximum(true.sum(axis=1, keepdims=True), 1))[some][:, drawn["sampled"].ids]
    exps = (label_weights(drawn, xp) * xp.exp(z[some])).sum(1)
    return (xp.log(exps) - (as_float64(shares, xp) * z[some]).sum(1)).sum()


def margin(z, drawn, model, xp):
    """Eq. 1 for one true label per document or for all, and all of the wrong ones, or the mean over the hardest."""
    total, plain = 0.0, z if xp is np else z.detach().numpy()
    sampled = drawn["sampled"]
    for row in np.flatnonzero(drawn["Y_batch"].any(axis=1)):
        positives = [sampled.columns[drawn["positives"][row]]]
        if model.positives == "all":
            positives = sampled.columns[sampled.indptr[row] : sampled.indptr[row + 1]]
        wrong, share = np.flatnonzero(is_true(drawn)[row] == 0), 1.0
        if model.pairs == "hardest":
            wrong, share = wrong[np.argsort(-plain[row, wrong])[: model.n_hardest]], 1 / model.n_hardest
        for y in positives:
            for other in wrong:
                loss = z[row, other] - z[row, y] + model.margin
                total = total + loss * (loss > 0) * share
    return total


def regularizer(phi, V, labels, Y, model, xp):
    """Eq. 3, eq. 2, eq. 4, or the mean square of the inner products of documents and labels."""
    if model.regularizer in ("glas", "laplacian"):
        U = as_float64(similarities_by_definition(Y, model.similarity)[np.ix_(labels, labels)], xp)
        if model.regularizer == "glas":
            return ((V @ V.T - U) ** 2).mean()
        return (((V[:, None] - V[None]) ** 2).sum(2) * U).mean()
    if model.regularizer == "spread_out":
        return ((V @ V.T) ** 2).mean()
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
