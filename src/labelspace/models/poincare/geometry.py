"""The manifolds that points are learned on: the Poincaré ball, and for comparison Euclidean space and the sphere.

A distance d is a function of one inner product z, so all distances of a batch come from one matrix product. For it,
points are lifted to rows, and ``dual`` turns a lifted row into one to multiply by: z(x, y) = lift(x) . dual(lift(y)).

- Ball: lift(x) is the point of the hyperboloid, ((1+|x|^2) / (1-|x|^2), 2x / (1-|x|^2)). The dual changes the sign of
  all but the first coordinate (Minkowski inner product), and z = cosh d.
- Euclidean space: lift(x) = (|x|^2, -2x, 1), its dual is (1, x, |x|^2), and z = d^2.
- Sphere: lift(x) = x / |x| is its own dual, z is the cosine, and d = 1 - z: a softmax of -d is one of cosines.

``dual`` is linear and its own transpose: the dual of a gradient by a dual row is the gradient by the lifted row.

Documents come as vectors r of any norm, tangent vectors at the origin; labels are points; both are (n, dimension).
All functions work in the precision of their input. A manifold has

    project(r)            the points of documents
    lift_projected(r)     lift(project(r)); ``lift_projected_backward``: the gradient by r, given that by lifted rows
    lift(points)          the lifted rows; ``lift_backward``: the Euclidean gradient by points, given that by them
    dual(lifted)          the rows to multiply lifted rows by
    distances_inplace(z)  turns inner products into distances; returns the derivatives of the distances by z
    riemannian_step       the points after a step on their Euclidean gradient; ``ids`` are the optimizer's rows
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from labelspace.training.optimizers import RowOptimizer
from labelspace.types import Ints

Array: TypeAlias = npt.NDArray[Any]  # float32 in training, float64 in the tests of gradients

MAX_TANGENT_NORM = 3.0  # points have a norm of tanh(3) = 0.995 at most, where float32 still tells points apart
CLIP_MARGIN = 1e-5  # the paper's epsilon: distance from the boundary after clipping
MAX_STEP = 1.0  # of a label point, in hyperbolic length: one batch cannot move a label across the ball
MIN_COSH_EXCESS = 1e-6  # of cosh d over 1: closer points have the derivative at this distance
MIN_SQUARED_DISTANCE = 1e-8  # closer points count as this far apart: the derivative of the root is infinite at 0
MIN_NORM = 1e-9  # of a zero vector, so that one can divide by it


class Euclidean:
    """Euclidean space."""

    geometry = "euclidean"  # its name in ``labelspace.index``

    def project(self, r: Array) -> Array:
        """Return the vectors themselves."""
        return r

    def lift(self, points: Array) -> Array:
        """Return (|x|^2, -2x, 1)."""
        squares = np.einsum("ij,ij->i", points, points)[:, None]
        return np.concatenate([squares, -2 * points, np.ones_like(squares)], axis=1)

    def lift_backward(self, points: Array, gradient: Array) -> Array:
        """Go back through the coordinates |x|^2 and -2x."""
        return np.asarray(2 * gradient[:, :1] * points - 2 * gradient[:, 1:-1])

    lift_projected, lift_projected_backward = lift, lift_backward

    def dual(self, lifted: Array) -> Array:
        """Return (1, x, |x|^2)."""
        return np.concatenate([lifted[:, -1:], lifted[:, 1:-1] / -2, lifted[:, :1]], axis=1)

    def distances_inplace(self, z: Array) -> Array:
        """Take the square root of z, with the derivative 1 / (2 sqrt z)."""
        np.maximum(z, MIN_SQUARED_DISTANCE, out=z)
        np.sqrt(z, out=z)
        return np.asarray(0.5 / z)

    def riemannian_step(self, points: Array, gradient: Array, optimizer: RowOptimizer, ids: Ints, lr: float) -> Array:
        """Add the optimizer's step."""
        return np.asarray(points + optimizer.updates(ids, gradient, lr))


class Sphere:
    """Directions, compared by cosine as in AnnexML (Tagami, 2017); points have norm 1."""

    geometry = "euclidean"  # between points of norm 1, Euclidean distances have the order of cosines

    def project(self, r: Array) -> Array:
        """Return the directions r / |r|."""
        return r / _norms(r)[:, None]

    lift = lift_projected = project

    def lift_backward(self, points: Array, gradient: Array) -> Array:
        """Return the part of the gradient that is orthogonal to x, over |x|."""
        norms = _norms(points)[:, None]
        unit = points / norms
        return np.asarray((gradient - np.einsum("ij,ij->i", unit, gradient)[:, None] * unit) / norms)

    lift_projected_backward = lift_backward

    def dual(self, lifted: Array) -> Array:
        """Return the rows themselves."""
        return lifted

    def distances_inplace(self, z: Array) -> Array:
        """Take 1 - z, with the derivative -1."""
        np.subtract(1, z, out=z)
        return np.full_like(z, -1)

    def riemannian_step(self, points: Array, gradient: Array, optimizer: RowOptimizer, ids: Ints, lr: float) -> Array:
        """Add the optimizer's step, and go back to the sphere."""
        return self.project(points + optimizer.updates(ids, gradient, lr))


