"""The options of reading files and tables, each declared once: what is not given is detected, and reported."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, TypedDict

from labelspace.errors import ParameterError
from labelspace.options import Option

if TYPE_CHECKING:  # the command line reads these declarations for --help, without NumPy
    from labelspace.types import Columns, Fields, SideColumns

Names = str | Sequence[str]
NO_SEPARATOR = "none"  # the label separator of cells that hold one label each
_OUTPUTS = ", e.g. brand,L0_category,L1_category; levels of a category also as 'department>aisle'."
_VECTORS = "; or a .npy or .safetensors file with a row for each document, or a folder with one for each file."
_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "\\t": "\t", "space": " "}


class TableOptions(TypedDict, total=False):
    """How tables are read, files as well as Python objects."""

    text: Annotated[Names, Option("Column of the texts; several are joined.", "A,B")]
    id: Annotated[str, Option("Column of the ids.", "COLUMN")]
    label_separator: Annotated[str, Option("Mark between the labels of a cell, such as ';', or none.", "MARK")]
    normalize_labels: Annotated[bool, Option("Merge labels that differ only in case or spaces.")]
    inputs: Annotated[Names, Option("Input columns of a table with several outputs", "A,B", ", e.g. title,price.")]
    outputs: Annotated[str | Sequence[Names], Option("Columns to predict", "C,D", _OUTPUTS)]
    numeric: Annotated[Names, Option("Columns of numbers beside the text, such as prices.", "A,B")]
    categorical: Annotated[Names, Option("Columns of categories beside the text, such as brands.", "A,B")]


class FileOptions(TableOptions, total=False):
    """How files are read, by ``labelspace.read`` and by the commands that take DATA."""

    embeddings: Annotated[str, Option("Column of ready-made vectors, in place of texts.", "COLUMN")]
    vectors: Annotated[str, Option("Column of vectors beside the text", "COLUMN|FILE", _VECTORS)]
    delimiter: Annotated[str, Option("Mark between cells: comma, semicolon, tab, pipe or a character.", "MARK")]
    encoding: Annotated[str, Option("Text encoding, such as utf-8, utf-16 or windows-1252.", "NAME")]
    format: Annotated[str, Option("Format, such as fasttext or libsvm; docs/formats.md lists them.", "NAME")]
    labels: Annotated[Names, Option("Column of the labels; or several, each with a label or with 0 and 1.", "A,B")]


def say_nothing(line: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class ReadOptions:
    r"""The given options of reading, checked (see ``FileOptions``); what is None or empty is detected.

    >>> ReadOptions(delimiter="tab", text=("title", "abstract")).delimiter
    '\t'
    """

    format: str | None = None  # a name of ``formats.registry``
    encoding: str | None = None
    delimiter: str | None = None
    label_separator: str | None = None
    text: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    id: str | None = None
    embeddings: str | None = None
    normalize_labels: bool = False
    beside: SideColumns | None = None  # columns beside the text
    vectors_file: str | None = None  # a file of vectors, or a folder of them, in place of a column
    columns: Columns | None = None  # inputs and outputs, in place of text, labels and id
    fields: Fields | None = None  # of the training file, which other files follow by default
    say: Callable[[str], None] = field(default=say_nothing, compare=False, repr=False)  # called with what is detected

    def __post_init__(self) -> None:
        for key in ("delimiter", "label_separator"):
            value = getattr(self, key)
            object.__setattr__(self, key, None if value is None else _DELIMITERS.get(value.lower(), value))
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            rule = "delimiter must be one character, or comma, semicolon, tab or pipe"
            remedy = "write for example delimiter='semicolon'"
            raise ParameterError(f"{rule}, but is {self.delimiter!r}; {remedy}", options=["delimiter"])
        if self.label_separator == "":
            remedy = "write for example label_separator=';'"
            raise ParameterError(f"label_separator must not be empty, but is; {remedy}", options=["label_separator"])
        if self.encoding is not None:
            try:
                "".encode(self.encoding)
                codecs.lookup(self.encoding)
            except LookupError:
                rule = "encoding must be a text encoding that Python knows"
                remedy = "write for example encoding='windows-1252'"
                raise ParameterError(f"{rule}, but is {self.encoding!r}; {remedy}", options=["encoding"]) from None
        if self.columns is not None and (self.text or self.labels):
            message = "inputs and outputs name the columns of a table, but text or labels is given too; use one pair"
            raise ParameterError(message, options=["inputs", "outputs", "text", "labels"])

    @property
    def merges_labels(self) -> bool:
        """True if labels that differ only in case or spaces are merged, here or in training."""
        return self.normalize_labels or (self.fields is not None and self.fields.normalize_labels)

    @property
    def side_columns(self) -> SideColumns:
        """The columns beside the text: those given, else those of the training file."""
        from labelspace.types import SideColumns

        own, known = self.beside or SideColumns(), SideColumns() if self.fields is None else self.fields.beside
        numeric, categorical = own.numeric or known.numeric, own.categorical or known.categorical
        return SideColumns(numeric, categorical, own.vectors or known.vectors)

    def following(self, fields: Fields | None) -> ReadOptions:
        """Return these options for a file that is read as another was, such as the training file."""
        return replace(self, fields=fields)
