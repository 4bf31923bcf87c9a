"""Connect to SQLite: a file that several processes of one machine share."""

import os
import sqlite3
import time
from pathlib import Path
from typing import ClassVar

from labelspace.errors import DatabaseError
from labelspace.server.database.dialect import Connection, Dialect

BUSY_SECONDS = 30.0  # for which a statement waits for other writers
PAUSE = 0.01  # seconds between two attempts to use the log


class SQLite(Dialect):
    """A file. Its log is synced to disk at every commit, so what is committed outlives a power failure."""

    text, number = "TEXT", "INTEGER PRIMARY KEY AUTOINCREMENT"
    now = "SELECT (julianday('now') - 2440587.5) * 86400.0"
    begin = "BEGIN IMMEDIATE"  # waits for other writers; a plain BEGIN would fail at its first write instead
    lock_schema = "SELECT 1"  # there is one writer at a time anyway
    has_schema = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'labelspace_schema'"
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

    def code(self, error: Exception) -> str:
        """Return the name of an error's code."""
        return _code(error)

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
            if not _code(error).startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE)


def _code(error: Exception) -> str:
    return getattr(error, "sqlite_errorname", "")
