"""Connect to PostgreSQL: a server that processes of several machines share; needs psycopg."""

import re
from typing import Any, ClassVar

from labelspace.errors import DatabaseError, ParameterError, require
from labelspace.server.database.dialect import Connection, Dialect

EXTRA = "postgres"
FORM = "postgresql://user:password@host:port/name"
# Unless the URL says otherwise: a host that does not answer is noticed within seconds, not hours.
DEFAULTS = {
    "application_name": "labelspace",
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
# A server may be set to answer before a commit is on disk; this makes our commits wait for the disk all the same.
SESSION = (
    "SELECT set_config('lock_timeout', '30s', false), set_config('synchronous_commit',"
    " CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END,"
    " false)"
)
# After 57P01 to 57P03 the server is stopped, has crashed, or starts; 40001 and 40P01 say that this one of the
# transactions that wait for each other was undone; codes with 08 are lost connections.
PASSING = ("57P01", "57P02", "57P03", "40001", "40P01", "08")


class PostgreSQL(Dialect):
    """A database of a PostgreSQL server."""

    text = 'TEXT COLLATE "C"'
    number = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    now = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"
    begin = "BEGIN"
    lock_schema = "SELECT pg_advisory_xact_lock(7811886442)"  # a number that no other program is likely to lock
    has_schema = "SELECT COUNT(*) FROM pg_class WHERE oid = to_regclass('labelspace_schema')"
    remedies: ClassVar = {
        "28": "correct user and password of the URL",
        "3D": "create the database: createdb --encoding UTF8 --template template0 NAME",
        "42501": "grant the user CREATE on the schema, and all rights on the tables labelspace_*",
        "53100": "free disk space of the server",
        "53": "free resources of the server, or allow it more connections",
        "55P03": "end the session that keeps the table locked",
        "25006": "name a server that is no read-only copy",
    }
    other_remedy = "see the server's log"

    def __init__(self, url: str) -> None:
        self._psycopg: Any = require("psycopg", EXTRA, needed_by="a database at postgresql://")
        self._parameters = DEFAULTS | _parameters(url, self._psycopg)
        where = [self._parameters.get(name, "") for name in ("host", "port", "dbname")]
        host = ":".join(filter(None, where[:2]))
        super().__init__(f"the database postgresql://{host}/{where[2]}", self._psycopg.Error)

    def connect(self) -> Connection:
        """Open a new connection."""
        # Statements are not prepared: a pooler before the server may give each to another session.
        connection = self._psycopg.connect(**self._parameters, autocommit=True, prepare_threshold=None)
        try:
            connection.execute(SESSION)
            encoding = connection.execute("SHOW server_encoding").fetchone()[0]
            if encoding != "UTF8":
                remedy = "create one: createdb --encoding UTF8 --template template0 NAME"
                raise DatabaseError(f"{self.shown} must have the encoding UTF8, but has {encoding}; {remedy}")
        except BaseException:
            connection.close()
            raise
        return connection

    def is_passing(self, error: Exception) -> bool:
        """Return whether the connection was lost or cannot be made, or the server undid the transaction."""
        if code := self.code(error):
            return code.startswith(PASSING)
        return isinstance(error, (self._psycopg.OperationalError, self._psycopg.InterfaceError))

    def code(self, error: Exception) -> str:
        """Return the SQLSTATE of an error, or an empty text if there was no connection."""
        return getattr(error, "sqlstate", None) or ""

    def remedy(self, error: Exception) -> str:
        """Return what the operator can do about an error."""
        if self.code(error):
            return super().remedy(error)
        return "check that the server runs, and host, user, password and name in the URL"

    def to_driver(self, sql: str) -> str:
        """Return a statement with ``%s`` for values."""
        return sql.replace("?", "%s")


def _parameters(url: str, psycopg: Any) -> dict[str, str]:  # noqa: ANN401 - a module that may not be installed
    """Return the parts of a URL. In a malformed one any part may be the password, so the error shows none."""
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
