"""The database of a server: every method is one transaction, and may be called from any thread."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from labelspace.errors import DataError, ParameterError
from labelspace.report.terminal import json_text
from labelspace.server.database import dialects, records
from labelspace.server.database.connections import Connections
from labelspace.server.database.dialects import Dialect, PostgreSQL, Session, SQLite
from labelspace.server.database.records import ACTIVE, ORDERS, STATUSES, Feedback, InboxDocument, Job, new_id

ALL = 2**62  # rows; a limit that every database understands
UNKNOWN = -inf
HEARTBEAT_SECONDS = 60.0  # after which a job without a sign of life has failed; it reports every 10 seconds
ENDED = "the process that ran it ended"
CHANGES = ("state", "step", "progress", "error", "result")

ADD_FEEDBACK = """
    INSERT INTO labelspace_feedback
        (model, id, text, accepted, rejected, added, annotator, document, version, created)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (model, id) DO NOTHING"""
FEEDBACK_CONTENT = "SELECT text, accepted, rejected, added FROM labelspace_feedback WHERE model = ? AND id = ?"
FEEDBACK = """
    SELECT id, text, accepted, rejected, added, annotator AS "by", document, version, created, is_learned AS learned
    FROM labelspace_feedback WHERE model = ? ORDER BY number LIMIT ? OFFSET ?"""
FEEDBACK_COUNT = "SELECT COUNT(*) FROM labelspace_feedback WHERE model = ?"
NEW_FEEDBACK_COUNT = "SELECT COUNT(*) FROM labelspace_feedback WHERE model = ? AND is_learned = 0"
NEW_FEEDBACK = """
    SELECT id, text, accepted, rejected, added, annotator AS "by", document, version, created, is_learned AS learned
    FROM labelspace_feedback WHERE model = ? AND is_learned = 0 ORDER BY number"""
ADD_TO_BATCH = "INSERT INTO labelspace_batches (model, batch, id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
BATCHES = """
    SELECT batch, feedback.id AS id, is_learned
    FROM labelspace_batches JOIN labelspace_feedback AS feedback
        ON feedback.model = labelspace_batches.model AND feedback.id = labelspace_batches.id
    WHERE labelspace_batches.model = ?"""
SET_LEARNED = "UPDATE labelspace_feedback SET is_learned = ? WHERE model = ? AND id = ?"
DELETE_BATCH = "DELETE FROM labelspace_batches WHERE model = ? AND batch = ?"
DELETE_FROM_BATCHES = "DELETE FROM labelspace_batches WHERE model = ? AND id = ?"
FEEDBACK_DOCUMENT = "SELECT document FROM labelspace_feedback WHERE model = ? AND id = ?"
DELETE_FEEDBACK = "DELETE FROM labelspace_feedback WHERE model = ? AND id = ?"
# Changes nothing, but other transactions that change the document wait until this one ends.
LOCK_DOCUMENT = "UPDATE labelspace_inbox SET status = status WHERE model = ? AND id = ?"
MARK_PENDING = """
    UPDATE labelspace_inbox SET status = 'pending' WHERE model = ? AND id = ? AND status = 'done' AND NOT EXISTS
        (SELECT 1 FROM labelspace_feedback WHERE model = ? AND document = ?)"""

ADD_DOCUMENT = """
    INSERT INTO labelspace_inbox
        (model, id, text_hash, document, text, status, version, uncertainty, disagreement, rare, random)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
DOCUMENT_ID = "SELECT id FROM labelspace_inbox WHERE model = ? AND text_hash = ?"
SELECT_PENDING = """
    SELECT id, document, text, status, version, uncertainty, disagreement, rare, random FROM labelspace_inbox
    WHERE model = ? AND status = 'pending'"""
PENDING = {order: f"{SELECT_PENDING} ORDER BY {order} DESC, number LIMIT ?" for order in ORDERS}
# Two ranges of an index, so that documents of this version are never read. A document without a version has the empty
# one: it is first.
OUTDATED = [f"{SELECT_PENDING} AND version {side} ? ORDER BY version, number LIMIT ?" for side in "<>"]
UPDATE_VALUES = """
    UPDATE labelspace_inbox
    SET version = ?, uncertainty = ?, disagreement = ?, rare = ?, random = COALESCE(?, random)
    WHERE model = ? AND id = ?"""
