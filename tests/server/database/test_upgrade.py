"""Databases of the first version of the tables are brought up to date, with all that is in them."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import pytest

from labelspace.server.database import Feedback, InboxDocument, dialects, open_database
from labelspace.server.database.dialects import SCHEMA_VERSION

COLUMN = "    is_learned BIGINT NOT NULL DEFAULT 0,\n"
ADD_FEEDBACK = """
    INSERT INTO labelspace_feedback (model, id, accepted, rejected, added, created, text)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
ADD_JOB = """
    INSERT INTO labelspace_jobs (id, model, kind, state, step, progress, created, started, heartbeat, result)
    VALUES (?, 'm', ?, 'done', '', 1, 0, ?, 0, ?)"""
INDEX = "CREATE INDEX labelspace_feedback_new"


def first_schema():
    """The tables as the first version of the schema declared them."""
    declared = files("labelspace.server.database").joinpath("schema.sql").read_text(encoding="utf-8")
    assert COLUMN in declared
    start, end = (declared.index(mark) for mark in ("CREATE TABLE labelspace_batches", "CREATE TABLE labelspace_inbox"))
    lines = (declared[:start] + declared[end:]).replace(COLUMN, "").splitlines()
    return "\n".join(line for line in lines if not line.startswith(("--", INDEX)))


@pytest.fixture
def old_url(url, monkeypatch):
    """A database of the first version, in which feedback was stored before and after a training."""

    class First:
        def joinpath(self, name):
            return self

        def read_text(self, encoding):
            return first_schema()

    with monkeypatch.context() as patched:
        patched.setattr(dialects, "files", lambda package: First())
        patched.setattr(dialects, "SCHEMA_VERSION", 1)
        database = open_database(url)
        connections = database._connections
        values = [
            ("m", "before", '["a"]', "[]", "[]", 1.0, "a text"),
            ("m", "only rejected", "[]", '["a"]', "[]", 1.0, "a text"),
            ("m", "after", "[]", "[]", '["b"]', 9.0, "another"),
            ("other", "before", '["a"]', "[]", "[]", 1.0, "a text"),
        ]

        def fill(session):
            session.change_each(ADD_FEEDBACK, values)
            jobs = [
                ("1", "learn", 5.0, '{"swapped": true}'),
                ("2", "learn", 20.0, '{"swapped": false}'),
                ("3", "evaluate", 20.0, "{}"),
            ]
            session.change_each(ADD_JOB, jobs)

        connections.write(fill)
        database.add_documents("m", [InboxDocument(text="to review")])
        database.close()
    return url


def test_what_trainings_learned_is_known_after_the_upgrade(old_url):
    database = open_database(old_url)
    assert database._connections.read(dialects.schema_version) == SCHEMA_VERSION
    found = {entry.id: entry.learned for entry in database.feedback("m")}
    assert found == {"before": True, "only rejected": False, "after": False}
    assert [entry.learned for entry in database.feedback("other")] == [False]
    assert database.count_new_feedback("m") == 2
    assert database.inbox_counts("m")["pending"] == 1
    database.settle_feedback("m", [], is_complete=True)  # of the lineage of the model: it knows nothing of these
    assert database.count_new_feedback("m") == 2
    database.add_feedback("m", [Feedback(id="new", text="new")])
    assert [entry.id for entry in database.take_feedback("m")[1]] == ["only rejected", "after", "new"]
    database.close()
    open_database(old_url).close()


@pytest.mark.slow
def test_many_upgrade_at_once(old_url):
    with ThreadPoolExecutor(6) as threads:
        opened = list(threads.map(open_database, [old_url] * 6))
    assert {database.count_new_feedback("m") for database in opened} == {2}
    for database in opened:
        database.close()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)  # a look into its catalog
def test_new_tables_are_those_of_an_upgraded_database(tmp_path, old_url):
    open_database(old_url).close()
    open_database(str(tmp_path / "new.db")).close()

    def columns_and_indexes(path):
        with sqlite3.connect(path) as connection:
            columns = []
            for table in ("labelspace_feedback", "labelspace_batches"):
                columns += connection.execute(f"SELECT name, type FROM pragma_table_info('{table}')").fetchall()
            indexes = connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'").fetchall()
        connection.close()
        return sorted(columns), sorted(indexes)

    assert columns_and_indexes(old_url.removeprefix("sqlite:///")) == columns_and_indexes(tmp_path / "new.db")


def test_a_batch_is_taken_again_until_it_is_settled(database):
    database.add_feedback("m", [Feedback(id=str(at), text=f"text {at}") for at in range(3)])
    batch, entries = database.take_feedback("m")
    assert ([entry.id for entry in entries], len(batch)) == (["0", "1", "2"], 64)
    assert database.take_feedback("m") == (batch, entries)  # a process that was killed
    database.add_feedback("m", [Feedback(id="3", text="text 3")])
    database.settle_feedback("m", [batch], is_complete=True)
    assert [entry.learned for entry in database.feedback("m")] == [True, True, True, False]
    later, entries = database.take_feedback("m")
    assert ([entry.id for entry in entries], later != batch) == (["3"], True)
    both = [batch, later]
    database.settle_feedback("m", both, is_complete=True, known=both)
    assert database.count_new_feedback("m") == 0
    assert database.take_feedback("m")[1] == []
    database.settle_feedback("m", [later], is_complete=False, known=both)  # an incomplete lineage takes nothing back
    assert database.count_new_feedback("m") == 0
    database.settle_feedback("m", [later], is_complete=True, known=both)
    assert [entry.learned for entry in database.feedback("m")] == [False, False, False, True]
    database.withdraw_feedback("m", "0")
    assert [entry.id for entry in database.take_feedback("m")[1]] == ["1", "2"]


def test_an_entry_that_was_taken_again_after_a_rollback_stays_in_its_first_batch(database):
    """Else it would be learned twice once one goes back to the version that had learned it."""
    database.add_feedback("m", [Feedback(id="1", text="one")])
    first, _ = database.take_feedback("m")
    database.settle_feedback("m", [first], is_complete=True, known=[first])
    database.settle_feedback("m", [], is_complete=True, known=[first])  # a rollback
    database.add_feedback("m", [Feedback(id="2", text="two")])
    second, entries = database.take_feedback("m")  # its process is killed
    assert [entry.id for entry in entries] == ["1", "2"]
    database.settle_feedback("m", [first], is_complete=True, known=[first])  # a return to the first version
    assert [entry.learned for entry in database.feedback("m")] == [True, False]
    database.settle_feedback("m", [first, second], is_complete=False)  # the batch that was never learned is forgotten
    assert [entry.learned for entry in database.feedback("m")] == [True, False]


def test_feedback_that_was_withdrawn_and_given_again_is_new(database):
    database.add_feedback("m", [Feedback(id="1", text="one")])
    batch, _ = database.take_feedback("m")
    database.settle_feedback("m", [batch], is_complete=True)
    database.withdraw_feedback("m", "1")
    database.add_feedback("m", [Feedback(id="1", text="another")])
    database.settle_feedback("m", [batch], is_complete=True)
    assert database.count_new_feedback("m") == 1
