"""What may be stored: the same for every database, though each refuses something else."""

import re
from collections.abc import Iterable, Mapping
from math import isfinite

from labelspace.errors import DataError, ParameterError
from labelspace.server.database.records import ORDERS, Feedback, InboxDocument

MAX_NAME = 255  # characters; PostgreSQL indexes at most 2,704 bytes, and two names may stand in one index
# PostgreSQL stores no NUL, SQLite no lone surrogate.
NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def check_text(text: str | None, what: str) -> None:
    r"""Refuse a text that not every database can store.

    >>> check_text("a\x00", "text")
    Traceback (most recent call last):
    labelspace.errors.DataError: text must be without NUL and lone surrogates, but character 1 is '\x00'; remove it
    """
    if text is not None and (found := NOT_STORABLE.search(text)):
        problem = f"character {found.start()} is {found[0]!r}"
        raise DataError(f"{what} must be without NUL and lone surrogates, but {problem}; remove it")


def check_names(**names: str | None) -> None:
    """Refuse names and ids that are empty, too long for an index or not storable; None is left out."""
    for what, name in names.items():
        check_text(name, what)
        if name is not None and not 0 < len(name) <= MAX_NAME:
            problem = f"{name[:20]!r}... has {len(name)}" if name else "is empty"
            raise DataError(f"{what} must have 1 to {MAX_NAME} characters, but {problem}; give another")


def check_feedback(entries: Iterable[Feedback]) -> None:
    """Refuse what cannot be stored."""
    for entry in entries:
        check_names(id=entry.id, document=entry.document, version=entry.version)
        check_text(entry.text, "text")
        check_text(entry.by, "by")
        for label in (*entry.accepted, *entry.rejected, *entry.added):
            check_text(label, "a label")


def check_documents(documents: Iterable[InboxDocument]) -> None:
    """Refuse what cannot be stored."""
    for document in documents:
        check_names(id=document.id, version=document.version)
        check_text(document.text, "text")
        check_text(document.document, "the id of a document")
        check_values(document.values)
        check_choice("status", document.status, ["pending"])


def check_values(values: Mapping[str, float]) -> None:
    """Refuse values of unknown orders, and such as cannot be compared: no database sorts NaN like another."""
    for order, value in values.items():
        check_choice("order", order, ORDERS)
        if not isfinite(value):
            raise DataError(
                f"the value of a document must be a finite number, but its {order} is {value}; leave it out"
            )


def check_choice(what: str, value: str, choices: Iterable[str]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise ParameterError(f"{what} must be one of {', '.join(choices)}, but is {str(value)[:80]!r}; choose one")


def check_count(what: str, value: int) -> None:
    """Refuse a negative number of rows."""
    if value < 0:
        raise ParameterError(f"{what} must be at least 0, but is {value}; ask for 0 or more")
