"""An index back from the parts that ``to_store`` gave, as ``labelspace.store`` wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from labelspace import store
from labelspace.errors import ModelError
from labelspace.index.approximate import Approximate
from labelspace.index.base import Index
from labelspace.index.exact import Exact


def from_store(
    values: Mapping[str, Any],
    arrays: Mapping[str, npt.NDArray[Any]],
    folder: str | Path,
    manifest: Mapping[str, Any],
    verify: bool | None = None,
) -> Index:
    """The index saved in a model folder: its values and arrays, and its file where it has one."""
    try:
        if values["kind"] == "exact":
            return Exact.from_store(values, arrays)
        return Approximate.from_store(values, arrays, store.checked_path(folder, manifest, store.INDEX, verify))
    except KeyError as error:
        raise ModelError(
            f"the saved index must have the fields of this version, but has no {error}; train the model again"
        ) from error
