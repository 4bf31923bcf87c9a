"""Databases for tests: a file, and a database of a PostgreSQL server that the tests start for themselves."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from labelspace.server.database import open_database

PASSWORD = "p@ss/w:rd"
OPTIONS = (
    "-c listen_addresses='' "  # a socket in its folder: no port can be taken
    "-c fsync=off "  # the tests kill processes, not the machine
    "-c deadlock_timeout=50ms "
    "-c max_connections=60 -c shared_buffers=16MB"
)


class Cluster:
    """A PostgreSQL server in a temporary folder, of the user postgres where the tests run as root."""

    def __init__(self, programs):
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="labelspace-", dir="/tmp"))  # the path of a socket is short
        self.as_user = []
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.as_user = ["runuser", "-u", "postgres", "--"]
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        # A cluster need not be made durable before it is used.
        make = ["--no-sync", "--auth=scram-sha-256", "--username=tester", "--encoding=UTF8", "--locale=C"]
        self.call("initdb", *make, f"--pwfile={password}", "--pgdata", self.folder / "data")
        self.pg_ctl("start")

    def call(self, program, *args):
        command = [*self.as_user, str(self.programs / program), *map(str, args)]
        # The server keeps what it was given open: a file, since nobody would end a pipe.
        with tempfile.TemporaryFile() as out:
            done = subprocess.run(
                command, cwd=self.folder, stdout=out, stderr=out, stdin=subprocess.DEVNULL, timeout=120, check=False
            )
            out.seek(0)
            assert done.returncode == 0, out.read().decode()

    def pg_ctl(self, action, *args):
        options = f"{OPTIONS} -k {self.folder}"
        log = ["-l", self.folder / "log", "-o", options] if action != "stop" else []
        self.call("pg_ctl", action, "--wait", "--pgdata", self.folder / "data", *log, *args)

    def url(self, name="postgres", password="p%40ss%2Fw%3Ard"):
        return f"postgresql://tester:{password}@/{name}?host={self.folder}"

    def execute(self, statement, name="postgres"):
        import psycopg

        with psycopg.connect(self.url(name), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def new_database(self, options=""):
        name = f"test_{secrets.token_hex(4)}"
        self.execute(f"CREATE DATABASE {name} {options}")
        return name

    def new_schema_url(self):
        """An empty schema is as good as an empty database, and is made ten times faster."""
        name = f"test_{secrets.token_hex(4)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.url()}&options=-csearch_path%3D{name}"


@pytest.fixture(scope="session")
def cluster():
    """A running PostgreSQL server."""
    if find_spec("psycopg") is None:
        pytest.skip("needs psycopg, which the extra postgres installs")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [shutil.which("initdb")]
    if found[-1] is None:
        pytest.skip("needs initdb and pg_ctl, which Debian's postgresql installs")
    running = Cluster(Path(found[-1]).parent)
    yield running
    running.pg_ctl("stop", "-m", "immediate")
    shutil.rmtree(running.folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'feedback.db'}"
    return request.getfixturevalue("cluster").new_schema_url()


@pytest.fixture
def database(url):
    """An empty database, open."""
    opened = open_database(url)
    yield opened
    opened.close()
