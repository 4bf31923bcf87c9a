"""Label vectors -> TopK: the labels whose vectors have the largest inner product with a query."""

from labelspace.index.approximate import Approximate
from labelspace.index.base import Index, Saved
from labelspace.index.choice import choose
from labelspace.index.exact import Exact
from labelspace.index.saved import from_store

__all__ = ["Approximate", "Exact", "Index", "Saved", "choose", "from_store"]
