"""Columns of a table that stand beside the texts: numbers, categories and vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from labelspace.errors import DataError


@dataclass(frozen=True)
class SideColumns:
    """The names of the columns that stand beside the texts; without any, a tagger reads texts only.

    >>> SideColumns(numeric=("price",), vectors="emb").names
    ('price', 'emb')
    """

    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    vectors: str | None = None

    def __post_init__(self) -> None:
        for key in ("numeric", "categorical"):
            object.__setattr__(self, key, tuple(getattr(self, key)))
        if not all(isinstance(name, str) and name for name in self.names):
            raise DataError(
                f"columns must be named by texts, but are {self.names}; write for example numeric=['price']"
            )
        twice = next((name for name in self.names if self.names.count(name) > 1), None)
        if twice is not None:
            rule = "a column is numeric, categorical or vectors"
            raise DataError(f"{rule}, but {twice!r} is named twice; remove one")

    @property
    def names(self) -> tuple[str, ...]:
        """Return all columns."""
        return (*self.numeric, *self.categorical, *(() if self.vectors is None else (self.vectors,)))

    def __bool__(self) -> bool:
        return bool(self.names)


class TextWithValues(str):
    """A text with what stands beside it, by column: a number, a list of categories, or a vector.

    It is a text for all that reads texts. What makes a plain text of it loses the values, which ``SideFeatures``
    refuses: values are never lost silently.

    >>> text = TextWithValues("Rye bread", {"price": 3.5})
    >>> text.lower(), text.values["price"]
    ('rye bread', 3.5)
    """

    __slots__ = ("values",)
    values: Mapping[str, Any]

    def __new__(cls, text: str, values: Mapping[str, Any]) -> Self:
        """Return the text with its values."""
        made = super().__new__(cls, text)
        made.values = values
        return made

    def __getnewargs__(self) -> tuple[str, Mapping[str, Any]]:  # type: ignore[override]  # for copies and processes
        return str(self), self.values