class PoincareBall:
    """The Poincaré ball.

    With ``exponential``, documents are projected by the exponential map at the origin, x = tanh(|r|) r/|r|. Otherwise
    by the paper's projection p, with the gradient scaled by the inverse metric.
    """

    geometry = "poincare"

    def __init__(self, exponential: bool = True) -> None:
        self.exponential = exponential

    def project(self, r: Array) -> Array:
        """Return the points of vectors r: norms stay below 1."""
        if not self.exponential:
            return clip_to_ball(r)
        norms = _norms(r)
        return np.asarray(r * (np.tanh(np.minimum(norms, MAX_TANGENT_NORM)) / norms)[:, None])

    def lift_projected(self, r: Array) -> Array:
        """Return (cosh 2s, sinh 2s r/s) with s the norm of r, cut at ``MAX_TANGENT_NORM``."""
        if not self.exponential:
            return self.lift(clip_to_ball(r))
        norms = _norms(r)
        twice = 2 * np.minimum(norms, MAX_TANGENT_NORM)
        return np.concatenate([np.cosh(twice)[:, None], r * (np.sinh(twice) / norms)[:, None]], axis=1)

    def lift_projected_backward(self, r: Array, gradient: Array) -> Array:
        """Go back through the exponential map, or through the points with the inverse metric."""
        if not self.exponential:
            points = clip_to_ball(r)
            return self.lift_backward(points, gradient) * np.square(inverse_conformal_factor(points))
        norms = _norms(r)
        inside = norms < MAX_TANGENT_NORM  # beyond, the point does not depend on the norm
        twice = 2 * np.minimum(norms, MAX_TANGENT_NORM)
        sinh, cosh = np.sinh(twice), np.cosh(twice)
        radial = np.einsum("ij,ij->i", gradient[:, 1:], r) / norms
        by_norm = np.where(inside, 2 * (gradient[:, 0] * sinh + radial * cosh), 0)
        by_direction = radial * sinh / norms
        return np.asarray(((by_norm - by_direction) / norms)[:, None] * r + (sinh / norms)[:, None] * gradient[:, 1:])

    def lift(self, points: Array) -> Array:
        """Return ((1+|x|^2) / (1-|x|^2), 2x / (1-|x|^2))."""
        squares = np.einsum("ij,ij->i", points, points)[:, None]
        return np.asarray(np.concatenate([1 + squares, 2 * points], axis=1) / (1 - squares))

    def lift_backward(self, points: Array, gradient: Array) -> Array:
        """Go back by the quotient rule."""
        inverse = 1 / (1 - np.einsum("ij,ij->i", points, points)[:, None])
        radial = np.einsum("ij,ij->i", gradient[:, 1:], points)[:, None]
        return np.asarray(4 * inverse * inverse * (gradient[:, :1] + radial) * points + 2 * inverse * gradient[:, 1:])

    def dual(self, lifted: Array) -> Array:
        """Change the sign of all but the first coordinate."""
        return np.concatenate([lifted[:, :1], -lifted[:, 1:]], axis=1)

    def distances_inplace(self, z: Array) -> Array:
        """Take arcosh z = log(z + sqrt(z^2 - 1)), with the derivative 1 / sqrt(z^2 - 1)."""
        np.maximum(z, 1 + MIN_COSH_EXCESS, out=z)
        roots = np.sqrt(z * z - 1)
        z += roots
        np.log(z, out=z)
        return np.asarray(np.reciprocal(roots, out=roots))

    def riemannian_step(self, points: Array, gradient: Array, optimizer: RowOptimizer, ids: Ints, lr: float) -> Array:
        """Step along geodesics by Adagrad; by SGD and Adam, as in the paper, with the inverse metric, then clip."""
        factor = inverse_conformal_factor(points)
        if optimizer.name == "adagrad":
            return exponential_map(points, optimizer.updates(ids, gradient * factor, lr))
        if optimizer.name == "sgd":
            return clip_to_ball(points + factor * optimizer.updates(ids, gradient * factor, lr))
        return clip_to_ball(points + np.square(factor) * optimizer.updates(ids, gradient, lr))


Manifold: TypeAlias = Euclidean | Sphere | PoincareBall


def inverse_conformal_factor(points: Array) -> Array:
    """Return (1-|x|^2) / 2: the Euclidean length of a short step of hyperbolic length 1. Shape (n, 1)."""
    return np.asarray((1 - np.einsum("ij,ij->i", points, points)[:, None]) / 2)


def clip_to_ball(points: Array) -> Array:
    """Apply the paper's p, a retraction: points outside the ball go to just inside its boundary."""
    norms = _norms(points)
    scale = np.where(norms >= 1 - CLIP_MARGIN, (1 - CLIP_MARGIN) / norms, 1).astype(points.dtype)
    return np.asarray(scale[:, None] * points)


def exponential_map(points: Array, steps: Array) -> Array:
    """Apply the exponential map at points to steps measured in hyperbolic length; norms are at most tanh(3).

    >>> exponential_map(np.zeros((1, 2)), np.array([[2 * np.arctanh(0.5), 0.0]])).round(3).tolist()
    [[0.462, 0.0]]
    >>> exponential_map(np.zeros((1, 2)), np.array([[2 * np.arctanh(0.25), 0.0]])).round(3).tolist()
    [[0.25, 0.0]]
    """
    norms = _norms(steps)
    added = steps * (np.tanh(np.minimum(norms, MAX_STEP) / 2) / norms)[:, None]
    product = np.einsum("ij,ij->i", points, added)[:, None]
    x, y = (np.einsum("ij,ij->i", rows, rows)[:, None] for rows in (points, added))
    sums = ((1 + 2 * product + y) * points + (1 - x) * added) / (1 + 2 * product + x * y)  # Möbius addition
    return np.asarray(sums * np.minimum(1, np.tanh(MAX_TANGENT_NORM) / _norms(sums)).astype(points.dtype)[:, None])


def _norms(rows: Array) -> Array:
    """Return Euclidean norms, at least ``MIN_NORM``."""
    return np.asarray(np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), MIN_NORM))
