"""Differences between databases (how to connect, a few words of SQL, what errors mean), and statements for all."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from labelspace.errors import DatabaseError

MAX_REASON = 300  # characters of a database's own message that are shown
Connection = Any
"""A connection of sqlite3 or psycopg, without transactions of its own: statements say BEGIN and COMMIT."""


class Dialect(ABC):
    """A kind of database, at one address."""

    text: ClassVar[str]  # type of a column of text, sorted by code points
    number: ClassVar[str]  # type of a column that counts the rows in the order of insertion
    now: ClassVar[str]  # query of seconds since 1970
    begin: ClassVar[str]  # begins a transaction that writes
    lock_schema: ClassVar[str]  # in a transaction, so that one process at a time makes the tables
    has_schema: ClassVar[str]  # query of the number of tables named labelspace_schema
    remedies: ClassVar[dict[str, str]]  # by the beginning of an error's code
    other_remedy: ClassVar[str]

    def __init__(self, shown: str, error: type[Exception]) -> None:
        self.shown = shown  # in messages: never a password
        self.error = error  # base class of the errors of the driver

    @abstractmethod
    def connect(self) -> Connection:
        """Open a new connection."""

    @abstractmethod
    def code(self, error: Exception) -> str:
        """Return the code of an error of the driver, or an empty text."""

    def is_passing(self, error: Exception) -> bool:
        """Return whether a transaction that failed with this error may succeed on a new connection."""
        return False

    def remedy(self, error: Exception) -> str:
        """Return what the operator can do about an error."""
        code = self.code(error)
        return next((remedy for key, remedy in self.remedies.items() if code.startswith(key)), self.other_remedy)

    def to_driver(self, sql: str) -> str:
        """Return a statement with ``?`` for values in the form that the driver wants."""
        return sql

    def check_unmoved(self) -> None:  # noqa: B027 - a database server looks after its files
        """Raise DatabaseError if the address no longer names the database that was opened."""

    def explained(self, error: Exception) -> DatabaseError:
        """Return an error of the driver as a DatabaseError, with the first line of its message alone.

        Later lines may quote what is stored.
        """
        reason = str(error).strip().split("\n")[0][:MAX_REASON] or type(error).__name__
        return DatabaseError(f"{self.shown} must answer and be writable, but says: {reason}; {self.remedy(error)}")


class Session:
    """A connection while one thread uses it. Statements have ``?`` for values."""

    def __init__(self, connection: Connection, dialect: Dialect) -> None:
        self.dialect = dialect
        self._connection = connection

    def change(self, sql: str, *values: object) -> int:
        """Run a statement, and return the number of rows it changed."""
        return int(self._execute(sql, values).rowcount)

    def change_each(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each row of values."""
        self._connection.cursor().executemany(self.dialect.to_driver(sql), rows)

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        """Return the rows of a query, by the names of their columns."""
        cursor = self._execute(sql, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def first(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """Return the first row of a query, or None."""
        row: tuple[Any, ...] | None = self._execute(sql, values).fetchone()
        return row

    def count(self, sql: str, *values: object) -> int:
        """Return the number that a query gives."""
        return int(self._execute(sql, values).fetchone()[0])

    def now(self) -> float:
        """Return seconds since 1970 by the clock of the database: the clocks of several machines may differ."""
        return float(self._execute(self.dialect.now, ()).fetchone()[0])

    def _execute(self, sql: str, values: Sequence[object]) -> Any:  # noqa: ANN401 - a cursor of the driver
        return self._connection.execute(self.dialect.to_driver(sql), values)


def iso(seconds: float) -> str:
    """Return a time, in seconds since 1970, in ISO format.

    >>> iso(1763410440.25)
    '2025-11-17T20:14:00.250+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
