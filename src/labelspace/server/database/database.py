"""The database of a server: every method is one transaction, and may be called from any thread."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from labelspace.errors import ParameterError
from labelspace.report.terminal import json_text
from labelspace.server.database import feedback, inbox, jobs
from labelspace.server.database.checks import (
    check_choice,
    check_count,
    check_documents,
    check_feedback,
    check_names,
    check_values,
)
from labelspace.server.database.connections import Connections
from labelspace.server.database.dialect import Dialect
from labelspace.server.database.postgresql import PostgreSQL
from labelspace.server.database.records import ORDERS, STATUSES, Feedback, InboxDocument, Job, new_id
from labelspace.server.database.schema import check_schema, create_schema, has_schema
from labelspace.server.database.sqlite import SQLite

ALL = 2**62  # rows; a limit that every database understands
PUT_FIGURES = """
    INSERT INTO labelspace_figures (model, version, figures) VALUES (?, ?, ?)
    ON CONFLICT (model, version) DO UPDATE SET figures = excluded.figures"""
FIGURES = "SELECT figures FROM labelspace_figures WHERE model = ? AND version = ?"


def open_database(url: str) -> "Database":
    """The database at ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``postgresql://...`` or a plain path.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     database = open_database(f"{folder}/feedback.db")
    ...     ids = database.add_feedback("demo", [Feedback(text="knead the dough", accepted=["bread"])])
    ...     print([entry.accepted for entry in database.feedback("demo")], database.inbox_counts("demo"))
    ...     database.close()
    [['bread']] {'pending': 0, 'done': 0, 'skipped': 0}
    """
    dialect = _dialect(url)
    connections = Connections(dialect)
    try:
        connections.open()
        if not connections.read(has_schema):
            connections.write(create_schema)
        connections.read(check_schema)
    except BaseException:
        connections.close()
        raise
    return Database(connections)


class Database:
    """What a server keeps. Names of models and ids are data: any text without NUL and lone surrogates."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def add_feedback(self, model: str, entries: Sequence[Feedback]) -> list[str]:
        """Store all entries or none, durably; their ids. Inbox documents that they name are done.

        An id that is stored already is left as it is; with another text or other labels it is an error.
        """
        check_names(model=model)
        check_feedback(entries)
        self._connections.write(partial(feedback.add, model=model, entries=entries))
        return [entry.id for entry in entries]

    def withdraw_feedback(self, model: str, id: str) -> bool:
        """Delete an entry; False where there is none. Its inbox document is pending unless another entry names it."""
        check_names(model=model, id=id)
        found = []  # also by a transaction whose commit was not answered
        self._connections.write(lambda session: found.append(feedback.withdraw(session, model, id)))
        return any(found)

    def feedback(self, model: str, limit: int | None = None, offset: int = 0) -> list[Feedback]:
        """Entries, the oldest first."""
        check_names(model=model)
        limit = ALL if limit is None else limit
        check_count("limit", limit)
        check_count("offset", offset)
        return self._connections.read(partial(feedback.listed, model=model, limit=limit, offset=offset))

    def count_feedback(self, model: str) -> int:
        """The number of entries."""
        check_names(model=model)
        return self._connections.read(lambda session: session.count(feedback.COUNT, model))

    def add_documents(self, model: str, documents: Sequence[InboxDocument]) -> tuple[int, int]:
        """Store documents for review; how many were stored, and how many have a text that was known."""
        check_names(model=model)
        check_documents(documents)
        stored: set[str] = set()
        self._connections.write(partial(inbox.add, model=model, documents=documents, stored=stored))
        return len(stored), len(documents) - len(stored)

    def pending(self, model: str, order: str, n: int) -> list[InboxDocument]:
        """At most n documents to review, those with the highest value first, then those that were stored first."""
        check_names(model=model)
        check_choice("order", order, ORDERS)
        check_count("n", n)
        return self._connections.read(partial(inbox.pending, model=model, order=order, n=n))

    def outdated(self, model: str, version: str, n: int) -> list[InboxDocument]:
        """At most n documents to review whose values are not of this version of the model."""
        check_names(model=model, version=version)
        check_count("n", n)
        return self._connections.read(partial(inbox.outdated, model=model, version=version, n=n))

    def update_values(self, model: str, version: str, values_by_id: Mapping[str, Mapping[str, float]]) -> None:
        """Store values by order of documents. The order ``random`` may be left out: each document has such a value."""
        check_names(model=model, version=version)
        for id, values in values_by_id.items():
            check_names(id=id)
            check_values(values)
        self._connections.write(partial(inbox.update_values, model=model, version=version, values=values_by_id))

    def set_status(self, model: str, id: str, status: str) -> bool:
        """Set the status of a document; False where there is none."""
        check_names(model=model, id=id)
        check_choice("status", status, STATUSES)
        return self._connections.write(lambda session: session.change(inbox.SET_STATUS, status, model, id)) > 0

    def inbox_counts(self, model: str) -> dict[str, int]:
        """How many documents are pending, done and skipped."""
        check_names(model=model)
        return self._connections.read(partial(inbox.counts, model=model))

    def start_job(self, model: str, kind: str) -> Job | None:
        """A new job, queued; None where one of the model and kind is active."""
        check_names(model=model, kind=kind)
        return self._connections.write(partial(jobs.start, id=new_id(), model=model, kind=kind))

    def update_job(self, id: str, **changes: Any) -> None:  # noqa: ANN401 - of several types
        """Change state, step, progress, error or result of an active job, or nothing; it also beats the heartbeat.

        A job that ended is an error: whoever still runs it must stop, since another may have begun.
        """
        check_names(id=id)
        jobs.check_changes(changes)
        self._connections.write(partial(jobs.update, id=id, changes=changes))

    def job(self, id: str) -> Job | None:
        """The job with an id."""
        check_names(id=id)
        return self._connections.read(partial(jobs.get, id=id))

    def jobs(self, limit: int = 50) -> list[Job]:
        """Jobs, the newest first."""
        check_count("limit", limit)
        return self._connections.read(partial(jobs.listed, limit=limit))

    def put_figures(self, model: str, version: str, figures: Mapping[str, Any]) -> None:
        """Store what was measured of a version of a model, in place of what was stored before."""
        check_names(model=model, version=version)
        text = json_text(figures)
        self._connections.write(lambda session: session.change(PUT_FIGURES, model, version, text))

    def figures(self, model: str, version: str) -> dict[str, Any] | None:
        """What was measured of a version of a model."""
        check_names(model=model, version=version)
        row = self._connections.read(lambda session: session.first(FIGURES, model, version))
        return json.loads(row[0]) if row else None

    def ping(self) -> None:
        """Raise where the database does not answer."""
        self._connections.read(check_schema, patience=0)

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()


def _dialect(url: str) -> Dialect:
    """The kind of database that a URL or a path names."""
    found = re.match(r"([A-Za-z][\w+.-]+):", url)  # one letter is a drive
    scheme = found[1] if found else None
    if scheme in ("postgresql", "postgres") and url.startswith(f"{scheme}://"):
        return PostgreSQL(url)
    path = url.removeprefix("sqlite:///") if scheme == "sqlite" else url
    if (scheme and path == url) or path in ("", ":memory:") or "\x00" in path:
        shown = f"{scheme}:..." if scheme else repr(url[:80])  # the rest may hold a password
        rule = "a database must be FILE, sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"
        raise ParameterError(f"{rule}, but is {shown}; write one of these")
    return SQLite(Path(path))
