"""Search label vectors: the labels of largest inner product with a query, or of smallest distance, as a TopK."""

from labelspace.errors import ModelError
from labelspace.index.approximate import Approximate
from labelspace.index.base import Index
from labelspace.index.choice import choose
from labelspace.index.exact import Exact
from labelspace.index.poincare import PointIndex
from labelspace.index.quantized import Quantized

__all__ = ["Approximate", "Exact", "Index", "PointIndex", "Quantized", "choose", "index_class"]

INDEXES: dict[str, type[Index]] = {kind.name: kind for kind in (Exact, Quantized, Approximate, PointIndex)}


def index_class(name: str) -> type[Index]:
    """Return the index class that a saved model names."""
    if name not in INDEXES:
        raise ModelError(f"a saved index must be one of {', '.join(INDEXES)}, but is {name!r}; train the model again")
    return INDEXES[name]
