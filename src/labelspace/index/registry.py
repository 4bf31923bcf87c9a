"""The index classes by name."""

from labelspace.errors import ModelError
from labelspace.index.approximate import Approximate
from labelspace.index.base import Index
from labelspace.index.exact import Exact
from labelspace.index.poincare import PointIndex
from labelspace.index.quantized import Quantized

INDEXES: dict[str, type[Index]] = {kind.name: kind for kind in (Exact, Quantized, Approximate, PointIndex)}


def index_class(name: str) -> type[Index]:
    """The index class of this name."""
    if name not in INDEXES:
        raise ModelError(f"a saved index must be one of {', '.join(INDEXES)}, but is {name!r}; train the model again")
    return INDEXES[name]
