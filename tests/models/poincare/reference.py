"""The paper's formulas, for NumPy and for torch, and a model that is trained in a moment."""

import numpy as np
import pytest

from labelspace.models.poincare.geometry import Euclidean, PoincareBall, Sphere
from labelspace.models.poincare.model import Poincare

BALL, CLIPPED, EUCLIDEAN, SPHERE = PoincareBall(), PoincareBall(exponential=False), Euclidean(), Sphere()
MANIFOLDS = pytest.mark.parametrize("manifold", [BALL, EUCLIDEAN, SPHERE], ids=["ball", "euclidean", "sphere"])


def quick(**params):
    """A small model, also with settings that have no effect with the others."""
    return Poincare().set_params(**{"embedding_dim": 8, "epochs": 3, **params})


def project(manifold, r, xp=np):
    """The points of document vectors r."""
    if isinstance(manifold, Euclidean):
        return r
    norms = xp.sqrt((r * r).sum(1))[:, None]
    return r / norms if isinstance(manifold, Sphere) else xp.tanh(norms) * r / norms


def distances(manifold, one, other, xp=np):
    """All distances between two sets of points."""
    if isinstance(manifold, Sphere):
        return 1 - project(manifold, one, xp) @ project(manifold, other, xp).T
    squares = ((one[:, None] - other[None]) ** 2).sum(2)
    if isinstance(manifold, Euclidean):
        return xp.sqrt(squares)
    gaps = (1 - (one * one).sum(1))[:, None] * (1 - (other * other).sum(1))[None]
    return xp.arccosh(1 + 2 * squares / gaps)


def finite_differences(function, at, step=1e-6):
    """Central differences of a number by every entry of an array."""
    gradient = np.empty_like(at)
    for entry in np.ndindex(at.shape):
        values = []
        for sign in (1, -1):
            shifted = at.copy()
            shifted[entry] += sign * step
            values.append(float(function(shifted)))
        gradient[entry] = (values[0] - values[1]) / (2 * step)
    return gradient


def close(ours, expected, rtol=1e-6):
    """Whether arrays are equal up to a share of their largest entry."""
    return np.allclose(ours, expected, rtol=rtol, atol=rtol * np.abs(expected).max())
