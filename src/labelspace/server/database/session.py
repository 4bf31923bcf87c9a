"""Statements on a connection, written once for all databases."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from labelspace.server.database.dialect import Connection, Cursor, Dialect


class Session:
    """A connection while one thread uses it. Statements have ``?`` for values."""

    def __init__(self, connection: Connection, dialect: Dialect) -> None:
        self.dialect = dialect
        self._connection = connection

    def change(self, sql: str, *values: object) -> int:
        """Run a statement; the number of rows it changed."""
        return self._cursor(sql, values).rowcount

    def change_each(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each row of values."""
        self._connection.cursor().executemany(self.dialect.to_driver(sql), rows)

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self._cursor(sql, values).fetchall()

    def first(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """The first row of a query."""
        row: tuple[Any, ...] | None = self._cursor(sql, values).fetchone()
        return row

    def count(self, sql: str, *values: object) -> int:
        """The one number that a query gives."""
        return int(self._cursor(sql, values).fetchone()[0])

    def now(self) -> float:
        """Seconds since 1970 by the clock of the database: those of several machines may differ."""
        return float(self._cursor(self.dialect.now, ()).fetchone()[0])

    def _cursor(self, sql: str, values: Sequence[object]) -> Cursor:
        cursor = self._connection.cursor()
        cursor.execute(self.dialect.to_driver(sql), values)
        return cursor


def iso(seconds: float) -> str:
    """A time for people and programs.

    >>> iso(1763410440.25)
    '2025-11-17T20:14:00.250+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
