"""Where a database is, and what is said when it cannot be opened or written; never a password."""

import os
import sqlite3
import subprocess
import sys
import threading
import traceback

import pytest

from labelspace.errors import DatabaseError, LabelspaceError, MissingExtraError, ParameterError
from labelspace.server.database import Feedback, InboxDocument, dialects, open_database
from labelspace.server.database.dialects import SQLite

PASSWORD = "secret"


def refused(url, error, match):
    """The message of the error that opening a database gives: one line."""
    with pytest.raises(error, match=match) as raised:
        open_database(url)
    assert "\n" not in str(raised.value)
    assert PASSWORD not in "".join(traceback.format_exception(raised.value))
    return str(raised.value)


@pytest.mark.parametrize("form", ["plain", "absolute", "relative"])
def test_files(tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a ?%20#b.db"
    url = {"plain": str(path), "absolute": f"sqlite:///{path}", "relative": f"sqlite:///{path.name}"}[form]
    database = open_database(url)
    database.ping()
    database.close()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]  # its log is gone when it is closed


@pytest.mark.parametrize(
    "url",
    [
        "", ":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:file.db", "file:file.db?mode=memory",
        f"mysql://user:{PASSWORD}@host/db", f"postgresql:user:{PASSWORD}@host", f"Postgresql://user:{PASSWORD}@host",
        "a\x00b",
    ],
)  # fmt: skip
def test_anything_else_is_refused(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(
        url, ParameterError, "a database must be FILE, sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME, but is"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:p@{PASSWORD}@host/db", f"postgresql://user:p/{PASSWORD}@host/db", f"postgresql://user:{PASSWORD}",
        f"postgresql://user:p?{PASSWORD}@x@host/db", f"postgresql://u:{PASSWORD}@h:{PASSWORD}/db", f"postgresql://u:%{PASSWORD}@h/db",
        f"postgresql://user:x@host/db?{PASSWORD}=1",
    ],
)  # fmt: skip
def test_no_part_of_a_malformed_url_is_shown(url):
    pytest.importorskip("psycopg")
    refused(
        url, ParameterError, "a PostgreSQL URL must be postgresql://user:password@host:port/name, but the one given"
    )


def test_without_psycopg_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    refused(f"postgresql://user:{PASSWORD}@host/db", MissingExtraError, r"pip install 'labelspace\[postgres\]'")


def test_no_server(tmp_path):
    pytest.importorskip("psycopg")
    url = f"postgresql://user:{PASSWORD}@/db?host={tmp_path}"
    refused(url, DatabaseError, "must answer and be writable, but says: connection .*; check that the server runs")
    refused(f"postgresql://user:{PASSWORD}@127.0.0.1:1/db", DatabaseError, "postgresql://127.0.0.1:1/db must answer")


def test_wrong_password_and_unknown_database(cluster):
    refused(cluster.url(password=PASSWORD), DatabaseError, "password authentication failed for user .*; check that")
    refused(cluster.url("unknown"), DatabaseError, 'database "unknown" does not exist; check that')


def test_a_database_of_another_encoding(cluster):
    name = cluster.new_database("ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    refused(cluster.url(name), DatabaseError, "must have the encoding UTF8, but has LATIN1; create one: createdb")


def test_commits_are_durable_where_the_server_says_they_need_not_be(cluster):
    name = cluster.new_database()
    database = open_database(cluster.url(name))
    setting = "SHOW synchronous_commit"
    assert database._connections.read(lambda session: session.first(setting)) == ("on",)
    database.close()
    cluster.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    assert cluster.execute(setting, name) == [("off",)]
    database = open_database(cluster.url(name))
    assert database._connections.read(lambda session: session.first(setting)) == ("on",)
    database.close()


def test_commits_of_a_file_are_durable(tmp_path):
    database = open_database(str(tmp_path / "a.db"))
    pragmas = [
        database._connections.read(lambda session, name=name: session.first(f"PRAGMA {name}"))
        for name in ("journal_mode", "synchronous", "busy_timeout")
    ]
    assert pragmas == [("wal",), (2,), (30_000,)]
    database.close()


def test_a_user_without_the_right_to_create_tables_uses_those_that_are_there(cluster):
    name = cluster.new_database()
    role = f"reader_{name}"
    cluster.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'p'")
    url = cluster.url(name, "p").replace("tester", role)
    refused(url, DatabaseError, "permission denied for schema public; grant the user CREATE on the schema")
    open_database(cluster.url(name)).close()
    refused(url, DatabaseError, "permission denied for table labelspace_schema; grant the user")
    cluster.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}", name)
    database = open_database(url)
    database.add_feedback("demo", [Feedback(text="a")])
    database.close()


def test_an_idle_lock_ends(cluster):
    import psycopg

    name = cluster.new_database()
    database = open_database(cluster.url(name))
    with psycopg.connect(cluster.url(name)) as other:
        other.execute("LOCK TABLE labelspace_feedback")

        def count(session):
            session.rows("SELECT set_config('lock_timeout', '10ms', false)")
            return session.value("SELECT COUNT(*) FROM labelspace_feedback")

        with pytest.raises(DatabaseError, match="due to lock timeout; end the session that keeps the table locked"):
            database._connections.read(count)
    database.close()


