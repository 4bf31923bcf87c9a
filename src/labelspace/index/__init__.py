"""Label vectors -> TopK: the labels of largest inner product with a query, or of smallest distance."""

from labelspace.index.approximate import Approximate
from labelspace.index.base import Index
from labelspace.index.choice import choose
from labelspace.index.exact import Exact
from labelspace.index.poincare import PointIndex
from labelspace.index.quantized import Quantized
from labelspace.index.registry import index_class

__all__ = ["Approximate", "Exact", "Index", "PointIndex", "Quantized", "choose", "index_class"]