SET_STATUS = "UPDATE labelspace_inbox SET status = ? WHERE model = ? AND id = ?"
INBOX_COUNTS = "SELECT status, COUNT(*) AS n FROM labelspace_inbox WHERE model = ? GROUP BY status"

JOBS = """
    SELECT id, model, kind, state, step, progress, created, started, ended, error, result, heartbeat
    FROM labelspace_jobs"""
END_OLD_JOBS = """
    UPDATE labelspace_jobs SET state = 'failed', error = ?, ended = heartbeat
    WHERE model = ? AND kind = ? AND state IN ('queued', 'running') AND heartbeat < ?"""
ADD_JOB = """
    INSERT INTO labelspace_jobs (id, model, kind, state, step, progress, created, heartbeat)
    VALUES (?, ?, ?, 'queued', '', 0, ?, ?) ON CONFLICT DO NOTHING"""
UPDATE_JOB = """
    UPDATE labelspace_jobs SET
        state = COALESCE(?, state), step = COALESCE(?, step), progress = COALESCE(?, progress),
        error = COALESCE(?, error), result = COALESCE(?, result),
        started = COALESCE(started, ?), ended = COALESCE(ended, ?), heartbeat = ?
    WHERE id = ? AND state IN ('queued', 'running')"""

PUT_FIGURES = """
    INSERT INTO labelspace_figures (model, version, figures) VALUES (?, ?, ?)
    ON CONFLICT (model, version) DO UPDATE SET figures = excluded.figures"""
FIGURES = "SELECT figures FROM labelspace_figures WHERE model = ? AND version = ?"


def open_database(url: str) -> "Database":
    """Open the database at ``sqlite:///relative.db``, ``sqlite:////absolute.db``, ``postgresql://...`` or a plain path.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     database = open_database(f"{folder}/feedback.db")
    ...     ids = database.add_feedback("demo", [Feedback(text="knead the dough", accepted=["bread"])])
    ...     print([entry.accepted for entry in database.feedback("demo")], database.inbox_counts("demo"))
    ...     database.close()
    [['bread']] {'pending': 0, 'done': 0, 'skipped': 0}
    """
    connections = Connections(_dialect(url))
    try:
        connections.open()
        if not connections.read(dialects.has_schema):
            connections.write(dialects.create_schema)
        elif connections.read(dialects.is_old):
            connections.write(dialects.upgrade_schema)
        connections.read(dialects.check_schema)
    except BaseException:
        connections.close()
        raise
    return Database(connections)


