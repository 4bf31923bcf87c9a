"""Statements about jobs. All that write are called in a transaction.

The process that runs a job says so from time to time: its heartbeat. A job without one for a minute has failed.
"""

import json
from collections.abc import Mapping
from typing import Any

from labelspace.errors import DataError, ParameterError
from labelspace.report.terminal import json_text
from labelspace.server.database.checks import NOT_STORABLE, check_choice
from labelspace.server.database.records import STATES, Job
from labelspace.server.database.session import Session, iso

HEARTBEAT_SECONDS = 60.0
ENDED = "the process that ran it ended"
ACTIVE = ("queued", "running")
CHANGES = ("state", "step", "progress", "error", "result")
SELECT = """
    SELECT id, model, kind, state, step, progress, created, started, ended, error, result, heartbeat
    FROM labelspace_jobs"""
END_OLD = """
    UPDATE labelspace_jobs SET state = 'failed', error = ?, ended = heartbeat
    WHERE model = ? AND kind = ? AND state IN ('queued', 'running') AND heartbeat < ?"""
INSERT = """
    INSERT INTO labelspace_jobs (id, model, kind, state, step, progress, created, heartbeat)
    VALUES (?, ?, ?, 'queued', '', 0, ?, ?) ON CONFLICT DO NOTHING"""
UPDATE = """
    UPDATE labelspace_jobs SET
        state = COALESCE(?, state), step = COALESCE(?, step), progress = COALESCE(?, progress),
        error = COALESCE(?, error), result = COALESCE(?, result),
        started = COALESCE(started, ?), ended = COALESCE(ended, ?), heartbeat = ?
    WHERE id = ? AND state IN ('queued', 'running')"""


def start(session: Session, id: str, model: str, kind: str) -> Job | None:
    """A new job; None where another of the model and kind is active."""
    now = session.now()
    session.change(END_OLD, ENDED, model, kind, now - HEARTBEAT_SECONDS)
    session.change(INSERT, id, model, kind, now, now)
    return get(session, id)


def check_changes(changes: Mapping[str, Any]) -> None:
    """Refuse what is no change of a job."""
    for name in changes:
        check_choice("what is changed of a job", name, CHANGES)
    check_choice("state", changes.get("state", "queued"), STATES)
    progress = changes.get("progress", 0.0)
    if not 0 <= progress <= 1:
        raise ParameterError(f"progress must be from 0 to 1, but is {progress}; give a share of the work")


def update(session: Session, id: str, changes: Mapping[str, Any]) -> None:
    """Change an active job, and its heartbeat."""
    now, state = session.now(), changes.get("state")
    result, progress = changes.get("result"), changes.get("progress")
    changed = session.change(
        UPDATE,
        state, _storable(changes.get("step")), None if progress is None else float(progress),
        _storable(changes.get("error")), None if result is None else json_text(result),
        None if state in (None, "queued") else now, now if state in ("done", "failed") else None, now, id,
    )  # fmt: skip
    if changed:
        return
    job = get(session, id)
    if job is None or job.state != state:  # else this transaction ended it, and its commit was not answered
        problem = f"{id!r} is none" if job is None else f"{id!r} is {job.state} ({job.error})"
        raise DataError(f"a job that is changed must be queued or running, but {problem}; start a new one")


def get(session: Session, id: str) -> Job | None:
    """The job with an id."""
    row = session.first(f"{SELECT} WHERE id = ?", id)
    return _to_job(session.now(), *row) if row else None


def listed(session: Session, limit: int) -> list[Job]:
    """Jobs, the newest first."""
    now = session.now()
    return [_to_job(now, *row) for row in session.rows(f"{SELECT} ORDER BY number DESC LIMIT ?", limit)]


def _storable(text: str | None) -> str | None:
    """A text with another character for what cannot be stored: a failure is told, whatever names of files are in it."""
    return text if text is None else NOT_STORABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def _to_job(now: float, id: str, model: str, kind: str, state: Any, step: str, progress: float, *rest: Any) -> Job:  # noqa: ANN401
    created, started, ended, error, result, heartbeat = rest
    if state in ACTIVE and heartbeat < now - HEARTBEAT_SECONDS:
        state, error, ended = "failed", ENDED, heartbeat
    return Job(
        id=id, model=model, kind=kind, state=state, step=step, progress=progress, created=iso(created),
        started=None if started is None else iso(started), ended=None if ended is None else iso(ended), error=error,
        result=None if result is None else json.loads(result), heartbeat=iso(heartbeat),
    )  # fmt: skip
