"""The one exception tree. Every message says the rule, the value and the remedy, in one line.

::

    LabelspaceError
    ├── InputError (also a ValueError)      what the caller gave is not usable; the command line exits with 2
    │   ├── ParameterError                  a setting out of its range, or an unknown one
    │   ├── DataError                       a data file or value: missing, malformed, mismatched
    │   └── ModelError                      a saved model: missing, damaged, foreign, newer, or in the way
    ├── NotFittedError                      asked to predict or save before fit
    └── MissingExtraError (an ImportError)  an optional package is not installed
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class LabelspaceError(Exception):
    """Root of everything this library raises on purpose."""


class InputError(LabelspaceError, ValueError):
    """What the caller gave is not usable."""


class ParameterError(InputError):
    """A parameter is unknown or out of its range."""


class DataError(InputError):
    """A data file or array is missing, malformed or does not fit the others."""


class ModelError(InputError):
    """A saved model is missing, damaged, foreign, newer than this library, or in the way."""


class NotFittedError(LabelspaceError):
    """The model was asked for something it knows only after ``fit``."""


class MissingExtraError(LabelspaceError, ImportError):
    """An optional package is needed and not installed."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional ``module``, or say which extra brings it.

    >>> require("json", extra="parquet").__name__
    'json'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"this needs the package {module!r}, which is not installed; run: pip install 'labelspace[{extra}]'"
        ) from error
