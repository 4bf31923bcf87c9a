"""Records that are stored, as values, and checks of them that are the same for every database."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal, get_args
from uuid import uuid4

from labelspace.errors import DataError, ParameterError

Status = Literal["pending", "done", "skipped"]
State = Literal["queued", "running", "done", "failed"]
STATUSES: tuple[str, ...] = get_args(Status)
STATES: tuple[str, ...] = get_args(State)
ACTIVE = ("queued", "running")
ORDERS = ("uncertainty", "disagreement", "rare", "random")
MAX_NAME = 255  # characters; PostgreSQL indexes at most 2,704 bytes, and two names may stand in one index
# PostgreSQL stores no NUL, SQLite no lone surrogate.
NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def new_id() -> str:
    """Return a new id; it is made before a statement, so that a repeated statement stores nothing twice."""
    return str(uuid4())


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """Which labels of a document are right.

    >>> Feedback(id="7", text="knead the dough", accepted=["bread"], by="anna").rejected
    []
    """

    id: str = field(default_factory=new_id)
    text: str
    accepted: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    by: str | None = None
    document: str | None = None  # the id of a document in the inbox
    version: str | None = None  # of the model that suggested
    created: str = ""  # ISO, UTC; set when it is stored
    learned: bool = False  # whether the model has learned it; set by the database

    def check(self) -> None:
        """Raise DataError if a database cannot store the entry."""
        check_names(id=self.id, document=self.document, version=self.version)
        check_text(self.text, "text")
        check_text(self.by, "by")
        for label in (*self.accepted, *self.rejected, *self.added):
            check_text(label, "a label")


@dataclass(frozen=True, kw_only=True)
class InboxDocument:
    """A document for review, with the value of its review in each order; the highest value is reviewed first."""

    id: str = field(default_factory=new_id)
    document: str | None = None  # the client's own id
    text: str
    status: Status = "pending"
    values: dict[str, float] = field(default_factory=dict)  # by order; unknown values are left out
    version: str | None = None  # of the model that gave the values

    def check(self) -> None:
        """Raise DataError or ParameterError if the document cannot be stored as a new one."""
        check_names(id=self.id, version=self.version)
        check_text(self.text, "text")
        check_text(self.document, "the id of a document")
        check_values(self.values)
        check_choice("status", self.status, ["pending"])


@dataclass(frozen=True, kw_only=True)
class Job:
    """Work that takes longer than a request. Times are ISO, UTC."""

    id: str
    model: str
    kind: str
    state: State
    step: str
    progress: float  # 0 to 1
    created: str
    started: str | None
    ended: str | None
    error: str | None
    result: dict[str, Any] | None
    heartbeat: str  # the last sign of life of the process that runs the job


def check_text(text: str | None, what: str) -> None:
    r"""Raise DataError for a text that not every database can store.

    >>> check_text("a\x00", "text")
    Traceback (most recent call last):
    labelspace.errors.DataError: text must be without NUL and lone surrogates, but character 1 is '\x00'; remove it
    """
    if text is not None and (found := NOT_STORABLE.search(text)):
        problem = f"character {found.start()} is {found[0]!r}"
        raise DataError(f"{what} must be without NUL and lone surrogates, but {problem}; remove it")


def check_names(**names: str | None) -> None:
    """Raise DataError for names and ids that are empty, too long for an index or not storable; None is allowed."""
    for what, name in names.items():
        check_text(name, what)
        if name is not None and not 0 < len(name) <= MAX_NAME:
            problem = f"{name[:20]!r}... has {len(name)}" if name else "is empty"
            raise DataError(f"{what} must have 1 to {MAX_NAME} characters, but {problem}; give another")


def check_values(values: Mapping[str, float]) -> None:
    """Raise an error for values of unknown orders, or that are not finite: databases sort NaN in different ways."""
    for order, value in values.items():
        check_choice("order", order, ORDERS)
        if not isfinite(value):
            problem = f"its {order} is {value}"
            raise DataError(f"the value of a document must be a finite number, but {problem}; leave it out")


def check_choice(what: str, value: str, choices: Iterable[str]) -> None:
    """Raise ParameterError for a value that is none of the choices."""
    if value not in choices:
        raise ParameterError(f"{what} must be one of {', '.join(choices)}, but is {str(value)[:80]!r}; choose one")


def check_count(what: str, value: int) -> None:
    """Raise ParameterError for a negative number of rows."""
    if value < 0:
        raise ParameterError(f"{what} must be at least 0, but is {value}; ask for 0 or more")
