"""Differences between databases (how to connect, a few words of SQL, what errors mean), and statements for all.

SQLite is a file that several processes of one machine share; PostgreSQL a server that several machines share, and needs
psycopg. The tables are declared in ``schema.sql``.
"""

import json
import os
import re
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from labelspace.errors import DatabaseError, ParameterError, require

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
    placeholder: ClassVar = "?"  # for a value
    code_name: ClassVar[str]  # the attribute of an error that has its code
    remedies: ClassVar[dict[str, str]]  # by the beginning of an error's code, or "no code"
    other_remedy: ClassVar[str]

    def __init__(self, shown: str, error: type[Exception]) -> None:
        self.shown = shown  # in messages: never a password
        self.error = error  # base class of the errors of the driver

    @abstractmethod
    def connect(self) -> Connection:
        """Open a new connection."""

    def code(self, error: Exception) -> str:
        """Return the code of an error of the driver, or an empty text, such as if there was no connection."""
        return getattr(error, self.code_name, None) or ""

    def is_passing(self, error: Exception) -> bool:
        """Return whether a transaction that failed with this error may succeed on a new connection."""
        return False

    def check_unmoved(self) -> None:  # noqa: B027 - a database server looks after its files
        """Raise DatabaseError if the address no longer names the database that was opened."""

    def explained(self, error: Exception) -> DatabaseError:
        """Return an error of the driver as a DatabaseError, with what the operator can do about it.

        It has the first line of the driver's message alone: later ones may quote what is stored.
        """
        reason = str(error).strip().split("\n")[0][:MAX_REASON] or type(error).__name__
        code = self.code(error) or "no code"
        remedy = next((remedy for key, remedy in self.remedies.items() if code.startswith(key)), self.other_remedy)
        return DatabaseError(f"{self.shown} must answer and be writable, but says: {reason}; {remedy}")


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
        self._connection.cursor().executemany(self._of_driver(sql), rows)

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        """Return the rows of a query, by the names of their columns."""
        cursor = self._execute(sql, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def first(self, sql: str, *values: object) -> tuple[Any, ...] | None:
        """Return the first row of a query, or None."""
        row: tuple[Any, ...] | None = self._execute(sql, values).fetchone()
        return row

    def value(self, sql: str, *values: object) -> Any:  # noqa: ANN401 - of any column
        """Return the first value of the first row of a query, or None."""
        row = self.first(sql, *values)
        return row[0] if row else None

    def now(self) -> float:
        """Return seconds since 1970 by the clock of the database: the clocks of several machines may differ."""
        return float(self.value(self.dialect.now))

    def _execute(self, sql: str, values: Sequence[object]) -> Any:  # noqa: ANN401 - a cursor of the driver
        return self._connection.execute(self._of_driver(sql), values)

    def _of_driver(self, sql: str) -> str:
        return sql.replace("?", self.dialect.placeholder)


def iso(seconds: float) -> str:
    """Return a time, in seconds since 1970, in ISO format.

    >>> iso(1763410440.25)
    '2025-11-17T20:14:00.250+00:00'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


BUSY_SECONDS = 30.0  # for which a statement waits for other writers
PAUSE = 0.01  # seconds between two attempts to use the log


class SQLite(Dialect):
    """A file. Its log is synced to disk at every commit, so what is committed outlives a power failure."""

    text, number = "TEXT", "INTEGER PRIMARY KEY AUTOINCREMENT"
    now = "SELECT (julianday('now') - 2440587.5) * 86400.0"
    begin = "BEGIN IMMEDIATE"  # waits for other writers; a plain BEGIN would fail at its first write instead
    lock_schema = "SELECT 1"  # there is one writer at a time anyway
    has_schema = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'labelspace_schema'"
    code_name = "sqlite_errorname"
    remedies: ClassVar = {
        "SQLITE_FULL": "free disk space",
        "SQLITE_READONLY": "let this process write to the file and its folder",
        "SQLITE_CANTOPEN": "name a file in a folder that exists and that this process may write to",
        "SQLITE_NOTADB": "name another file",
        "SQLITE_CORRUPT": "restore it from a backup",
        "SQLITE_BUSY": "end the process that keeps it locked",
    }
    other_remedy = "check the file and its disk"

    def __init__(self, path: Path) -> None:
        super().__init__(f"the database {path}", sqlite3.Error)
        self.path = path
        self._identity: tuple[int, int] | None = None

    def connect(self) -> Connection:
        """Open a new connection; the file is made if it does not exist."""
        # A connection is used by one thread at a time, but not always by the same one.
        connection = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            _use_log(connection)
            connection.execute("PRAGMA synchronous = FULL")
            self._identity = self._identity or self._on_disk()
        except BaseException:
            connection.close()
            raise
        return connection

    def check_unmoved(self) -> None:
        """Raise DatabaseError if the file was moved or replaced: what is written to it would be lost."""
        if self._identity is not None and self._on_disk() != self._identity:
            problem = "was removed, moved or replaced"
            raise DatabaseError(f"{self.shown} must stay while it is open, but {problem}; restart the server")

    def _on_disk(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _use_log(connection: sqlite3.Connection) -> None:
    """Use a write-ahead log, with which readers and a writer do not wait for each other.

    SQLite does not wait for other connections when it begins to use a log, so this is tried again.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "BUSY" not in getattr(error, "sqlite_errorname", "") or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE)


