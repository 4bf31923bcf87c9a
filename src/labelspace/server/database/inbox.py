"""Statements about documents for review. All that write are called in a transaction."""

import hashlib
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from labelspace.errors import DataError
from labelspace.server.database.records import ORDERS, STATUSES, InboxDocument
from labelspace.server.database.session import Session

UNKNOWN = -inf
INSERT = """
    INSERT INTO labelspace_inbox
        (model, id, text_hash, document, text, status, version, uncertainty, disagreement, rare, random)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
SELECT_ID = "SELECT id FROM labelspace_inbox WHERE model = ? AND text_hash = ?"
SELECT_PENDING = """
    SELECT id, document, text, status, version, uncertainty, disagreement, rare, random FROM labelspace_inbox
    WHERE model = ? AND status = 'pending'"""
PENDING = {order: f"{SELECT_PENDING} ORDER BY {order} DESC, number LIMIT ?" for order in ORDERS}
# Two ranges of an index, so that those of this version are never read. No version is the empty one: it is first.
OUTDATED = [f"{SELECT_PENDING} AND version {side} ? ORDER BY version, number LIMIT ?" for side in "<>"]
UPDATE = """
    UPDATE labelspace_inbox
    SET version = ?, uncertainty = ?, disagreement = ?, rare = ?, random = COALESCE(?, random)
    WHERE model = ? AND id = ?"""
SET_STATUS = "UPDATE labelspace_inbox SET status = ? WHERE model = ? AND id = ?"
COUNTS = "SELECT status, COUNT(*) FROM labelspace_inbox WHERE model = ? GROUP BY status"


def add(session: Session, model: str, documents: Sequence[InboxDocument], stored: set[str]) -> None:
    """Store documents whose text is new, and add their ids to ``stored``.

    It has those of an earlier call of the same transaction, whose commit may not have been answered.
    """
    for document in documents:
        hashed = hashlib.sha256(document.text.encode()).hexdigest()
        values = [document.values.get(order, UNKNOWN) for order in ORDERS[:-1]]
        chance = document.values.get("random", int(hashed[:13], 16) / 16**13)
        row = model, document.id, hashed, document.document, document.text, document.status, document.version or ""
        if session.change(INSERT, *row, *values, chance):
            stored.add(document.id)
            continue
        known = session.first(SELECT_ID, model, hashed)
        if known is None:
            problem = f"{document.id!r} is stored with another text"
            raise DataError(f"ids of documents must be unique, but {problem}; leave the id out for a new one")
        if known[0] != document.id:
            stored.discard(document.id)


def pending(session: Session, model: str, order: str, n: int) -> list[InboxDocument]:
    """Documents to review, those with the highest value first."""
    return [_to_document(*row) for row in session.rows(PENDING[order], model, n)]


def outdated(session: Session, model: str, version: str, n: int) -> list[InboxDocument]:
    """Documents to review whose values are of another version, those without values first."""
    found: list[InboxDocument] = []
    for query in OUTDATED:
        found += [_to_document(*row) for row in session.rows(query, model, version, n - len(found))]
    return found


def update_values(session: Session, model: str, version: str, values: Mapping[str, Mapping[str, float]]) -> None:
    """Store the values that a version of a model gives to documents."""
    session.change_each(
        UPDATE,
        [
            (version, *(float(given.get(order, UNKNOWN)) for order in ORDERS[:-1]), given.get("random"), model, id)
            for id, given in sorted(values.items())  # in one order, so that two writers do not wait for each other
        ],
    )


def counts(session: Session, model: str) -> dict[str, int]:
    """How many documents have each status."""
    return dict.fromkeys(STATUSES, 0) | dict(session.rows(COUNTS, model))


def _to_document(id: str, document: str | None, text: str, status: Any, version: str, *values: float) -> InboxDocument:  # noqa: ANN401
    known = {order: value for order, value in zip(ORDERS, values, strict=True) if value != UNKNOWN}
    return InboxDocument(
        id=id, document=document, text=text, status=status, values=known, version=version or None
    )  # fmt: skip
