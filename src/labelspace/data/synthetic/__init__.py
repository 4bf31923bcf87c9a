"""Synthetic data: planted data of any size, and data of the shape of the large public data sets."""

from labelspace.data.synthetic.planted_data import planted
from labelspace.data.synthetic.shaped_data import SHAPES, Shape, shaped, shaped_blocks, write_shaped

__all__ = ["SHAPES", "Shape", "planted", "shaped", "shaped_blocks", "write_shaped"]
