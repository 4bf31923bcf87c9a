"""SQLite: a file that several processes of one machine share."""

import os
import sqlite3
import time
from pathlib import Path

from labelspace.errors import DatabaseError
from labelspace.server.database.dialect import Connection, Dialect

BUSY_SECONDS = 30.0  # that a statement waits for other writers
PAUSE = 0.01  # seconds
REMEDIES = {
    "SQLITE_FULL": "free disk space",
    "SQLITE_READONLY": "let this process write to the file and its folder",
    "SQLITE_CANTOPEN": "name a file in a folder that exists and that this process may write to",
    "SQLITE_NOTADB": "name another file",
    "SQLITE_CORRUPT": "restore it from a backup",
    "SQLITE_BUSY": "end the process that keeps it locked",
}


class SQLite(Dialect):
    """A file. Its log is synced to disk at every commit, so what is committed outlives a power failure."""

    text, number = "TEXT", "INTEGER PRIMARY KEY AUTOINCREMENT"
    now = "SELECT (julianday('now') - 2440587.5) * 86400.0"
    begin = "BEGIN IMMEDIATE"  # waits for other writers; a plain BEGIN would fail at its first write instead
    lock_schema = "SELECT 1"  # there is one writer at a time anyway
    has_schema = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'labelspace_schema'"

    def __init__(self, path: Path) -> None:
        super().__init__(f"the database {path}", sqlite3.Error)
        self.path = path
        self._identity: tuple[int, int] | None = None

    def connect(self) -> Connection:
        """A new connection; the file is made where there is none."""
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
        """Raise where the file was moved or replaced: what is written to it would be lost."""
        if self._identity is not None and self._on_disk() != self._identity:
            problem = "was removed, moved or replaced"
            raise DatabaseError(f"{self.shown} must stay while it is open, but {problem}; restart the server")

    def is_passing(self, error: Exception) -> bool:
        """A file is not lost and found again, and statements have waited for other writers."""
        return False

    def remedy(self, error: Exception) -> str:
        """What the operator can do."""
        name = _name(error)
        return next((text for key, text in REMEDIES.items() if name.startswith(key)), "check the file and its disk")

    def _on_disk(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _use_log(connection: sqlite3.Connection) -> None:
    """Readers and a writer do not wait for each other then. To begin it waits for nobody, so it is tried again."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not _name(error).startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
        time.sleep(PAUSE)


def _name(error: Exception) -> str:
    return getattr(error, "sqlite_errorname", "")
