"""What every database must do: the same tests for SQLite and PostgreSQL."""

from dataclasses import replace

import pytest

from labelspace.errors import DatabaseError, DataError, ParameterError
from labelspace.server.database import Feedback, InboxDocument, open_database
from labelspace.server.database import database as statements
from labelspace.server.database.connections import SIZE

HOSTILE = [
    "'; DROP TABLE labelspace_feedback; --", '"', "%s", "%", "?", "$1", "\\", "a\nb", "../../etc", "日本語 🙂 é", " ",
    "\x01", "x" * 255, "🙂" * 255,
]  # fmt: skip


def add(database, model="demo", *texts, **fields):
    database.add_documents(model, [InboxDocument(text=text, **fields) for text in texts])
    return {document.text: document.id for document in database.pending(model, "random", 1000)}


def test_feedback_comes_back_as_it_was_given_the_oldest_first(database):
    first = Feedback(
        id="z", text="knead", accepted=["a", "é"], rejected=["b"], added=["c > d"], by="anna", version="v1"
    )
    second = Feedback(text="grill the fish")
    assert database.add_feedback("demo", [first, second]) == ["z", second.id]
    database.add_feedback("demo", [Feedback(id="a", text="bake")])
    stored = database.feedback("demo")
    assert [replace(entry, created="") for entry in stored[:2]] == [first, second]
    assert [entry.id for entry in stored] == ["z", second.id, "a"]
    assert stored[0].created.endswith("+00:00")
    assert database.count_feedback("demo") == 3
    assert [entry.id for entry in database.feedback("demo", limit=1, offset=1)] == [second.id]
    assert database.feedback("demo", limit=0) == []
    assert (database.feedback("other"), database.count_feedback("other")) == ([], 0)


def test_the_same_id_is_stored_once_and_another_content_is_refused(database):
    entry = Feedback(id="1", text="knead", accepted=["a"], by="anna")
    assert database.add_feedback("demo", [entry, entry]) == ["1", "1"]
    before = database.feedback("demo")
    assert database.add_feedback("demo", [replace(entry, by="ben")]) == ["1"]
    assert database.feedback("demo") == before
    for other in (replace(entry, text="grill"), replace(entry, rejected=["b"]), replace(entry, accepted=[])):
        with pytest.raises(DataError, match="ids of feedback must be unique, but '1' is stored with another text"):
            database.add_feedback("demo", [Feedback(text="new"), other])
    assert database.feedback("demo") == before  # all or nothing
    database.add_feedback("other", [replace(entry, text="grill")])  # ids belong to a model


def test_feedback_on_an_inbox_document_is_done_and_pending_again_when_all_of_it_is_withdrawn(database):
    ids = add(database, "demo", "knead", "grill")
    database.add_feedback("demo", [Feedback(id=id, text="knead", document=ids["knead"]) for id in "12"])
    assert database.inbox_counts("demo") == {"pending": 1, "done": 1, "skipped": 0}
    assert database.withdraw_feedback("demo", "1") is True
    assert database.inbox_counts("demo")["done"] == 1
    assert database.withdraw_feedback("demo", "2") is True
    assert database.inbox_counts("demo") == {"pending": 2, "done": 0, "skipped": 0}
    assert database.withdraw_feedback("demo", "2") is False
    assert database.withdraw_feedback("other", "1") is False
    assert database.feedback("demo") == []


def test_feedback_given_again_does_not_change_its_document_again(database):
    ids = add(database, "demo", "knead")
    entry = Feedback(text="knead", document=ids["knead"])
    database.add_feedback("demo", [entry])
    database.set_status("demo", ids["knead"], "skipped")
    database.add_feedback("demo", [entry])
    assert database.inbox_counts("demo")["skipped"] == 1
    database.withdraw_feedback("demo", entry.id)
    assert database.inbox_counts("demo")["skipped"] == 1


def test_feedback_on_a_document_that_is_not_in_the_inbox_is_refused(database):
    ids = add(database, "demo", "knead")
    with pytest.raises(
        DataError, match="document must be the id of a document in the inbox of 'demo', but 'x' is none"
    ):
        database.add_feedback("demo", [Feedback(text="a", document=ids["knead"]), Feedback(text="b", document="x")])
    with pytest.raises(DataError, match="inbox of 'other'"):
        database.add_feedback("other", [Feedback(text="a", document=ids["knead"])])
    assert database.count_feedback("demo") == 0
    assert database.inbox_counts("demo")["pending"] == 1


