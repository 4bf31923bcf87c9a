"""Weights of classifiers, trained one by one, as a matrix in 8 bits stored by features: three passes over the parts.

The largest weight of each feature says its scale, the number of weights that are not 0 in 8 bits says where its row
starts, and then each weight is put into its place. Nothing but the result and a part at a time is in memory.
"""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.quantize import Int8s
from labelspace.types import Floats, Ints, Longs


@kernel()
def largest_weights(features: Ints, weights: Floats, largest: Floats) -> None:
    """Raise ``largest`` (n_features,) to the absolute values of the weights."""
    for i in range(len(features)):
        largest[features[i]] = max(largest[features[i]], abs(weights[i]))


@kernel()
def count_weights(features: Ints, weights: Floats, scales: Floats, counts: Longs) -> None:
    """Add to ``counts`` (n_features,) the weights that are not 0 in 8 bits."""
    for i in range(len(features)):
        counts[features[i]] += np.rint(weights[i] / scales[features[i]]) != 0.0


@kernel()
def place_weights(
    features: Ints, weights: Floats, sizes: Longs, first: int, scales: Floats, ends: Longs, values: Int8s, nodes: Ints
) -> None:
    """Put the weights of nodes, ``sizes`` of each, at the ``ends`` of their features' rows, which move on.

    ``first`` is the number of the first of these nodes.
    """
    at = 0
    for i in range(len(sizes)):
        for j in range(at, at + sizes[i]):
            feature = features[j]
            value = np.rint(weights[j] / scales[feature])
            if value != 0.0:
                values[ends[feature]] = np.int8(value)
                nodes[ends[feature]] = first + i
                ends[feature] += 1
        at += sizes[i]
