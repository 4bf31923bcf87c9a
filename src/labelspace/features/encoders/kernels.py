"""The loops of a transformer that are not matrix products."""

import numpy as np

from labelspace.kernels.compiled import kernel, part
from labelspace.types import Floats, Longs

LOG2_E = np.float32(1.44269504)
LN_2 = (np.float32(0.693359375), np.float32(-2.12194440e-4))  # in two parts, so that the difference is exact


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
    return p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


@kernel(fastmath={"reassoc", "contract", "nnan", "nsz"})
def softmax_rows(scores: Floats, scale: float) -> None:
    """Replace each row by the softmax of its products times ``scale``."""
    factor = np.float32(scale)
    for i in range(scores.shape[0]):
        row = scores[i]
        highest = row[0]
        for j in range(len(row)):
            highest = max(highest, row[j])
        total = np.float32(0.0)
        for j in range(len(row)):
            row[j] = exp((row[j] - highest) * factor)
        for j in range(len(row)):
            total += row[j]
        inverse = np.float32(1.0) / total
        for j in range(len(row)):
            row[j] *= inverse


@kernel(fastmath={"reassoc", "contract", "nnan", "nsz"})
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
            row[j] = x * (np.float32(1.0) - tail if x >= np.float32(0.0) else tail)


@kernel(fastmath={"reassoc", "contract", "nnan", "nsz"})
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


@kernel(fastmath={"reassoc", "contract"})
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
