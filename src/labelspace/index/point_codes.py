"""Points in few bits, from which ``kernels/hyperbolic_shortlist.py`` estimates their keys."""

import numpy as np

from labelspace.index.quantized import Quantized
from labelspace.kernels.hyperbolic_search import Points, from_blocks
from labelspace.kernels.hyperbolic_shortlist import CODE_BITS, PointCodes


def encode_points(points: Points, seed: int) -> PointCodes:
    """The codes of one or more points, with the maps and levels of ``Quantized``."""
    rows, a = from_blocks(points.blocks, len(points.ids)), points.weights
    scale = max(float(rows.max()), -float(rows.min())) or 1.0  # second moments of large numbers would overflow
    coded = Quantized(rows / np.float32(scale), np.arange(len(rows)), CODE_BITS, seed=seed)
    slopes, offsets = 2 * a * scale * coded.scales_, a * points.squares
    return PointCodes(
        coded.planes_, slopes.astype(np.float32), a.astype(np.float32), offsets.astype(np.float32),
        coded.center_ * np.float32(scale), coded.query_map_,
    )  # fmt: skip
