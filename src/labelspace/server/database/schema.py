"""Create the tables, and check the version of their layout.

Times are seconds since 1970. JSON is text. In an inbox, an unknown value is minus infinity: it sorts last in every
database, and an index needs no NULL.
"""

from labelspace.errors import DatabaseError
from labelspace.server.database.dialects import Session
from labelspace.server.database.records import ORDERS

VERSION = 1
STATEMENTS = (
    "CREATE TABLE labelspace_schema (version BIGINT NOT NULL)",
    """CREATE TABLE labelspace_feedback (
        number {number}, model {text} NOT NULL, id {text} NOT NULL,
        accepted {text} NOT NULL, rejected {text} NOT NULL, added {text} NOT NULL,
        annotator {text}, document {text}, version {text}, created DOUBLE PRECISION NOT NULL, text {text} NOT NULL,
        UNIQUE (model, id))""",
    "CREATE INDEX labelspace_feedback_number ON labelspace_feedback (model, number)",
    "CREATE INDEX labelspace_feedback_document ON labelspace_feedback (model, document)",
    """CREATE TABLE labelspace_inbox (
        number {number}, model {text} NOT NULL, id {text} NOT NULL, text_hash {text} NOT NULL,
        document {text}, status {text} NOT NULL, version {text} NOT NULL,
        uncertainty DOUBLE PRECISION NOT NULL, disagreement DOUBLE PRECISION NOT NULL,
        rare DOUBLE PRECISION NOT NULL, random DOUBLE PRECISION NOT NULL, text {text} NOT NULL,
        UNIQUE (model, id), UNIQUE (model, text_hash))""",
    "CREATE INDEX labelspace_inbox_status ON labelspace_inbox (model, status)",
    "CREATE INDEX labelspace_inbox_version ON labelspace_inbox (model, version, number) WHERE status = 'pending'",
    *(
        f"CREATE INDEX labelspace_inbox_{order} ON labelspace_inbox (model, {order} DESC, number)"
        " WHERE status = 'pending'"
        for order in ORDERS
    ),
    """CREATE TABLE labelspace_jobs (
        number {number}, id {text} NOT NULL UNIQUE, model {text} NOT NULL, kind {text} NOT NULL, state {text} NOT NULL,
        step {text} NOT NULL, progress DOUBLE PRECISION NOT NULL, created DOUBLE PRECISION NOT NULL,
        started DOUBLE PRECISION, ended DOUBLE PRECISION, error {text}, result {text},
        heartbeat DOUBLE PRECISION NOT NULL)""",
    # With this index the database itself refuses a second active job of a kind.
    """CREATE UNIQUE INDEX labelspace_jobs_active ON labelspace_jobs (model, kind)
        WHERE state IN ('queued', 'running')""",
    """CREATE TABLE labelspace_figures (
        model {text} NOT NULL, version {text} NOT NULL, figures {text} NOT NULL, PRIMARY KEY (model, version))""",
)


def create_schema(session: Session) -> None:
    """Make the tables unless they exist, in a transaction; several processes may do so at once."""
    session.rows(session.dialect.lock_schema)
    if session.count(session.dialect.has_schema):
        return
    for statement in STATEMENTS:
        session.change(statement.format(text=session.dialect.text, number=session.dialect.number))
    session.change("INSERT INTO labelspace_schema (version) VALUES (?)", VERSION)


def has_schema(session: Session) -> bool:
    """Return whether the tables exist: a user who may not make tables can use existing ones."""
    return session.count(session.dialect.has_schema) > 0


def check_schema(session: Session) -> None:
    """Raise DatabaseError for tables of a different layout."""
    row = session.first("SELECT MAX(version) FROM labelspace_schema")
    version = row[0] if row else None
    if version == VERSION:
        return
    remedy = "restore it from a backup, or name another database"
    if version is not None and version > VERSION:
        remedy = "update labelspace, or name another database"
    rule = f"{session.dialect.shown} must have tables of version {VERSION}"
    raise DatabaseError(f"{rule}, but has version {version}; {remedy}")
