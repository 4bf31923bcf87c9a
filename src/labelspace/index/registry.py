"""The indexes by the name they are saved under."""

from __future__ import annotations

from labelspace.errors import ModelError
from labelspace.index.approximate import Approximate
from labelspace.index.base import Index
from labelspace.index.exact import Exact
from labelspace.index.poincare import Ball

INDEXES: dict[str, type[Index]] = {kind.name: kind for kind in (Exact, Approximate, Ball)}


def index_class(name: str) -> type[Index]:
    """The class of a saved index."""
    if name not in INDEXES:
        raise ModelError(f"a saved index must be one of {', '.join(INDEXES)}, but is {name!r}; train the model again")
    return INDEXES[name]
