"""Transactions are repeated where that may help, and then have the effect of one."""

import threading

import pytest

from labelspace.errors import DatabaseError
from labelspace.server.database import Feedback, InboxDocument, connections
from labelspace.server.database.dialects import Session


@pytest.fixture
def lost_answers(database, monkeypatch):
    """Every commit takes place, but is answered only when it is made again."""
    dialect = database._connections._dialect
    change, lost = Session.change, []

    def change_and_lose(self, sql, *values):
        changed = change(self, sql, *values)
        if sql == "COMMIT":
            lost.append(sql)
            if len(lost) % 2:
                raise dialect.error("the connection was lost")
        return changed

    monkeypatch.setattr(Session, "change", change_and_lose)
    monkeypatch.setattr(dialect, "is_passing", lambda error: True)
    return lost


def test_a_commit_that_was_not_answered_is_not_made_twice(database, lost_answers):
    documents = [InboxDocument(id=text, text=text) for text in "ab"]
    assert database.add_documents("demo", [*documents, InboxDocument(text="a")]) == (2, 1)
    assert database.add_feedback("demo", [Feedback(id="1", text="a", document="a")]) == ["1"]
    assert database.count_feedback("demo") == 1
    assert database.inbox_counts("demo") == {"pending": 1, "done": 1, "skipped": 0}
    assert database.set_status("demo", "b", "skipped") is True
    assert database.withdraw_feedback("demo", "1") is True
    assert database.inbox_counts("demo") == {"pending": 1, "done": 0, "skipped": 1}
    job = database.start_job("demo", "learn")
    database.update_job(job.id, state="running", progress=0.5)
    database.update_job(job.id, state="done", result={"swapped": True})
    assert [(each.state, each.result) for each in database.jobs()] == [("done", {"swapped": True})]
    database.put_figures("demo", "v1", {"P@1": 70.0})
    assert database.figures("demo", "v1") == {"P@1": 70.0}
    assert len(lost_answers) == 16


def test_an_error_that_stays_is_raised_after_a_while_and_another_at_once(database, monkeypatch):
    dialect, pool = database._connections._dialect, database._connections
    tries = []

    def fail(session):
        tries.append(session)
        raise dialect.error("no")

    monkeypatch.setattr(dialect, "is_passing", lambda error: False)
    with pytest.raises(DatabaseError, match="says: no; "):
        pool.read(fail)
    assert len(tries) == 1
    monkeypatch.setattr(dialect, "is_passing", lambda error: True)
    with pytest.raises(DatabaseError, match="says: no; "):
        pool.read(fail, patience=0)
    assert len(tries) == 3  # once on a new connection, since the old one may have been lost long ago
    with pytest.raises(DatabaseError, match="says: no; "):
        pool.read(fail, patience=5 * connections.PAUSE)
    assert len(tries) > 5
    database.ping()


def test_more_threads_than_connections_wait_for_one(database, monkeypatch):
    monkeypatch.setattr(connections, "WAIT_SECONDS", 0.01)
    pool, busy, end = database._connections, threading.Barrier(connections.SIZE + 1), threading.Event()

    def work(session):
        busy.wait(timeout=60)
        end.wait(timeout=60)

    threads = [threading.Thread(target=pool.read, args=(work,)) for _ in range(connections.SIZE)]
    for thread in threads:
        thread.start()
    busy.wait(timeout=60)
    with pytest.raises(DatabaseError, match="must answer, but all 8 connections were in use for 0 seconds; try again"):
        database.ping()
    end.set()
    for thread in threads:
        thread.join()
    database.ping()
    assert len(pool._idle) == connections.SIZE


def test_connections_in_use_are_closed_when_given_back(database):
    used = []

    def work(session):
        database.close()
        used.append(session)
        return session.value("SELECT COUNT(*) FROM labelspace_jobs")

    assert database._connections.read(work) == 0
    with pytest.raises(database._connections._dialect.error, match="closed"):
        used[0].now()
