"""Two spaces to learn points in: the Poincaré ball, and flat space as its twin.

A distance is found from one inner product z, so a batch of distances is a product of matrices. Points are lifted to
rows for it, and ``flip`` turns a row into its partner: z of x and y is lift(x) . flip(lift(y)).

- In the ball the lifted row is the point of the hyperboloid, ((1+|x|^2) / (1-|x|^2), 2x / (1-|x|^2)), and its partner
  has the other sign from the second place on; z = cosh d.
- In flat space it is (|x|^2, -2x, 1), and its partner (1, x, |x|^2); z = d^2.

``flip`` is linear and its own transpose: a gradient by a partner is flipped to be one by the lifted row.

Documents come as vectors r of any length, which the tangent space at the origin takes in; labels are points of the
space. All of it works in the precision that it is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from labelspace.training.optimizers import RowOptimizer
from labelspace.types import Ints

Rows: TypeAlias = npt.NDArray[Any]  # float32 in training, float64 in the tests of gradients

RADIUS = 3.0  # the longest tangent vector: points have a norm of tanh(3) = 0.995 at most, which float32 serves well
CLIPPED = 1e-5  # the paper's epsilon: how far from the boundary p leaves a point
LONGEST_STEP = 1.0  # of a label, in hyperbolic length
LEAST_COSH = 1e-6  # above 1: nearer points have the slope of these
LEAST_SQUARE = 1e-8
TINY = 1e-9


class Space(ABC):
    """What a geometry must say."""

    @abstractmethod
    def place(self, r: Rows) -> Rows:
        """The points of documents with vectors r (n, dimension)."""

    @abstractmethod
    def lift_vectors(self, r: Rows) -> Rows:
        """The lifted rows of those points."""

    @abstractmethod
    def vectors_back(self, r: Rows, gradient: Rows) -> Rows:
        """The gradient by r of what has this one by the lifted rows."""

    @abstractmethod
    def lift(self, points: Rows) -> Rows:
        """The lifted rows of points (n, dimension)."""

    @abstractmethod
    def back(self, points: Rows, gradient: Rows) -> Rows:
        """The gradient by points of what has this one by their lifted rows."""

    @abstractmethod
    def flip(self, lifted: Rows) -> Rows:
        """The partners of lifted rows."""

    @abstractmethod
    def distances(self, z: Rows) -> Rows:
        """Turn products into distances, in place; their slopes, the derivatives by z, are returned."""

    @abstractmethod
    def move(self, points: Rows, gradient: Rows, optimizer: RowOptimizer, ids: Ints, rate: float) -> Rows:
        """The points (n, dimension) after a step on the gradient by them; ``ids`` is how the optimizer knows them."""


class Flat(Space):
    """Euclidean space."""

    def place(self, r: Rows) -> Rows:
        """The vectors as they are."""
        return r

    def lift_vectors(self, r: Rows) -> Rows:
        """(|x|^2, -2x, 1)."""
        return self.lift(r)

    def vectors_back(self, r: Rows, gradient: Rows) -> Rows:
        """As for points."""
        return self.back(r, gradient)

    def lift(self, points: Rows) -> Rows:
        """(|x|^2, -2x, 1)."""
        squares = np.einsum("ij,ij->i", points, points)[:, None]
        return np.concatenate([squares, -2 * points, np.ones_like(squares)], axis=1)

    def back(self, points: Rows, gradient: Rows) -> Rows:
        """By the first place and those of x."""
        by_point: Rows = 2 * gradient[:, :1] * points - 2 * gradient[:, 1:-1]
        return by_point

    def flip(self, lifted: Rows) -> Rows:
        """(1, x, |x|^2)."""
        return np.concatenate([lifted[:, -1:], lifted[:, 1:-1] / -2, lifted[:, :1]], axis=1)

    def distances(self, z: Rows) -> Rows:
        """The root of z."""
        np.maximum(z, LEAST_SQUARE, out=z)
        np.sqrt(z, out=z)
        slopes: Rows = 0.5 / z
        return slopes

    def move(self, points: Rows, gradient: Rows, optimizer: RowOptimizer, ids: Ints, rate: float) -> Rows:
        """Straight on."""
        moved: Rows = points + optimizer.steps(ids, gradient, rate)
        return moved


class Ball(Space):
    """The Poincaré ball.

    ``exponential`` places documents by the exponential map at the origin, x = tanh(|r|) r/|r|. Otherwise by the
    paper's projection p, with its gradient scaled by the inverse of the metric.
    """

    def __init__(self, exponential: bool = True) -> None:
        self.exponential = exponential

    def place(self, r: Rows) -> Rows:
        """The points of vectors r: norms stay below 1."""
        if not self.exponential:
            return clipped(r)
        sizes = _sizes(r)
        placed: Rows = r * (np.tanh(np.minimum(sizes, RADIUS)) / sizes)[:, None]
        return placed

    def lift_vectors(self, r: Rows) -> Rows:
        """(cosh 2s, sinh 2s r/s) with the length s of r, which counts up to ``RADIUS``."""
        if not self.exponential:
            return self.lift(clipped(r))
        sizes = _sizes(r)
        twice = 2 * np.minimum(sizes, RADIUS)
        return np.concatenate([np.cosh(twice)[:, None], r * (np.sinh(twice) / sizes)[:, None]], axis=1)

    def vectors_back(self, r: Rows, gradient: Rows) -> Rows:
        """Through the exponential map; or by the points, scaled."""
        if not self.exponential:
            points = clipped(r)
            return self.back(points, gradient) * np.square(frame(points))
        sizes = _sizes(r)
        inside = sizes < RADIUS  # beyond, the length no longer counts
        twice = 2 * np.minimum(sizes, RADIUS)
        sinh, cosh = np.sinh(twice), np.cosh(twice)
        along = np.einsum("ij,ij->i", gradient[:, 1:], r) / sizes
        by_size = np.where(inside, 2 * (gradient[:, 0] * sinh + along * cosh), 0)
        by_turn = along * sinh / sizes
        by_vector: Rows = ((by_size - by_turn) / sizes)[:, None] * r + (sinh / sizes)[:, None] * gradient[:, 1:]
        return by_vector

    def lift(self, points: Rows) -> Rows:
        """((1+|x|^2) / (1-|x|^2), 2x / (1-|x|^2))."""
        squares = np.einsum("ij,ij->i", points, points)[:, None]
        lifted: Rows = np.concatenate([1 + squares, 2 * points], axis=1) / (1 - squares)
        return lifted

    def back(self, points: Rows, gradient: Rows) -> Rows:
        """The Euclidean gradient by the points."""
        over = 1 / (1 - np.einsum("ij,ij->i", points, points)[:, None])
        along = np.einsum("ij,ij->i", gradient[:, 1:], points)[:, None]
        by_point: Rows = 4 * over * over * (gradient[:, :1] + along) * points + 2 * over * gradient[:, 1:]
        return by_point

    def flip(self, lifted: Rows) -> Rows:
        """The other sign from the second place on."""
        return np.concatenate([lifted[:, :1], -lifted[:, 1:]], axis=1)

    def distances(self, z: Rows) -> Rows:
        """Arcosh z = log(z + sqrt(z^2 - 1)), with the slope 1 / sqrt(z^2 - 1)."""
        np.maximum(z, 1 + LEAST_COSH, out=z)
        roots = np.sqrt(z * z - 1)
        z += roots
        np.log(z, out=z)
        slopes: Rows = np.reciprocal(roots, out=roots)
        return slopes

    def move(self, points: Rows, gradient: Rows, optimizer: RowOptimizer, ids: Ints, rate: float) -> Rows:
        """Along geodesics; or, as in the paper, straight on by the inverse of the metric and back into the ball."""
        lengths = frame(points)
        if optimizer.form == "adagrad":
            return moved(points, optimizer.steps(ids, gradient * lengths, rate))
        if optimizer.form == "sgd":
            return clipped(points + lengths * optimizer.steps(ids, gradient * lengths, rate))
        return clipped(points + np.square(lengths) * optimizer.steps(ids, gradient, rate))


def frame(points: Rows) -> Rows:
    """(1-|x|^2) / 2: the length in the ball's coordinates of a step of hyperbolic length 1. Shape (n, 1)."""
    halves: Rows = (1 - np.einsum("ij,ij->i", points, points)[:, None]) / 2
    return halves