class Database:
    """What a server keeps. Names of models and ids are data: any text without NUL and lone surrogates."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def add_feedback(self, model: str, entries: Sequence[Feedback]) -> list[str]:
        """Store all entries or none, durably, and return their ids. Inbox documents that they name are done.

        An entry whose id is already stored is skipped; with another text or other labels it is an error.
        """
        records.check_names(model=model)
        for entry in entries:
            entry.check()

        def add(session: Session) -> None:
            created = session.now()
            for entry in entries:
                if _add_entry(session, model, entry, created) and entry.document is not None:
                    _mark_done(session, model, entry.document)

        self._connections.write(add)
        return [entry.id for entry in entries]

    def withdraw_feedback(self, model: str, id: str) -> bool:
        """Delete an entry; return False if there is none. Its document is pending unless another entry names it."""
        records.check_names(model=model, id=id)
        deleted = []  # also by an attempt whose commit was not answered

        def withdraw(session: Session) -> None:
            document = session.value(FEEDBACK_DOCUMENT, model, id)
            if document is not None:
                session.change(LOCK_DOCUMENT, model, document)
            is_deleted = session.change(DELETE_FEEDBACK, model, id) > 0
            session.change(DELETE_FROM_BATCHES, model, id)
            if is_deleted and document is not None:
                session.change(MARK_PENDING, model, document, model, document)
            deleted.append(is_deleted)

        self._connections.write(withdraw)
        return any(deleted)

    def feedback(self, model: str, limit: int | None = None, offset: int = 0) -> list[Feedback]:
        """Return entries, the oldest first."""
        records.check_names(model=model)
        limit = ALL if limit is None else limit
        records.check_count("limit", limit)
        records.check_count("offset", offset)
        return [_to_feedback(row) for row in self._rows(FEEDBACK, model, limit, offset)]

    def count_feedback(self, model: str) -> int:
        """Return the number of entries."""
        records.check_names(model=model)
        return int(self._connections.read(lambda session: session.value(FEEDBACK_COUNT, model)))

    def count_new_feedback(self, model: str) -> int:
        """Return the number of entries that were not learned yet."""
        records.check_names(model=model)
        return int(self._connections.read(lambda session: session.value(NEW_FEEDBACK_COUNT, model)))

    def take_feedback(self, model: str) -> tuple[str, list[Feedback]]:
        """Return the entries that were not learned yet, the oldest first, and the name of this batch.

        Once a model that learned the batch is on disk, ``settle_feedback`` marks its entries as learned. If the
        learning is killed before that, they are in the next batch again.
        """
        records.check_names(model=model)

        def take(session: Session) -> tuple[str, list[Feedback]]:
            entries = [_to_feedback(row) for row in session.rows(NEW_FEEDBACK, model)]
            batch = batch_of(entries)
            session.change_each(ADD_TO_BATCH, [(model, batch, entry.id) for entry in entries])
            return batch, entries

        return self._connections.write(take)

    def settle_feedback(
        self, model: str, learned: Collection[str], is_complete: bool, known: Collection[str] = ()
    ) -> None:
        """Mark the entries of these batches as learned.

        With ``is_complete`` these are all that the model has learned: entries of other batches are marked as new, and
        batches are forgotten that are not ``known`` to the model either: they were taken, but never learned.
        """
        records.check_names(model=model)

        def settle(session: Session) -> None:
            before: dict[str, bool] = {}
            now: dict[str, bool] = {}
            others: set[str] = set()
            for row in session.rows(BATCHES, model):
                before[row["id"]] = bool(row["is_learned"])
                now[row["id"]] = now.get(row["id"], False) or row["batch"] in learned
                if row["batch"] not in learned and row["batch"] not in known:
                    others.add(row["batch"])
            changed = [id for id in sorted(now) if now[id] != before[id] and (now[id] or is_complete)]
            session.change_each(SET_LEARNED, [(int(now[id]), model, id) for id in changed])
            if is_complete:
                session.change_each(DELETE_BATCH, [(model, batch) for batch in sorted(others)])

        self._connections.write(settle)

    def add_documents(self, model: str, documents: Sequence[InboxDocument]) -> tuple[int, int]:
        """Store documents for review; return how many were stored, and how many have a text that was known."""
        records.check_names(model=model)
        for document in documents:
            document.check()
        stored: set[str] = set()  # ids; also of an earlier attempt, whose commit may not have been answered

        def add(session: Session) -> None:
            for document in documents:
                _add_document(session, model, document, stored)

        self._connections.write(add)
        return len(stored), len(documents) - len(stored)

    def pending(self, model: str, order: str, n: int) -> list[InboxDocument]:
        """Return at most n documents to review: the highest value first, of equal ones the first that was stored."""
        records.check_names(model=model)
        records.check_choice("order", order, ORDERS)
        records.check_count("n", n)
        return [_to_document(row) for row in self._rows(PENDING[order], model, n)]

    def outdated(self, model: str, version: str, n: int) -> list[InboxDocument]:
        """Return at most n documents to review whose values another version gave, first those without values."""
        records.check_names(model=model, version=version)
        records.check_count("n", n)

        def find(session: Session) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = []
            for query in OUTDATED:
                found += session.rows(query, model, version, n - len(found))
            return found

        return [_to_document(row) for row in self._connections.read(find)]

    def update_values(self, model: str, version: str, values_by_id: Mapping[str, Mapping[str, float]]) -> None:
        """Store the values by order that a version gives to documents; a missing ``random`` is kept as it is."""
        records.check_names(model=model, version=version)
        rows = []
        for id, values in sorted(values_by_id.items()):  # in one order, so that two writers do not wait for each other
            records.check_names(id=id)
            records.check_values(values)
            rows.append((version, *_columns(values), values.get("random"), model, id))
        self._connections.write(lambda session: session.change_each(UPDATE_VALUES, rows))

    def set_status(self, model: str, id: str, status: str) -> bool:
        """Set the status of a document; return False if there is none with this id."""
        records.check_names(model=model, id=id)
        records.check_choice("status", status, STATUSES)
        return self._connections.write(lambda session: session.change(SET_STATUS, status, model, id)) > 0

    def inbox_counts(self, model: str) -> dict[str, int]:
        """Return how many documents are pending, done and skipped."""
        records.check_names(model=model)
        found = {row["status"]: row["n"] for row in self._rows(INBOX_COUNTS, model)}
        return dict.fromkeys(STATUSES, 0) | found

    def start_job(self, model: str, kind: str) -> Job | None:
        """Return a new job, queued, or None if a job of this model and kind is active."""
        records.check_names(model=model, kind=kind)
        id = new_id()

        def start(session: Session) -> Job | None:
            now = session.now()
            session.change(END_OLD_JOBS, ENDED, model, kind, now - HEARTBEAT_SECONDS)
            session.change(ADD_JOB, id, model, kind, now, now)
            return _job(session, id)

        return self._connections.write(start)

    def update_job(self, id: str, **changes: Any) -> None:  # noqa: ANN401 - of several types
        """Change state, step, progress, error or result of an active job, or nothing; also renew its heartbeat.

        A change of a job that ended is an error: its process must stop, since a new job may have begun.
        """
        records.check_names(id=id)
        for name in changes:
            records.check_choice("what is changed of a job", name, CHANGES)
        state = changes.get("state")
        records.check_choice("state", changes.get("state", "queued"), records.STATES)
        progress = changes.get("progress", 0.0)
        if not 0 <= progress <= 1:
            raise ParameterError(f"progress must be from 0 to 1, but is {progress}; give a share of the work")
        values = [_stored(changes.get(name), is_json=name == "result") for name in CHANGES]

        def update(session: Session) -> None:
            now = session.now()
            started = None if state in (None, "queued") else now
            ended = now if state in ("done", "failed") else None
            if session.change(UPDATE_JOB, *values, started, ended, now, id):
                return
            job = _job(session, id)
            if job is None or job.state != state:  # else this change was committed, but that was not answered
                problem = f"{id!r} is none" if job is None else f"{id!r} is {job.state} ({job.error})"
                raise DataError(f"a job that is changed must be queued or running, but {problem}; start a new one")

        self._connections.write(update)

    def job(self, id: str) -> Job | None:
        """Return the job with an id, or None."""
        records.check_names(id=id)
        return self._connections.read(lambda session: _job(session, id))

    def jobs(self, limit: int = 50) -> list[Job]:
        """Return jobs, the newest first."""
        records.check_count("limit", limit)
        return self._connections.read(lambda session: _jobs(session, f"{JOBS} ORDER BY number DESC LIMIT ?", limit))

    def put_figures(self, model: str, version: str, figures: Mapping[str, Any]) -> None:
        """Store the figures of a version of a model, in place of earlier ones."""
        records.check_names(model=model, version=version)
        text = json_text(figures)
        self._connections.write(lambda session: session.change(PUT_FIGURES, model, version, text))

    def figures(self, model: str, version: str) -> dict[str, Any] | None:
        """Return the figures of a version of a model, or None."""
        records.check_names(model=model, version=version)
        found = self._connections.read(lambda session: session.value(FIGURES, model, version))
        return None if found is None else json.loads(found)

    def ping(self) -> None:
        """Raise DatabaseError if the database does not answer."""
        self._connections.read(dialects.check_schema, patience=0)

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    def _rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        return self._connections.read(lambda session: session.rows(sql, *values))


def batch_of(entries: Sequence[Feedback]) -> str:
    """Return the name of a batch: a hash of the entries, 64 hexadecimal digits."""
    content = [[entry.id, entry.text, entry.accepted, entry.rejected, entry.added] for entry in entries]
    return hashlib.sha256(json_text(content).encode()).hexdigest()


def _dialect(url: str) -> Dialect:
    """Return the kind of database that a URL or a path names."""
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


def _add_entry(session: Session, model: str, entry: Feedback, created: float) -> bool:
    """Store an entry; return False if it is stored already. A different entry with its id is an error."""
    content = (entry.text, *map(json_text, (entry.accepted, entry.rejected, entry.added)))
    rest = (entry.by, entry.document, entry.version, created)
    while not session.change(ADD_FEEDBACK, model, entry.id, *content, *rest):
        stored = session.first(FEEDBACK_CONTENT, model, entry.id)
        if stored is None:  # it was withdrawn meanwhile
            continue
        if tuple(stored) != content:
            problem = f"{entry.id!r} is stored with another text or other labels"
            remedy = "give another id, or withdraw what is stored"
            raise DataError(f"ids of feedback must be unique, but {problem}; {remedy}")
        return False
    return True


def _mark_done(session: Session, model: str, document: str) -> None:
    if not session.change(SET_STATUS, "done", model, document):
        rule = f"document must be the id of a document in the inbox of {model!r}"
        raise DataError(f"{rule}, but {document!r} is none; give the id that the inbox gave, or leave it out")


def _add_document(session: Session, model: str, document: InboxDocument, stored: set[str]) -> None:
    """Store a document if its text is new, and then add its id to ``stored``."""
    hashed = hashlib.sha256(document.text.encode()).hexdigest()
    chance = document.values.get("random", int(hashed[:13], 16) / 16**13)
    row = (model, document.id, hashed, document.document, document.text, document.status, document.version or "")
    if session.change(ADD_DOCUMENT, *row, *_columns(document.values), chance):
        stored.add(document.id)
        return
    known = session.value(DOCUMENT_ID, model, hashed)
    if known is None:
        problem = f"{document.id!r} is stored with another text"
        raise DataError(f"ids of documents must be unique, but {problem}; leave the id out for a new one")
    if known != document.id:
        stored.discard(document.id)


def _columns(values: Mapping[str, float]) -> list[float]:
    """Return the stored values of all orders but ``random``."""
    return [float(values.get(order, UNKNOWN)) for order in ORDERS[:-1]]


def _to_feedback(row: dict[str, Any]) -> Feedback:
    lists = {name: json.loads(row[name]) for name in ("accepted", "rejected", "added")}
    return Feedback(**{**row, **lists, "created": dialects.iso(row["created"]), "learned": bool(row["learned"])})


def _to_document(row: dict[str, Any]) -> InboxDocument:
    values = {order: row.pop(order) for order in ORDERS}
    known = {order: value for order, value in values.items() if value != UNKNOWN}
    return InboxDocument(**{**row, "values": known, "version": row["version"] or None})


def _jobs(session: Session, query: str, *values: object) -> list[Job]:
    """Return the jobs that a query finds; a job whose process has ended without a word has failed."""
    now = session.now()
    found = session.rows(query, *values)
    for row in found:
        if row["state"] in ACTIVE and row["heartbeat"] < now - HEARTBEAT_SECONDS:
            row |= {"state": "failed", "error": ENDED, "ended": row["heartbeat"]}
        for name in ("created", "started", "ended", "heartbeat"):
            row[name] = None if row[name] is None else dialects.iso(row[name])
        row["result"] = None if row["result"] is None else json.loads(row["result"])
    return [Job(**row) for row in found]


def _job(session: Session, id: str) -> Job | None:
    found = _jobs(session, f"{JOBS} WHERE id = ?", id)
    return found[0] if found else None


def _stored(value: Any, is_json: bool) -> Any:  # noqa: ANN401 - of several types
    """Return the changed value of a job's column; characters that cannot be stored are replaced in texts.

    So a failure is reported whatever names of files its message has.
    """
    if is_json:
        return None if value is None else json_text(value)
    if isinstance(value, str):
        return records.NOT_STORABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    return value if value is None else float(value)
