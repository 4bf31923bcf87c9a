"""What is stored, as values: feedback on a document, a document for review, a job."""

from dataclasses import dataclass, field
from typing import Any, Literal, get_args
from uuid import uuid4

Status = Literal["pending", "done", "skipped"]
State = Literal["queued", "running", "done", "failed"]
STATUSES: tuple[str, ...] = get_args(Status)
STATES: tuple[str, ...] = get_args(State)
ORDERS = ("uncertainty", "disagreement", "rare", "random")


def new_id() -> str:
    """An id that no other has. It is made before a statement, so that a repeated statement stores nothing twice."""
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


@dataclass(frozen=True, kw_only=True)
class InboxDocument:
    """A document for review, with what it is worth to review it in each order; higher is first."""

    id: str = field(default_factory=new_id)
    document: str | None = None  # the id that whoever gave the document uses
    text: str
    status: Status = "pending"
    values: dict[str, float] = field(default_factory=dict)  # by order; those that are not known are left out
    version: str | None = None  # of the model that gave the values


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
    heartbeat: str  # when the process that runs it last said so
