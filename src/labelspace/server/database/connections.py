"""Keep the connections of a process, and repeat transactions whose connection was lost.

A transaction is a function of a session. It is called again, on a new connection, if the connection was lost or the
database undid it. A COMMIT without an answer may or may not have taken place, so the function must have the same effect
twice as once: ids are made before it is called.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Semaphore
from typing import TypeVar

from labelspace.errors import DatabaseError
from labelspace.server.database.dialects import Connection, Dialect, Session

Result = TypeVar("Result")
SIZE = 8  # connections of a process; a PostgreSQL server allows 100 to all of its clients
WAIT_SECONDS = 30.0  # for which a thread waits for a free connection
PATIENCE = 10.0  # seconds in which a lost database may come back, such as a server that restarts
PAUSE = 0.05  # seconds between two attempts


class Connections:
    """Connections to one database; each is used by one thread at a time."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._closed = Event()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._idle = deque[Connection]()  # the last one first; threads may use it without a lock
        self._free = Semaphore(SIZE)

    def open(self) -> None:
        """Connect once, without patience: a wrong address or password is an error at once."""
        try:
            self._idle.append(self._dialect.connect())
        except self._dialect.error as error:
            raise self._dialect.explained(error) from error

    def close(self) -> None:
        """Close all connections; a connection in use is closed when it is given back."""
        self._closed.set()
        with suppress(IndexError):  # once there is none
            while True:
                self._idle.pop().close()

    def read(self, work: Callable[[Session], Result], patience: float = PATIENCE) -> Result:
        """Return what ``work`` returns, which only queries; a lost database has ``patience`` seconds to come back."""
        deadline = time.monotonic() + patience
        fresh = False
        while True:
            try:
                with self._connection(fresh) as connection:
                    return work(Session(connection, self._dialect))
            except self._dialect.error as error:
                if not self._dialect.is_passing(error) or (fresh and time.monotonic() > deadline):
                    raise self._dialect.explained(error) from error
            fresh = True
            time.sleep(PAUSE)

    def write(self, work: Callable[[Session], Result]) -> Result:
        """Return what ``work`` returns; its statements are committed together, or not at all if it raises."""

        def transaction(session: Session) -> Result:
            session.change(self._dialect.begin)
            result = work(session)
            session.change("COMMIT")
            return result

        return self.read(transaction)

    @contextmanager
    def _connection(self, fresh: bool) -> Iterator[Connection]:
        """Yield an idle or a fresh connection. After an error it is closed, which undoes what was not committed."""
        if self._process != os.getpid():
            self._inherited = self._idle  # the parent of a forked process still uses them: do not even close them
            self._begin()
        if self._closed.is_set():
            raise DatabaseError(f"{self._dialect.shown} must be open, but was closed; open it again")
        free = self._free
        if not free.acquire(timeout=WAIT_SECONDS):
            problem = f"all {SIZE} connections were in use for {WAIT_SECONDS:.0f} seconds"
            raise DatabaseError(f"{self._dialect.shown} must answer, but {problem}; try again later")
        try:
            self._dialect.check_unmoved()
            connection = self._take(fresh)
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)
            if self._closed.is_set():  # meanwhile
                self.close()
        finally:
            free.release()

    def _take(self, fresh: bool) -> Connection:
        with suppress(IndexError):
            connection = self._idle.pop()
            if not fresh:
                return connection
            connection.close()  # idle connections were probably lost with the other one
        return self._dialect.connect()