@pytest.mark.parametrize(("version", "remedy"), [(3, "update labelspace"), (0, "restore it from a backup")])
def test_another_layout_of_the_tables_is_refused(url, version, remedy):
    database = open_database(url)
    database._connections.write(lambda session: session.change("UPDATE labelspace_schema SET version = ?", version))
    known = dialects.SCHEMA_VERSION
    rule = f"must have tables of version {known}, but has version {version}; {remedy}, or name another database"
    with pytest.raises(DatabaseError, match=rule):
        database.ping()
    database.close()
    with pytest.raises(DatabaseError, match=rule):
        open_database(url)


def test_what_is_no_database_is_refused(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("some notes of mine, which are not a database " * 100)
    refused(
        str(file), DatabaseError, "must answer and be writable, but says: file is not a database; name another file"
    )
    assert file.read_text().startswith("some notes of mine")
    refused(str(tmp_path), DatabaseError, "unable to open database file; name a file in a folder that exists")
    refused(str(tmp_path / "missing" / "a.db"), DatabaseError, "unable to open database file; name a file in a folder")


READ_ONLY = """
import os
import sys

from labelspace.server.database import Feedback, open_database

if os.geteuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)  # root may write everywhere
try:
    open_database(sys.argv[1])
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.slow
def test_a_folder_that_may_not_be_written_to(tmp_path):
    folder = tmp_path / "folder"
    path = folder / "a.db"
    folder.mkdir()
    for parent in (tmp_path, *(each for each in tmp_path.parents if each.name.startswith(("pytest-", "popen-")))):
        parent.chmod(0o755)
    folder.chmod(0o555)
    unopened = subprocess.run([sys.executable, "-c", READ_ONLY, path], capture_output=True, text=True, check=True)
    assert unopened.stdout.startswith("DatabaseError the database ")
    assert "unable to open database file; name a file in a folder that exists and that this process" in unopened.stdout
    folder.chmod(0o755)
    open_database(str(path)).close()
    path.chmod(0o444)
    unwritten = subprocess.run([sys.executable, "-c", READ_ONLY, path], capture_output=True, text=True, check=True)
    assert "attempt to write a readonly database; let this process write to the file" in unwritten.stdout


def test_a_full_disk(tmp_path, monkeypatch):
    connect = SQLite.connect

    def connect_to_small_disk(self):
        connection = connect(self)
        connection.execute("PRAGMA max_page_count = 60")
        return connection

    monkeypatch.setattr(SQLite, "connect", connect_to_small_disk)
    database = open_database(str(tmp_path / "a.db"))
    database.add_feedback("demo", [Feedback(id="1", text="a")])
    with pytest.raises(DatabaseError, match="says: database or disk is full; free disk space"):
        database.add_feedback("demo", [Feedback(text="b"), Feedback(text="c" * 300_000)])
    assert [entry.id for entry in database.feedback("demo")] == ["1"]
    database.add_feedback("demo", [Feedback(id="2", text="a")])
    database.close()


def test_a_file_that_was_replaced_is_not_written_to(tmp_path):
    path = tmp_path / "a.db"
    database = open_database(str(path))
    os.rename(path, tmp_path / "b.db")
    for call in (database.ping, lambda: database.add_feedback("demo", [Feedback(text="a")])):
        with pytest.raises(
            DatabaseError, match="must stay while it is open, but was removed, moved or replaced; restart"
        ):
            call()
    assert not path.exists()
    sqlite3.connect(path).close()
    with pytest.raises(DatabaseError, match="must stay while it is open"):
        database.ping()
    database.close()


def test_a_damaged_file(tmp_path):
    path = tmp_path / "a.db"
    database = open_database(str(path))
    database.add_documents("demo", [InboxDocument(text=f"{i}" * 500) for i in range(200)])
    database.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    with pytest.raises(LabelspaceError, match="malformed; restore it from a backup"):
        open_database(str(path)).pending("demo", "rare", 200)


def test_a_new_file_that_another_process_begins_to_write(tmp_path):
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")  # SQLite's own wait does not help here
    end = threading.Timer(0.2, other.close)
    end.start()
    database = open_database(str(tmp_path / "a.db"))
    end.join()
    database.ping()
    database.close()


def test_a_locked_file(tmp_path, monkeypatch):
    monkeypatch.setattr("labelspace.server.database.dialects.BUSY_SECONDS", 0.01)
    database = open_database(str(tmp_path / "a.db"))
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert database.count_feedback("demo") == 0  # readers do not wait for a writer
    with pytest.raises(DatabaseError, match="database is locked; end the process that keeps it locked"):
        database.add_feedback("demo", [Feedback(text="a")])
    other.close()
    database.add_feedback("demo", [Feedback(text="a")])
    database.close()
