"""All exceptions. Every message gives the rule, the value and the remedy, in one line.

::

    LabelspaceError
    ├── InputError (also a ValueError)      invalid input; the command line exits with 2
    │   ├── ParameterError                  an unknown parameter, or an invalid value
    │   ├── DataError                       a data file or value: missing, malformed, mismatched
    │   └── ModelError                      a saved model: missing, damaged, of another program or a newer version
    ├── DatabaseError                       the database of a server: no answer, full, not writable, a newer version
    ├── ClusterError                        a cluster: no answer, no room, other versions, files it does not see
    ├── NotFittedError                      predict or save before fit
    └── MissingExtraError (an ImportError)  an optional package is not installed
"""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType


class LabelspaceError(Exception):
    """Base class of all exceptions of this library; its message is one line, whatever names of a file are in it.

    A message names options as Python callers do: ``delimiter must be ...; write for example delimiter=';'``.
    ``options`` lists the option names in the message, which the command line turns into flags: ``--delimiter must be
    ...; write for example --delimiter ';'`` (see ``cli/exit_codes.py``). A name that ends with ``=``, such as
    ``text=``, is only replaced where a value follows: the word itself may be part of a sentence or of a path.
    """

    def __init__(self, message: str, *, options: Sequence[str] = ()) -> None:
        super().__init__(" ".join(message.splitlines()))
        self.options = tuple(options)


class InputError(LabelspaceError, ValueError):
    """Invalid input."""


class ParameterError(InputError):
    """A parameter is unknown or its value is invalid."""


class DataError(InputError):
    """A data file or array is missing, malformed or inconsistent with others."""


class ModelError(InputError):
    """A saved model is missing, damaged, or of another program or a newer version; or its folder is in use."""


class DatabaseError(LabelspaceError):
    """A database does not answer, is full or not writable, or is of another program or a newer version."""


class ClusterError(LabelspaceError):
    """A cluster does not answer or has no room, or its machines have other versions or do not see a file."""


class NotFittedError(LabelspaceError):
    """The model has not been fitted."""


class MissingExtraError(LabelspaceError, ImportError):
    """An optional package is needed and not installed."""


def require(module: str, extra: str, needed_by: str = "this") -> ModuleType:
    """Import an optional ``module``; the error names what needs it and the extra that installs it.

    >>> require("json", extra="parquet").__name__
    'json'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{needed_by} needs the package {module!r}, which is not installed; run: pip install 'labelspace[{extra}]'"
        ) from error