def test_a_text_is_in_the_inbox_once(database):
    documents = [InboxDocument(text=text, document=f"doc {text}") for text in ("a", "b", "a")]
    assert database.add_documents("demo", documents) == (2, 1)
    assert database.add_documents("demo", documents) == (0, 3)
    assert database.add_documents("demo", [InboxDocument(text="a"), InboxDocument(text="c")]) == (1, 1)
    assert database.add_documents("other", [InboxDocument(text="a")]) == (1, 0)
    assert database.add_documents("demo", []) == (0, 0)
    with pytest.raises(DataError, match="ids of documents must be unique"):
        database.add_documents("demo", [replace(documents[0], text="d")])
    stored = {document.text: document for document in database.pending("demo", "random", 9)}
    assert {text: document.document for text, document in stored.items()} == {"a": "doc a", "b": "doc b", "c": None}
    assert stored["a"].id == documents[0].id


def test_pending_documents_are_ordered_by_value_then_by_insertion_and_unknown_values_are_last(database):
    given = {"a": {}, "b": {"rare": 1.0}, "c": {"rare": -2.5}, "d": {"rare": 1.0}, "e": {"rare": 3e300}, "f": {}}
    database.add_documents("demo", [InboxDocument(text=text, values=values) for text, values in given.items()])
    assert [document.text for document in database.pending("demo", "rare", 10)] == list("ebdcaf")
    assert [document.text for document in database.pending("demo", "rare", 2)] == list("eb")
    assert [document.text for document in database.pending("demo", "uncertainty", 10)] == list("abcdef")
    found = database.pending("demo", "random", 10)
    chances = [document.values.pop("random") for document in found]
    assert chances == sorted(chances, reverse=True)
    assert len(set(chances)) == 6
    assert {document.text: document.values for document in found} == given
    assert database.pending("demo", "random", 0) == database.pending("other", "random", 9) == []


def test_documents_whose_values_are_of_another_version_are_outdated(database):
    ids = add(database, "demo", *"abcde")
    assert {document.text for document in database.outdated("demo", "v2", 9)} == set("abcde")
    database.update_values("demo", "v1", {ids["a"]: {"rare": 1.0, "disagreement": 0.5}, ids["b"]: {"random": 2.0}})
    database.update_values("demo", "v2", {ids["c"]: {"rare": 2.0}, "unknown": {"rare": 1.0}})
    database.update_values("demo", "v3", {ids["d"]: {"rare": 3.0}})
    database.set_status("demo", ids["e"], "skipped")
    assert [document.text for document in database.outdated("demo", "v2", 9)] == list("abd")
    assert [document.text for document in database.outdated("demo", "v2", 2)] == list("ab")
    assert [document.text for document in database.pending("demo", "rare", 9)] == list("dcab")
    assert database.pending("demo", "random", 1)[0].text == "b"
    database.update_values("demo", "v2", {ids["a"]: {"rare": 9.0}})
    first = database.pending("demo", "rare", 1)[0]
    chance = first.values.pop("random")
    assert 0 <= chance < 1
    # What the new version does not say is not known, rather than what the old one said.
    assert first == InboxDocument(id=ids["a"], text="a", values={"rare": 9.0}, version="v2")
    database.update_values("demo", "v2", {})


def test_status_of_documents(database):
    ids = add(database, "demo", "a", "b", "c")
    assert database.set_status("demo", ids["a"], "skipped") is True
    assert database.set_status("demo", ids["b"], "done") is True
    assert database.inbox_counts("demo") == {"pending": 1, "done": 1, "skipped": 1}
    assert database.set_status("demo", ids["a"], "pending") is True
    assert [document.text for document in database.pending("demo", "uncertainty", 9)] == ["a", "c"]
    assert database.set_status("demo", "unknown", "done") is False
    assert database.set_status("other", ids["a"], "done") is False
    assert database.inbox_counts("other") == {"pending": 0, "done": 0, "skipped": 0}


