"""What differs between databases: how to connect, a few words of SQL, and what their errors mean."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol

from labelspace.errors import DatabaseError

MAX_REASON = 300  # characters of what a database says


class Cursor(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int:
        """The number of rows that were changed."""

    def fetchone(self) -> Any:  # noqa: ANN401 - a row of any columns, or None
        """The next row."""

    def fetchall(self) -> list[Any]:
        """All other rows."""

    def execute(self, sql: str, values: Sequence[Any], /) -> Any:  # noqa: ANN401 - each driver's own cursor
        """Run a statement."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:  # noqa: ANN401 - as above
        """Run a statement once for each row of values."""


class Connection(Protocol):
    """A connection without transactions of its own: statements say BEGIN and COMMIT."""

    def cursor(self) -> Cursor:
        """A new cursor."""

    def close(self) -> None:
        """Close it; what was not committed is undone."""


class Dialect(ABC):
    """A kind of database, at one address."""

    text: ClassVar[str]  # type of a column of text, sorted by code points
    number: ClassVar[str]  # type of a column that counts the rows in the order of insertion
    now: ClassVar[str]  # query of seconds since 1970
    begin: ClassVar[str]  # begins a transaction that writes
    lock_schema: ClassVar[str]  # in a transaction, so that one process at a time makes the tables
    has_schema: ClassVar[str]  # query of the number of tables named labelspace_schema

    def __init__(self, shown: str, error: type[Exception]) -> None:
        self.shown = shown  # in messages: never a password
        self.error = error  # base class of the errors of the driver

    @abstractmethod
    def connect(self) -> Connection:
        """A new connection."""

    @abstractmethod
    def is_passing(self, error: Exception) -> bool:
        """Whether a transaction that failed so may succeed when repeated on a new connection."""

    @abstractmethod
    def remedy(self, error: Exception) -> str:
        """What the operator can do."""

    def to_driver(self, sql: str) -> str:
        """A statement with ``?`` for values, as the driver wants it."""
        return sql

    @abstractmethod
    def check_unmoved(self) -> None:
        """Raise where the address no longer names the database that was opened."""

    def explained(self, error: Exception) -> DatabaseError:
        """An error of the driver as one of ours. Later lines of the driver's message may quote what is stored."""
        reason = str(error).strip().split("\n")[0][:MAX_REASON] or type(error).__name__
        return DatabaseError(f"{self.shown} must answer and be writable, but says: {reason}; {self.remedy(error)}")
