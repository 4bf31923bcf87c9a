"""Label vectors -> TopK: the labels whose vectors have the largest inner product with a query."""

from labelspace.index.approximate import Approximate
from labelspace.index.base import Index
from labelspace.index.choice import choose
from labelspace.index.exact import Exact
from labelspace.index.saved import from_store

__all__ = ["Approximate", "Exact", "Index", "choose", "from_store"]