def test_one_job_of_a_model_and_kind_at_a_time(database):
    job = database.start_job("demo", "learn")
    assert (job.model, job.kind, job.state, job.step, job.progress) == ("demo", "learn", "queued", "", 0.0)
    assert (job.started, job.ended, job.error, job.result) == (None, None, None, None)
    assert database.start_job("demo", "learn") is None
    database.update_job(job.id, state="running", step="train", progress=0.25)
    assert database.start_job("demo", "learn") is None
    running = database.job(job.id)
    assert (running.state, running.step, running.progress, running.ended) == ("running", "train", 0.25, None)
    assert running.created <= running.started <= running.heartbeat
    others = [database.start_job("demo", "evaluate"), database.start_job("other", "learn")]
    database.update_job(
        job.id, state="done", progress=1, result={"swapped": True, "P@1": float("nan"), "é": ["\ud800"]}
    )
    ended = database.job(job.id)
    assert (ended.state, ended.progress, ended.started) == ("done", 1.0, running.started)
    assert ended.result == {"swapped": True, "P@1": None, "é": ["\ud800"]}
    assert ended.ended is not None
    again = database.start_job("demo", "learn")
    assert [job.id for job in database.jobs()] == [each.id for each in (again, *others[::-1], job)]
    assert database.jobs(limit=1) == [database.job(again.id)]
    assert database.job("unknown") is None


def test_a_job_that_ended_is_not_changed(database):
    job = database.start_job("demo", "learn")
    database.update_job(job.id, state="failed", error="could not read \udcff\x00 'file'")
    assert database.job(job.id).error == "could not read \ufffd\ufffd 'file'"
    database.update_job(job.id, state="failed", error="another")  # as after a commit that was not answered
    assert database.job(job.id).error == "could not read \ufffd\ufffd 'file'"
    for changes in ({}, {"state": "running"}, {"state": "done"}, {"progress": 0.5}):
        with pytest.raises(DataError, match="a job that is changed must be queued or running, but .* is failed"):
            database.update_job(job.id, **changes)
    with pytest.raises(DataError, match="'unknown' is none"):
        database.update_job("unknown", state="running")


def test_a_job_without_heartbeat_has_failed_and_another_may_start(database, monkeypatch):
    job = database.start_job("demo", "learn")
    database.update_job(job.id, state="running")
    monkeypatch.setattr(statements, "HEARTBEAT_SECONDS", -1.0)  # as if the last one was long ago
    found = database.job(job.id)
    assert (found.state, found.error, found.ended) == ("failed", statements.ENDED, found.heartbeat)
    other = database.start_job("demo", "learn")
    assert other is not None
    monkeypatch.undo()
    assert database.job(job.id) == replace(found, heartbeat=found.heartbeat)
    assert database.job(other.id).state == "queued"
    with pytest.raises(DataError, match="the process that ran it ended"):
        database.update_job(job.id, progress=0.9)


def test_figures_are_replaced(database):
    assert database.figures("demo", "v1") is None
    database.put_figures("demo", "v1", {"P@1": 70.5})
    database.put_figures("demo", "v1", {"P@1": 71.5, "by_frequency": {"tail": {"n": 3}}, "none": float("inf")})
    database.put_figures("demo", "v2", {})
    assert database.figures("demo", "v1") == {"P@1": 71.5, "by_frequency": {"tail": {"n": 3}}, "none": None}
    assert database.figures("demo", "v2") == {}
    assert database.figures("other", "v1") is None


