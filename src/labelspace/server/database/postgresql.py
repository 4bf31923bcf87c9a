"""PostgreSQL: a server that processes of several machines share; needs psycopg."""

import re
from typing import Any

from labelspace.errors import DatabaseError, ParameterError, require
from labelspace.server.database.dialect import Connection, Dialect

EXTRA = "postgres"
FORM = "postgresql://user:password@host:port/name"
# Unless the URL says otherwise: a host that does not answer is noticed within seconds, not hours.
DEFAULTS = {
    "application_name": "labelspace", "connect_timeout": "5",
    "keepalives_idle": "30", "keepalives_interval": "10", "keepalives_count": "3", "tcp_user_timeout": "30000",
}  # fmt: skip
# Where the server is set to answer before a commit is on disk, our commits are on disk all the same.
SESSION = (
    "SELECT set_config('lock_timeout', '30s', false), set_config('synchronous_commit',"
    " CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,"
    " false)"
)
PASSING = {
    "57P01", "57P02", "57P03",  # the server is stopped, has crashed, or starts
    "40001", "40P01",  # of transactions that wait for each other, one is undone
}  # fmt: skip
REMEDIES = {
    "28": "correct user and password of the URL",
    "3D": "create the database: createdb --encoding UTF8 --template template0 NAME",
    "42501": "grant the user CREATE on the schema, and all rights on the tables labelspace_*",
    "53100": "free disk space of the server",
    "53": "free resources of the server, or allow it more connections",
    "55P03": "end the session that keeps the table locked",
    "25006": "name a server that is no read-only copy",
}


class PostgreSQL(Dialect):
    """A database of a PostgreSQL server."""

    text = 'TEXT COLLATE "C"'
    number = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    now = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"
    begin = "BEGIN"
    lock_schema = "SELECT pg_advisory_xact_lock(7811886442)"  # any number that no other program locks
    has_schema = "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('labelspace_schema')"

    def __init__(self, url: str) -> None:
        self._psycopg: Any = require("psycopg", EXTRA, needed_by="a database at postgresql://")
        self._parameters = DEFAULTS | _parameters(url, self._psycopg)
        where = [self._parameters.get(name, "") for name in ("host", "port", "dbname")]
        host = ":".join(filter(None, where[:2]))
        super().__init__(f"the database postgresql://{host}/{where[2]}", self._psycopg.Error)

    def connect(self) -> Connection:
        """A new connection."""
        # Statements are not prepared: a pooler before the server may give each to another session.
        connection: Any = self._psycopg.connect(**self._parameters, autocommit=True, prepare_threshold=None)
        try:
            connection.execute(SESSION)
            encoding = connection.execute("SHOW server_encoding").fetchone()[0]
            if encoding != "UTF8":
                remedy = "create one: createdb --encoding UTF8 --template template0 NAME"
                raise DatabaseError(f"{self.shown} must have the encoding UTF8, but has {encoding}; {remedy}")
        except BaseException:
            connection.close()
            raise
        return connection  # type: ignore[no-any-return]

    def is_passing(self, error: Exception) -> bool:
        """Whether the connection was lost or cannot be made, or the server undid the transaction."""
        if state := _state(error):
            return state in PASSING or state.startswith("08")
        return isinstance(error, (self._psycopg.OperationalError, self._psycopg.InterfaceError))

    def remedy(self, error: Exception) -> str:
        """What the operator can do. Where there is no connection there is no state."""
        if state := _state(error):
            return next((text for key, text in REMEDIES.items() if state.startswith(key)), "see the server's log")
        return "check that the server runs, and host, user, password and name in the URL"

    def check_unmoved(self) -> None:
        """The server looks after its files."""

    def to_driver(self, sql: str) -> str:
        """A statement with ``%s`` for values."""
        return sql.replace("?", "%s")


def _parameters(url: str, psycopg: Any) -> dict[str, str]:  # noqa: ANN401 - a module that may not be installed
    """The parts of a URL. Where it is malformed, any part may be the password, so the error shows none."""
    _, _, rest = url.partition("://")
    is_valid = rest.count("@") <= 1 and "@" not in rest.partition("/")[2]
    try:
        parts: dict[str, str] = psycopg.conninfo.conninfo_to_dict(url) if is_valid else {}
    except psycopg.Error:
        parts = {}
    if not parts or not re.fullmatch("[0-9,]*", parts.get("port") or ""):
        raise ParameterError(
            f"a PostgreSQL URL must be {FORM}, but the one given is not; "
            "write special characters of the password as %40 for @, %2F for /, %3A for :"
        )
    return {name: value for name, value in parts.items() if value is not None}


def _state(error: Exception) -> str:
    return getattr(error, "sqlstate", None) or ""
