"""Label vectors -> TopK: those of largest inner product with a query, or nearest to it in a ball."""

from labelspace.index.approximate import Approximate
from labelspace.index.base import Index
from labelspace.index.choice import choose
from labelspace.index.exact import Exact
from labelspace.index.poincare import Ball
from labelspace.index.registry import index_class

__all__ = ["Approximate", "Ball", "Exact", "Index", "choose", "index_class"]
