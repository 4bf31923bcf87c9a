"""labelspace: the few right labels out of thousands to millions, on an ordinary CPU.

The names below are loaded on first use, so that ``import labelspace`` costs next to nothing.

>>> import labelspace
>>> tagger = labelspace.Tagger(method="neighbors").fit(
...     ["red apple", "green apple", "fast car"], [["fruit"], ["fruit"], ["vehicle"]]
... )
>>> tagger.tag("a ripe red apple", k=1)
[('fruit', 1.0)]
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from labelspace import moved_modules
from labelspace.version import __version__

if TYPE_CHECKING:
    from labelspace.data.records import Record
    from labelspace.data.source import read, read_dataset
    from labelspace.models.registry import create, methods
    from labelspace.sklearn import TaggerClassifier
    from labelspace.tagger import Tagger, load
    from labelspace.types import Columns, Dataset, Hierarchy, LabelSpace, TopK

_HOME = {
    "Columns": "labelspace.types",
    "Dataset": "labelspace.types",
    "Hierarchy": "labelspace.types",
    "LabelSpace": "labelspace.types",
    "Record": "labelspace.data.records",
    "Tagger": "labelspace.tagger",
    "TaggerClassifier": "labelspace.sklearn",
    "TopK": "labelspace.types",
    "create": "labelspace.models.registry",
    "load": "labelspace.tagger",
    "methods": "labelspace.models.registry",
    "read": "labelspace.data.source",
    "read_dataset": "labelspace.data.source",
}

__all__ = [
    "Columns",
    "Dataset",
    "Hierarchy",
    "LabelSpace",
    "Record",
    "Tagger",
    "TaggerClassifier",
    "TopK",
    "__version__",
    "create",
    "load",
    "methods",
    "read",
    "read_dataset",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module attribute may be anything
    if name not in _HOME:
        raise AttributeError(f"module 'labelspace' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__


moved_modules.install()
