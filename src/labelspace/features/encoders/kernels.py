"""The loops of a transformer that are not matrix products."""

import numpy as np

from labelspace.kernels.compiled import kernel, part
from labelspace.types import Floats, Longs

# So that loops are vectorized: sums in any order, and no check of divisors.
VECTORIZED = {"fastmath": {"reassoc", "contract", "nnan", "nsz"}, "error_model": "numpy"}


@part()
def exp(x: np.float32) -> np.float32:
    """Return e^x of a number of at most 0 to 2e-7 of its value; unlike ``np.exp``, loops with it are vectorized."""
    x = max(x, np.float32(-87.0))
    n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    r = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + np.float32(1.0)
    return np.float32(p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32))


@kernel(**VECTORIZED)
def attend(queries: Floats, keys: Floats, values: Floats, out: Floats) -> None:
    """Write the mean of the values of one text, by attention, for each query: all are (n, heads, dim of a head)."""
    n_tokens, n_heads, dim = keys.shape
    factor = np.float32(1.0 / np.sqrt(dim))
    by_dim, own, scores = (
        np.empty((dim, n_tokens), np.float32),
        np.empty((n_tokens, dim), np.float32),
        np.empty(n_tokens, np.float32),
    )
    for head in range(n_heads):
        for j in range(n_tokens):
            for d in range(dim):
                by_dim[d, j] = keys[j, head, d] * factor
                own[j, d] = values[j, head, d]
        for i in range(len(queries)):
            score_tokens(queries[i, head], by_dim, scores)
            softmax(scores)
            weigh(scores, own, out[i, head])


@kernel(**VECTORIZED)
def score_tokens(query: Floats, by_dim: Floats, scores: Floats) -> None:
    """Write the product of the query and of each column; its length is a multiple of four."""
    for j in range(len(scores)):
        scores[j] = np.float32(0.0)
    for d in range(0, len(query), 4):
        a, b, c, e = query[d], query[d + 1], query[d + 2], query[d + 3]
        first, second, third, fourth = by_dim[d], by_dim[d + 1], by_dim[d + 2], by_dim[d + 3]
        for j in range(len(scores)):
            scores[j] += a * first[j] + b * second[j] + c * third[j] + e * fourth[j]


@kernel(**VECTORIZED)
def softmax(row: Floats) -> None:
    """Replace scores by their softmax."""
    highest = row[0]
    for j in range(len(row)):
        highest = max(highest, row[j])
    for j in range(len(row)):
        row[j] = exp(row[j] - highest)
    total = np.float32(0.0)
    for j in range(len(row)):
        total += row[j]
    inverse = np.float32(1.0) / total
    for j in range(len(row)):
        row[j] *= inverse


@kernel(**VECTORIZED)
def weigh(weights: Floats, rows: Floats, out: Floats) -> None:
    """Write the sum of the rows, each times its weight; four at a time, so that the sums are read and stored less."""
    n, dim = rows.shape
    for d in range(dim):
        out[d] = np.float32(0.0)
    whole = n - n % 4
    for j in range(0, whole, 4):
        a, b, c, e = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        first, second, third, fourth = rows[j], rows[j + 1], rows[j + 2], rows[j + 3]
        for d in range(dim):
            out[d] += a * first[d] + b * second[d] + c * third[d] + e * fourth[d]
    for j in range(whole, n):
        for d in range(dim):
            out[d] += weights[j] * rows[j, d]


@kernel(**VECTORIZED)
def gelu(values: Floats) -> None:
    """Replace x by x times the normal distribution function at x, to 1e-7: Abramowitz and Stegun, 7.1.26."""
    for i in range(len(values)):
        row = values[i]
        for j in range(len(row)):
            x = row[j]
            z = abs(x) * np.float32(0.70710678)
            t = np.float32(1.0) / (np.float32(1.0) + np.float32(0.3275911) * z)
            p = np.float32(1.061405429)
            p = p * t + np.float32(-1.453152027)
            p = p * t + np.float32(1.421413741)
            p = p * t + np.float32(-0.284496736)
            p = p * t + np.float32(0.254829592)
            tail = np.float32(0.5) * p * t * exp(-z * z)
            row[j] = max(x, np.float32(0.0)) - abs(x) * tail


@kernel(**VECTORIZED)
def add_and_normalize(x: Floats, added: Floats, gain: Floats, bias: Floats, eps: float) -> None:
    """Add to x, then give each row mean 0 and variance 1 (plus ``eps``), times ``gain`` plus ``bias``."""
    dim = x.shape[1]
    for i in range(len(x)):
        row, more = x[i], added[i]
        total = np.float32(0.0)
        for j in range(dim):
            row[j] += more[j]
            total += row[j]
        mean = total / np.float32(dim)
        squares = np.float32(0.0)
        for j in range(dim):
            row[j] -= mean
            squares += row[j] * row[j]
        inverse = np.float32(1.0 / np.sqrt(np.float64(squares) / dim + eps))
        for j in range(dim):
            row[j] = row[j] * inverse * gain[j] + bias[j]


@kernel(**VECTORIZED)
def sum_rows(table: Floats, ids: Longs, starts: Longs, out: Floats) -> None:
    """Write the sum of the rows of ``table`` with ``ids[starts[i]:starts[i + 1]]`` to each row of ``out``."""
    dim = table.shape[1]
    for i in range(len(out)):
        total = out[i]
        for j in range(dim):
            total[j] = np.float32(0.0)
        for at in range(starts[i], starts[i + 1]):
            row = table[ids[at]]
            for j in range(dim):
                total[j] += row[j]
