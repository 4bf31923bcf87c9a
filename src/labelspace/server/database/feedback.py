"""Statements about feedback. All that write are called in a transaction."""

import json
from collections.abc import Sequence
from typing import Any

from labelspace.errors import DataError
from labelspace.report.terminal import json_text
from labelspace.server.database.records import Feedback
from labelspace.server.database.session import Session, iso

INSERT = """
    INSERT INTO labelspace_feedback
        (model, id, text, accepted, rejected, added, annotator, document, version, created)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (model, id) DO NOTHING"""
SELECT_CONTENT = "SELECT text, accepted, rejected, added FROM labelspace_feedback WHERE model = ? AND id = ?"
SELECT = """
    SELECT id, text, accepted, rejected, added, annotator, document, version, created FROM labelspace_feedback
    WHERE model = ? ORDER BY number LIMIT ? OFFSET ?"""
COUNT = "SELECT COUNT(*) FROM labelspace_feedback WHERE model = ?"
DELETE = "DELETE FROM labelspace_feedback WHERE model = ? AND id = ?"
DOCUMENT_OF = "SELECT document FROM labelspace_feedback WHERE model = ? AND id = ?"
# Changes nothing, but others that change the document wait until the transaction ends.
LOCK_DOCUMENT = "UPDATE labelspace_inbox SET status = status WHERE model = ? AND id = ?"
MARK_DONE = "UPDATE labelspace_inbox SET status = 'done' WHERE model = ? AND id = ?"
MARK_PENDING = """
    UPDATE labelspace_inbox SET status = 'pending' WHERE model = ? AND id = ? AND status = 'done' AND NOT EXISTS
        (SELECT 1 FROM labelspace_feedback WHERE model = ? AND document = ?)"""


def add(session: Session, model: str, entries: Sequence[Feedback]) -> None:
    """Store entries, and mark their documents as done; those that are there already are left as they are."""
    created = session.now()
    for entry in entries:
        content = entry.text, *map(json_text, (entry.accepted, entry.rejected, entry.added))
        rest = entry.by, entry.document, entry.version, created
        if _is_new(session, model, entry.id, content, rest) and entry.document is not None:
            _mark_done(session, model, entry.document)


def withdraw(session: Session, model: str, id: str) -> bool:
    """Delete an entry; its document is pending again unless another entry names it."""
    row = session.first(DOCUMENT_OF, model, id)
    document = row[0] if row else None
    if document is not None:
        session.change(LOCK_DOCUMENT, model, document)
    is_deleted = session.change(DELETE, model, id) > 0
    if is_deleted and document is not None:
        session.change(MARK_PENDING, model, document, model, document)
    return is_deleted


def listed(session: Session, model: str, limit: int, offset: int) -> list[Feedback]:
    """Entries, the oldest first."""
    return [_to_feedback(*row) for row in session.rows(SELECT, model, limit, offset)]


def _is_new(session: Session, model: str, id: str, content: tuple[str, ...], rest: tuple[object, ...]) -> bool:
    """Store an entry; False where the same is there. Another with its id is an error."""
    while not session.change(INSERT, model, id, *content, *rest):
        stored = session.first(SELECT_CONTENT, model, id)
        if stored is not None and tuple(stored) != content:
            raise DataError(
                f"ids of feedback must be unique, but {id!r} is stored with another text or other labels; "
                "give another id, or withdraw what is stored"
            )
        if stored is not None:  # else it was withdrawn meanwhile
            return False
    return True


def _mark_done(session: Session, model: str, document: str) -> None:
    if not session.change(MARK_DONE, model, document):
        raise DataError(
            f"document must be the id of a document in the inbox of {model!r}, but {document!r} is none; "
            "give the id that the inbox gave, or leave it out"
        )


def _to_feedback(id: str, text: str, accepted: str, rejected: str, added: str, *rest: Any) -> Feedback:  # noqa: ANN401
    by, document, version, created = rest
    return Feedback(
        id=id, text=text, accepted=json.loads(accepted), rejected=json.loads(rejected), added=json.loads(added),
        by=by, document=document, version=version, created=iso(created),
    )  # fmt: skip
