"""Logistic regression with few inputs, regularized towards known weights."""

import numpy as np

from labelspace.training.losses import sigmoid
from labelspace.types import Doubles, Floats

NEWTON_STEPS = 30  # a few are enough; the bound ends a bad case
TOLERANCE = 1e-9  # of a step


def fit_logistic(X: Doubles, right: Floats, prior: Doubles, precision: float = 1.0) -> Doubles:
    """Return the weights of inputs X (n, d) by Newton's method; ``precision`` is that of the prior weights.

    >>> X = np.stack([np.ones(200), np.repeat([-1.0, 1.0], 100)], axis=1)
    >>> fit_logistic(X, np.arange(200) % 10 < np.repeat([2, 8], 100), np.zeros(2)).round(1).tolist()
    [0.0, 1.3]
    """

    def loss(w: Doubles) -> float:
        z = X @ w
        return float((np.logaddexp(0.0, z) - right * z).sum() + precision * ((w - prior) ** 2).sum() / 2)

    w, before = prior.copy(), loss(prior)
    for _ in range(NEWTON_STEPS):
        p = sigmoid(X @ w)
        gradient = X.T @ (right - p) - precision * (w - prior)
        hessian = (X * (p * (1 - p))[:, None]).T @ X + precision * np.eye(len(w))
        step = np.linalg.solve(hessian, gradient)
        after = loss(w + step)
        while after > before and np.abs(step).max() > TOLERANCE:  # a long step may overshoot
            step /= 2
            after = loss(w + step)
        if np.abs(step).max() <= TOLERANCE:
            break
        w, before = w + step, after
    return w