def test_names_are_data(database):
    for name in HOSTILE:
        database.add_documents(name, [InboxDocument(id=name, text=name, document=name, version=name)])
        entry = Feedback(id=name, text=name, accepted=[name], by=name, document=name, version=name)
        database.add_feedback(name, [entry])
        assert [replace(found, created="") for found in database.feedback(name)] == [entry]
        assert database.inbox_counts(name) == {"pending": 0, "done": 1, "skipped": 0}
        assert database.withdraw_feedback(name, name)
        assert [document.document for document in database.pending(name, "rare", 9)] == [name]
        database.update_values(name, name[::-1] + "2"[len(name) // 255 :], {name: {"rare": 1.0}})
        job = database.start_job(name, name)
        assert (job.model, job.kind) == (name, name)
        database.update_job(job.id, step=name, error=name)
        assert (database.job(job.id).step, database.job(job.id).error) == (name, name)
        database.put_figures(name, name, {name: name})
        assert database.figures(name, name) == {name: name}
    assert database.count_feedback("demo") == 0


@pytest.mark.parametrize("char", ["\x00", "\ud83d"])
def test_what_one_database_cannot_store_is_refused_by_all(database, char):
    text = f"a{char}b"
    entries = [
        Feedback(text=text),
        *(Feedback(text="a", **{name: text}) for name in ("id", "by", "document", "version")),
    ]
    entries += [Feedback(text="a", **{name: ["x", text]}) for name in ("accepted", "rejected", "added")]
    for entry in entries:
        with pytest.raises(DataError, match="must be without NUL and lone surrogates, but character 1 is '"):
            database.add_feedback("demo", [Feedback(text="valid"), entry])
    for document in [InboxDocument(text=text), *(InboxDocument(text="a", **{n: text}) for n in ("id", "document"))]:
        with pytest.raises(DataError, match="lone surrogates"):
            database.add_documents("demo", [InboxDocument(text="valid"), document])
    for call in (database.count_feedback, database.inbox_counts, database.job, database.update_job):
        with pytest.raises(DataError, match="lone surrogates"):
            call(text)
    assert database.count_feedback("demo") == sum(database.inbox_counts("demo").values()) == 0


def test_invalid_arguments_are_refused(database):
    with pytest.raises(
        DataError, match="id must have 1 to 255 characters, but 'xxxxxxxxxxxxxxxxxxxx'... has 256; give"
    ):
        database.add_feedback("demo", [Feedback(id="x" * 256, text="a")])
    with pytest.raises(DataError, match="model must have 1 to 255 characters, but is empty"):
        database.count_feedback("")
    with pytest.raises(
        ParameterError, match="order must be one of uncertainty, disagreement, rare, random, but is 'id; '"
    ):
        database.pending("demo", "id; ", 3)
    with pytest.raises(ParameterError, match="n must be at least 0, but is -1"):
        database.outdated("demo", "v", -1)
    with pytest.raises(ParameterError, match="limit must be at least 0"):
        database.feedback("demo", limit=-1)
    with pytest.raises(ParameterError, match="status must be one of pending, done, skipped, but is 'open'"):
        database.set_status("demo", "1", "open")
    with pytest.raises(ParameterError, match="what is changed of a job must be one of .*, but is 'model'"):
        database.update_job("1", model="2")
    with pytest.raises(ParameterError, match="state must be one of queued, running, done, failed, but is 'ready'"):
        database.update_job("1", state="ready")
    with pytest.raises(ParameterError, match="progress must be from 0 to 1, but is nan"):
        database.update_job("1", progress=float("nan"))
    with pytest.raises(DataError, match="must be a finite number, but its rare is inf"):
        database.update_values("demo", "v", {"1": {"rare": float("inf")}})
    with pytest.raises(ParameterError, match="order must be one of"):
        database.add_documents("demo", [InboxDocument(text="a", values={"best": 1.0})])
    with pytest.raises(ParameterError, match="status must be one of pending, but is 'done'"):
        database.add_documents("demo", [InboxDocument(text="a", status="done")])


def test_long_texts_and_many_entries(database):
    long = "naïve café 🙂 " * 40_000
    entries = [
        Feedback(id=str(i), text=long if i == 3 else "a", accepted=[f"label {j}" for j in range(50)]) for i in range(32)
    ]
    database.add_feedback("demo", entries)
    assert [replace(entry, created="") for entry in database.feedback("demo")] == entries
    assert database.add_documents("demo", [InboxDocument(text=long), InboxDocument(text=long)]) == (1, 1)
    assert database.pending("demo", "random", 1)[0].text == long


def test_a_closed_database_says_so_and_what_was_stored_is_there_when_it_is_opened_again(url):
    database = open_database(url)
    database.add_feedback("demo", [Feedback(id="1", text="a")])
    database.ping()
    database.close()
    database.close()
    with pytest.raises(DatabaseError, match="must be open, but was closed; open it again"):
        database.ping()
    again = open_database(url)
    assert [entry.id for entry in again.feedback("demo")] == ["1"]
    again.close()


def test_errors_give_their_connections_back(database):
    for _ in range(2 * SIZE):
        with pytest.raises(DataError, match="is none"):
            database.add_feedback("demo", [Feedback(text="a", document="x")])
    database.ping()