def clipped(points: Rows) -> Rows:
    """The paper's p: what is outside of the ball is put just inside."""
    sizes = _sizes(points)
    inside: Rows = np.where(sizes >= 1 - CLIPPED, (1 - CLIPPED) / sizes, 1).astype(points.dtype)[:, None] * points
    return inside


def moved(points: Rows, steps: Rows) -> Rows:
    """The exponential map at points, for steps whose length is hyperbolic; none goes beyond ``RADIUS``.

    >>> moved(np.zeros((1, 2)), np.array([[2 * np.arctanh(0.5), 0.0]])).round(3).tolist()
    [[0.462, 0.0]]
    >>> moved(np.zeros((1, 2)), np.array([[2 * np.arctanh(0.25), 0.0]])).round(3).tolist()
    [[0.25, 0.0]]
    """
    sizes = _sizes(steps)
    across = steps * (np.tanh(np.minimum(sizes, LONGEST_STEP) / 2) / sizes)[:, None]
    product = np.einsum("ij,ij->i", points, across)[:, None]
    x, y = (np.einsum("ij,ij->i", rows, rows)[:, None] for rows in (points, across))
    sums = ((1 + 2 * product + y) * points + (1 - x) * across) / (1 + 2 * product + x * y)  # Möbius addition
    sizes = _sizes(sums)
    inside: Rows = sums * np.minimum(1, np.tanh(RADIUS) / sizes).astype(points.dtype)[:, None]
    return inside


def _sizes(rows: Rows) -> Rows:
    """Euclidean lengths, never quite 0."""
    sizes: Rows = np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), TINY)
    return sizes
