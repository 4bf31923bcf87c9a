"""How files are read, as far as a user says it; the rest is detected, and said."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from labelspace.errors import ParameterError
from labelspace.types import Columns, Fields

NO_SEPARATOR = "none"  # of --label-separator: each cell is one label
_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "\\t": "\t", "space": " "}


def _say_nothing(line: str) -> None:
    pass


@dataclass(frozen=True)
class ReadOptions:
    r"""What is given of a file's layout; what is None or empty is detected.

    >>> ReadOptions(delimiter="tab", text=("title", "abstract")).delimiter
    '\t'
    """

    format: str | None = None  # a name of ``formats.registry``
    encoding: str | None = None
    delimiter: str | None = None  # of the cells of a row
    label_separator: str | None = None  # of the labels of a cell; NO_SEPARATOR where a cell is one label
    text: tuple[str, ...] = ()  # columns, joined by a line end
    labels: tuple[str, ...] = ()  # columns
    id: str | None = None  # column
    embeddings: str | None = None  # column of ready-made vectors, in place of the texts
    normalize_labels: bool = False  # merge labels that differ in case or spaces alone
    columns: Columns | None = None  # in place of text, labels and id: inputs and outputs of a table
    fields: Fields | None = None  # of the training file, which other files follow by default
    say: Callable[[str], None] = field(default=_say_nothing, compare=False, repr=False)  # told what is detected

    def __post_init__(self) -> None:
        for key in ("delimiter", "label_separator"):
            value = getattr(self, key)
            object.__setattr__(self, key, None if value is None else _DELIMITERS.get(value.lower(), value))
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise ParameterError(
                f"--delimiter must be one character, or comma, semicolon, tab or pipe, but is {self.delimiter!r}; "
                "write for example --delimiter semicolon"
            )
        if self.label_separator == "":
            raise ParameterError("--label-separator must not be empty, but is; write for example --label-separator ';'")
        if self.encoding is not None:
            check_encoding(self.encoding)
        if self.columns is not None and (self.text or self.labels):
            raise ParameterError(
                "--inputs and --outputs name the columns of a table, but --text or --labels is given too; use one pair"
            )

    @property
    def merges_labels(self) -> bool:
        """Whether labels that differ in case or spaces alone are merged, here or in training."""
        return self.normalize_labels or (self.fields is not None and self.fields.normalize_labels)

    def following(self, fields: Fields | None) -> ReadOptions:
        """The same for a file that is read as another was: the training file of this one, say."""
        return replace(self, fields=fields)


def check_encoding(name: str) -> None:
    """Refuse what Python has no text encoding for."""
    try:
        "".encode(name)
        codecs.lookup(name)
    except LookupError:
        raise ParameterError(
            f"--encoding must be a text encoding that Python knows, but is {name!r}; write for example windows-1252"
        ) from None