EXTRA = "postgres"
FORM = "postgresql://user:password@host:port/name"
# Unless the URL says otherwise: a host that does not answer is noticed within seconds, not hours.
DEFAULTS = {
    "application_name": "labelspace",
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
# A server may be set to answer before a commit is on disk; this makes our commits wait for the disk all the same.
SESSION = (
    "SELECT set_config('lock_timeout', '30s', false), set_config('synchronous_commit',"
    " CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,"
    " false)"
)
# After 57P01 to 57P03 the server is stopped, has crashed, or starts; 40001 and 40P01 say that this one of the
# transactions that wait for each other was undone; codes with 08 are lost connections.
PASSING = ("57P01", "57P02", "57P03", "40001", "40P01", "08")


class PostgreSQL(Dialect):
    """A database of a PostgreSQL server."""

    text = 'TEXT COLLATE "C"'
    number = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    now = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"
    begin = "BEGIN"
    lock_schema = "SELECT pg_advisory_xact_lock(7811886442)"  # a number that no other program is likely to lock
    has_schema = "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('labelspace_schema')"
    placeholder = "%s"
    code_name = "sqlstate"
    remedies: ClassVar = {
        "no code": "check that the server runs, and host, user, password and name in the URL",
        "28": "correct user and password of the URL",
        "3D": "create the database: createdb --encoding UTF8 --template template0 NAME",
        "42501": "grant the user CREATE on the schema, and all rights on the tables labelspace_*",
        "53100": "free disk space of the server",
        "53": "free resources of the server, or allow it more connections",
        "55P03": "end the session that keeps the table locked",
        "25006": "name a server that is no read-only copy",
    }
    other_remedy = "see the server's log"

    def __init__(self, url: str) -> None:
        self._psycopg: Any = require("psycopg", EXTRA, needed_by="a database at postgresql://")
        self._parameters = DEFAULTS | _parameters(url, self._psycopg)
        where = [self._parameters.get(name, "") for name in ("host", "port", "dbname")]
        host = ":".join(filter(None, where[:2]))
        super().__init__(f"the database postgresql://{host}/{where[2]}", self._psycopg.Error)

    def connect(self) -> Connection:
        """Open a new connection."""
        # Statements are not prepared: a pooler before the server may give each to another session.
        connection = self._psycopg.connect(**self._parameters, autocommit=True, prepare_threshold=None)
        try:
            connection.execute(SESSION)
            encoding = connection.execute("SHOW server_encoding").fetchone()[0]
            if encoding != "UTF8":
                remedy = "create one: createdb --encoding UTF8 --template template0 NAME"
                raise DatabaseError(f"{self.shown} must have the encoding UTF8, but has {encoding}; {remedy}")
        except BaseException:
            connection.close()
            raise
        return connection

    def is_passing(self, error: Exception) -> bool:
        """Return whether the connection was lost or cannot be made, or the server undid the transaction."""
        if code := self.code(error):
            return code.startswith(PASSING)
        return isinstance(error, (self._psycopg.OperationalError, self._psycopg.InterfaceError))


def _parameters(url: str, psycopg: Any) -> dict[str, str]:  # noqa: ANN401 - a module that may not be installed
    """Return the parts of a URL. In a malformed one any part may be the password, so the error shows none."""
    _, _, rest = url.partition("://")
    is_valid = rest.count("@") <= 1 and "@" not in rest.partition("/")[2]
    try:
        parts: dict[str, str] = psycopg.conninfo.conninfo_to_dict(url) if is_valid else {}
    except psycopg.Error:
        parts = {}
    if not parts or not re.fullmatch("[0-9,]*", parts.get("port") or ""):
        remedy = "write special characters of the password as %40 for @, %2F for /, %3A for :"
        raise ParameterError(f"a PostgreSQL URL must be {FORM}, but the one given is not; {remedy}")
    return {name: value for name, value in parts.items() if value is not None}


SCHEMA_VERSION = 2
LEARNED_BEFORE = """
    SELECT model, started, result FROM labelspace_jobs WHERE kind = 'learn' AND state = 'done' ORDER BY number"""
MARK_LEARNED_BEFORE = """
    UPDATE labelspace_feedback SET is_learned = 1
    WHERE model = ? AND created < ? AND NOT (accepted = '[]' AND added = '[]')"""


def create_schema(session: Session) -> None:
    """Make the tables unless they exist, in a transaction; several processes may do so at once."""
    session.rows(session.dialect.lock_schema)
    if has_schema(session):
        return
    _run_file(session, "schema.sql")
    session.change("INSERT INTO labelspace_schema (version) VALUES (?)", SCHEMA_VERSION)


def is_old(session: Session) -> bool:
    """Return whether the tables are of an older version that can be upgraded."""
    return schema_version(session) == 1


def upgrade_schema(session: Session) -> None:
    """Bring tables of version 1 up to date, in a transaction; several processes may do so at once."""
    session.rows(session.dialect.lock_schema)
    if not is_old(session):
        return
    _run_file(session, "upgrade_2.sql")
    # Each training of version 1 learned from all feedback. What was only rejected may not have been learned: learning
    # it again does no harm.
    for row in session.rows(LEARNED_BEFORE):
        result = json.loads(row["result"] or "null") or {}
        if result.get("swapped") and row["started"] is not None:
            session.change(MARK_LEARNED_BEFORE, row["model"], row["started"])


def _run_file(session: Session, name: str) -> None:
    """Run the statements of a file."""
    declared = files("labelspace.server.database").joinpath(name).read_text(encoding="utf-8")
    lines = [line for line in declared.splitlines() if not line.startswith("--")]
    statements = "\n".join(lines).format(text=session.dialect.text, number=session.dialect.number)
    for statement in filter(str.strip, statements.split(";")):
        session.change(statement)


def schema_version(session: Session) -> int | None:
    """Return the version of the tables; None if it is missing."""
    version: int | None = session.value("SELECT MAX(version) FROM labelspace_schema")
    return version


def has_schema(session: Session) -> bool:
    """Return whether the tables exist: a user who may not make tables can use existing ones."""
    return bool(session.value(session.dialect.has_schema))


def check_schema(session: Session) -> None:
    """Raise DatabaseError for tables of a different layout."""
    version = schema_version(session)
    if version == SCHEMA_VERSION:
        return
    remedy = "restore it from a backup, or name another database"
    if version is not None and version > SCHEMA_VERSION:
        remedy = "update labelspace, or name another database"
    rule = f"{session.dialect.shown} must have tables of version {SCHEMA_VERSION}"
    raise DatabaseError(f"{rule}, but has version {version}; {remedy}")
