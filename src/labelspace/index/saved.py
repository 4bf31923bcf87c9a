"""An index back from the parts that ``to_store`` gave, as ``labelspace.store`` wrote them."""

from __future__ import annotations

from labelspace.errors import ModelError
from labelspace.index.approximate import Approximate
from labelspace.index.base import Index
from labelspace.index.exact import Exact
from labelspace.index.poincare import Ball
from labelspace.store import Found


def from_store(found: Found) -> Index:
    """The index whose parts were found in a model folder."""
    try:
        kind = found.values["kind"]
        if kind == "ball":
            return Ball.from_store(found)
        return (Exact if kind == "exact" else Approximate).from_store(found)
    except KeyError as error:
        raise ModelError(
            f"the saved index must have the fields of this version, but has no {error}; train the model again"
        ) from error
