"""The commands learn, history and rollback."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import labelspace
from labelspace import Tagger
from tests.checks import digest
from tests.learning_model import learns  # noqa: F401 - a fixture

WORDS = {"fruit": "apple pear plum", "vehicle": "car bus tram", "bread": "rye dough loaf"}


def documents(label, n, start=0, **more):
    """Lines of JSON: texts about a label, each different."""
    words = WORDS[label].split()
    rows = [{"text": f"{words[i % 3]} {words[(i + 1) % 3]} {i}", "labels": [label], **more} for i in range(n)]
    return [json.dumps(row) for row in rows[start:]]


def write(path, *parts):
    Path(path).parent.mkdir(exist_ok=True, parents=True)
    Path(path).write_text("".join(f"{line}\n" for part in parts for line in part))
    return path


@pytest.fixture
def model(run, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    rows = [json.loads(line) for label in ("fruit", "vehicle") for line in documents(label, 30)]
    rows += [{"text": "rye dough loaf", "labels": ["kitchen"]}]  # features stay as they are: words must be known
    tagger = Tagger("neighbors", features="tfidf", feature_params={"min_df": 1})
    tagger.fit(rows, text="text", labels="labels").save("m")
    return "m"


def one_line(err, *parts):
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err
    return err


def test_learn_says_what_it_learned_and_keeps_the_version_before(run, model):
    before = digest(Path(model))
    data = write("new.jsonl", documents("bread", 20), documents("fruit", 34, start=30))
    code, out, err = run("learn", model, data)
    assert code == 0
    assert "learned from 24 documents, with 1 new labels, in " in out
    assert "in all: 85 documents, 4 labels" in out
    assert "new labels: bread" in out
    assert "saved: m (" in out
    assert "version 2" in out
    assert "not compared: there are fewer than 50 new documents with labels" in err
    assert "--held-out FILE" in err
    assert labelspace.load(model).tag("rye dough", k=1)[0][0] == "bread"
    assert digest(Path("m.versions/1")) == before
    code, out, _ = run("history", model)
    assert code == 0
    assert "1970-01-01 00:00:00" in out
    assert "learn new.jsonl" in out
    assert "current" in out
    versions = json.loads(run("history", model, "--json")[1])["versions"]
    assert [each["version"] for each in versions] == [1, 2]
    assert [each["is_current"] for each in versions] == [False, True]
    assert [each["is_kept"] for each in versions] == [True, False]
    assert len(versions[1]["sha256"]) == 64
    code, out, _ = run("rollback", model)
    assert (code, out) == (0, "m is version 1 again, as version 3: 3 labels\n")
    assert digest(Path(model)) == before
    assert json.loads(run("rollback", model, "--to", "2", "--json")[1])["version"] == 4
    assert labelspace.load(model).tag("rye dough", k=1)[0][0] == "bread"


def test_merged_labels_count_as_the_others_and_retired_ones_are_left_out(run, model):
    assert run("labels", "merge", model, "kitchen", "fruit")[0] == 0
    assert run("labels", "retire", model, "vehicle")[0] == 0
    data = write("new.jsonl", documents("bread", 20, more="x"), documents("vehicle", 35, start=30))
    rows = [json.loads(line) for line in Path(data).read_text().splitlines()]
    for row in rows[:4]:
        row["labels"].append("kitchen")
    Path(data).write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = run("learn", model, data)
    assert code == 0
    assert "  counted as the labels that they were merged into: 4 labels of documents\n" in out
    assert "  retired, and left out: 5 labels of documents\n" in out
    summary = json.loads(run("learn", model, data, "--json")[1])
    assert (summary["n_merged_labels"], summary["n_retired_labels"]) == (4, 5)
    rows = json.loads(run("labels", "list", model, "--json")[1])["labels"]
    counts = {row["label"]: row["documents"] for row in rows}
    assert counts == {"fruit": 39, "vehicle": 0, "kitchen": 0, "bread": 40}


def test_former_names_of_renamed_labels_count_as_them(run, model):
    assert run("labels", "rename", model, "vehicle", "transport")[0] == 0
    data = write("new.jsonl", documents("bread", 20, more="x"), documents("vehicle", 35, start=30))
    line = "note: new.jsonl: labels that count as those that have their names as synonyms (1): 'vehicle'\n"
    assert line in run("evaluate", model, data)[2]
    assert json.loads(run("evaluate", model, data, "--json")[1])["n_unknown_labels"] == 1  # bread
    code, out, err = run("learn", model, data)
    assert (code, line in err) == (0, True)
    rows = json.loads(run("labels", "list", model, "--json")[1])["labels"]
    assert {row["label"] for row in rows} == {"fruit", "transport", "kitchen", "bread"}


def test_the_same_documents_make_the_same_version(run, model):
    data = write("new.jsonl", documents("bread", 80))
    assert run("learn", model, data, "--out", "a")[0] == 0
    assert run("learn", model, data, "--out", "b")[0] == 0
    for path in Path("a").iterdir():
        assert path.read_bytes() == Path("b", path.name).read_bytes()
    assert sorted(os.listdir()) == ["a", "b", "m", "new.jsonl"], "the model itself is as it was"
    one_line(run("learn", model, data, "--out", "a")[2], "--out must be a new folder, but a is there already")


def test_a_sample_of_many_documents_is_put_aside_and_never_learned(run, model):
    data = write("new.jsonl", documents("bread", 100))
    summary = json.loads(run("learn", model, data, "--json")[1])
    assert summary["n_new_documents"] == 90
    assert summary["n_held_out_documents"] == 10
    assert summary["held_out"]["n"] == 10
    assert summary["held_out"]["old"][0] == 0
    assert summary["held_out"]["new"][0] > 90
    code, out, err = run("learn", model, data)
    assert code == 0
    assert "held out, and not learned from: 10 documents" in out
    assert "nDCG@5 on 10 documents of the held-out sample: 100.00" in out
    assert "put aside" not in err


def test_documents_of_a_test_file_are_compared_on_and_not_learned(run, model):
    write("d/train.jsonl", documents("bread", 20))
    write("d/test.jsonl", documents("bread", 8), documents("fruit", 4))
    summary = json.loads(run("learn", model, "d", "--json")[1])
    assert (summary["n_new_documents"], summary["held_out"]["source"]) == (12, "test.jsonl")
    assert summary["held_out"]["n"] == 12
    write("other.jsonl", documents("fruit", 9))
    summary = json.loads(run("learn", model, "d", "--held-out", "other.jsonl", "--json")[1])
    assert summary["held_out"]["source"] == "other.jsonl"
    one_line(run("learn", model, "d/test.jsonl", "--held-out", "d/test.jsonl")[2], "but all 12 of d/test.jsonl are")
    write("none.jsonl", ['{"text": "a"}'])
    one_line(run("learn", model, "d", "--held-out", "none.jsonl")[2], "held-out documents must have labels")


@pytest.fixture
def counting(run, learns):  # noqa: F811
    """A model that answers the most frequent labels, fruit first; and right documents to compare it by."""
    texts = ["apple pear", "car bus"] * 30
    Tagger("counting").fit(texts, [["fruit"], ["vehicle"]] * 30).save("p")
    return "p", write("right.jsonl", documents("fruit", 30))


def test_a_version_that_is_worse_is_refused_unless_forced(run, counting):
    model, right = counting
    before = digest(Path(model))
    wrong = write("wrong.jsonl", documents("vehicle", 3))
    code, out, err = run("learn", model, wrong, "--held-out", right)
    assert (code, out) == (2, "")
    one_line(
        err, "must not fall by more than its noise", "nDCG@5 falls from 100.00 to 63.09", "--force", "p is as it was"
    )
    assert digest(Path(model)) == before
    assert sorted(os.listdir()) == ["p", "right.jsonl", "wrong.jsonl"]
    code, out, err = run("learn", model, wrong, "--held-out", right, "--force")
    assert code == 0
    assert "saved all the same, since --force is given" in err
    assert "cannot learn, and went on as they were: shapes" in out
    assert "nDCG@5 on 30 documents of right.jsonl: 100.00 (100.0 to 100.0) -> 63.09 (63.1 to 63.1)" in out
    assert json.loads(run("history", model, "--json")[1])["versions"][1]["forced"] is True
    assert "--force" in run("history", model)[1]


def test_a_fall_that_may_be_chance_is_a_note(run, counting):
    model, _ = counting
    held = write("held.jsonl", documents("fruit", 16), documents("vehicle", 15))
    code, _, err = run("learn", model, write("new.jsonl", documents("vehicle", 53, start=50)), "--held-out", held)
    assert code == 0
    assert err.startswith("note: nDCG@5 falls from 82.14 to 80.95 on 31 documents of held.jsonl")
    assert "this may be chance" in err


def test_a_better_version_is_not_remarked_on(run, counting):
    model, right = counting
    code, _, err = run("learn", model, write("new.jsonl", documents("fruit", 53, start=50)), "--held-out", right)
    assert (code, err) == (0, "")


def test_rejected_labels_are_read(run, model):
    row = {"text": "car bus 99", "labels": [], "rejected": ["vehicle"]}
    data = write("new.jsonl", [json.dumps(row)])
    assert run("learn", model, data)[0] == 0
    Path("new.csv").write_text("text,labels,rejected\ncar bus,fruit|bread,vehicle\nrye,bread,\n")
    assert json.loads(run("learn", model, "new.csv", "--label-separator", "|", "--json")[1])["new_labels"] == ["bread"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"rejected": ["unheard"]}, "the model has no label 'unheard'"),
        ({"rejected": ["fruit"]}, "'fruit' is both"),
        ({"rejected": 2.5}, "'rejected' to be a list or a text"),
        ({"rejected": [7]}, "the model has no label '7'"),
    ],
)
def test_rejected_labels_that_are_wrong_are_refused_with_their_line(run, model, row, problem):
    good = json.dumps({"text": "car", "labels": ["fruit"]})
    data = write("new.jsonl", [good, json.dumps({"text": "car", "labels": ["fruit"], **row})])
    code, _, err = run("learn", model, data)
    assert code == 2
    one_line(err, "new.jsonl:2: expected", problem)
    code, _, err = run("learn", model, "--follow", data)
    assert code == 2
    one_line(err, "new.jsonl:2: expected", problem)
    assert labelspace.load(model).lineage_[-1].n_new_documents == 1, "what came before it is saved"


def test_what_cannot_be_done_is_one_line(run, model):
    data = write("new.jsonl", documents("bread", 3))
    cases = {
        ("learn", model): "learn needs either DATA or --follow FILE",
        ("learn", model, data, "--follow", data): "learn needs either DATA or --follow FILE",
        ("learn", model, data, "--batch", "3"): "--batch is for a stream, but there is none",
        ("learn", model, "--follow", data, "--force"): "--force is for DATA",
        ("learn", model, "--follow", "none.jsonl"): "none.jsonl does not",
        ("learn", model, "--follow", "-", "--wait"): "only a plain file can be followed",
        ("learn", model, "--follow", data, "--every", "soon"): "--every must be a duration",
        ("learn", model, "none.jsonl"): "none.jsonl does not exist",
        ("learn", "none", data): "does not exist",
        ("history", "none"): "does not exist",
        ("rollback", model): "needs an earlier version",
        ("rollback", model, "--to", "9"): "but 9 is not; kept are: none",
        (
            "learn",
            model,
            write("empty.jsonl", ['{"text": "a", "labels": []}']),
        ): "but no document of empty.jsonl has any",
        ("learn", model, "--follow", write("x.svm", ["0 1:2"])): "a stream must be JSON lines or CSV",
    }
    for args, problem in cases.items():
        code, out, err = run(*args)
        assert (code, out) == (2, ""), args
        one_line(err, problem)
    assert not Path("m.versions").exists()


def test_a_method_that_cannot_learn_names_those_that_can(run):
    Tagger("popular").fit(["red apple", "red apple"], [["x"], ["y"]]).save("p")
    data = write("new.jsonl", documents("bread", 3))
    one_line(run("learn", "p", data)[2], "learning from further documents needs a method that can", "neighbors")


class TestFollow:
    def test_batches_are_tagged_before_they_are_learned(self, run, model):
        data = write("new.jsonl", documents("bread", 25))
        args = ("--follow", data, "--batch", "10", "--save-every", "20", "--json")
        code, out, _ = run("learn", model, *args)
        assert code == 0
        lines = [json.loads(line) for line in out.splitlines()]
        batches, saved = [each for each in lines if "n_batch" in each], [each for each in lines if "version" in each]
        assert [each["n"] for each in batches] == [10, 20, 25]
        assert batches[0]["so_far"]["P@1"] == 0, "the label was unknown"
        assert batches[1]["so_far"]["P@1"] == 50
        assert batches[2]["last"]["P@1"] == 60
        assert [(each["version"], each["n_new_documents"]) for each in saved] == [(2, 20), (3, 5)]
        assert saved[0]["new_labels"] == ["bread"]
        assert saved[1]["n_new_labels"] == 0
        code, out, _ = run("learn", model, *args[:-1])
        assert code == 0
        assert "20 documents, 4 labels: P@1 100.00, P@3" in out
        assert "saved: m, version 5" in out

    def test_csv_and_stdin(self, run, model, monkeypatch):
        Path("new.csv").write_text('text,labels,rejected\n"rye\ndough",bread|fruit,vehicle\nloaf,bread,\n')
        assert run("learn", model, "--follow", "new.csv", "--label-separator", "|")[0] == 0
        with open("new.csv") as file:
            monkeypatch.setattr(sys, "stdin", file)
            code, out, _ = run("learn", model, "--follow", "-", "--label-separator", "|", "--json")
        assert code == 0
        assert [json.loads(line).get("n") for line in out.splitlines()] == [2, None]
        assert labelspace.load(model).lineage_[-1].data == "-"

    def test_a_line_that_cannot_be_read_ends_it_unless_skipped(self, run, model):
        bad = ["{", "[1]", '{"labels": ["bread"]}', '{"text": 5}', '{"text": "a", "labels": [99]}']
        data = write("new.jsonl", documents("bread", 3), bad, documents("bread", 8, start=3))
        code, _, err = run("learn", model, "--follow", data, "--batch", "50")
        assert code == 2
        one_line(err, "new.jsonl:4: expected a JSON object")
        assert labelspace.load(model).lineage_[-1].n_new_documents == 3
        code, out, err = run("learn", model, "--follow", data, "--skip-errors")
        assert code == 0
        assert "8 documents, 4 labels, 5 lines skipped" in out
        assert [line.split(":")[3].split()[0] for line in err.splitlines()] == ["4", "5", "6", "7", "8"]

    def test_rows_of_csv_that_cannot_be_read_are_skipped(self, run, model):
        Path("new.csv").write_text('text,labels\nrye,bread\na,b,c\n"x"y,bread\nloaf,bread\n"open,bread\n')
        code, _, err = run("learn", model, "--follow", "new.csv", "--skip-errors")
        assert code == 0
        assert err.count("skipped:") == 3
        assert labelspace.load(model).lineage_[-1].n_new_documents == 2

    def test_documents_of_the_held_out_sample_are_left_out(self, run, model):
        assert run("learn", model, write("new.jsonl", documents("bread", 100)))[0] == 0
        code, out, _ = run("learn", model, "--follow", "new.jsonl", "--json")
        assert code == 0
        last = json.loads(out.splitlines()[-1])
        assert (last["n_new_documents"], last["n_held_out_documents"]) == (90, 10)
        assert last["held_out"]["n"] == 10

    def test_a_worse_version_is_saved_and_reported(self, run, counting):
        model, right = counting
        wrong = write("wrong.jsonl", documents("vehicle", 3))
        code, _, err = run("learn", model, "--follow", wrong, "--held-out", right)
        assert code == 0
        assert "`labelspace rollback p` goes back" in err

    def test_an_empty_stream_makes_no_version(self, run, model):
        code, _, err = run("learn", model, "--follow", write("new.jsonl"))
        assert code == 0
        assert "no document to learn from" in err
        assert not Path("m.versions").exists()


def started(*args):
    """Start the command line in a process of its own."""
    command = [sys.executable, "-m", "labelspace", *map(str, args)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1)


@pytest.mark.slow
class TestSignals:
    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_growing_file_is_followed_until_interrupted(self, model, number):
        data = write("new.jsonl", documents("bread", 4))
        process = started("learn", model, "--follow", data, "--wait", "--batch", "4", "--json")
        assert json.loads(process.stdout.readline())["n"] == 4
        with open(data, "a") as file:
            file.writelines(f"{line}\n" for line in documents("fruit", 36, start=32))
        assert json.loads(process.stdout.readline())["n"] == 8
        os.rename(data, "old.jsonl")
        write("next.jsonl", documents("bread", 12, start=8))
        with open("next.jsonl", "a") as file:
            file.write('{"text": "half a li')
        os.rename("next.jsonl", data)
        assert json.loads(process.stdout.readline())["n"] == 12
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert json.loads(out.splitlines()[-1])["n_new_documents"] == 12

    def test_a_pipe_is_learned_when_it_is_time_and_ends_cleanly(self, model):
        process = started("learn", model, "--follow", "-", "--every", "1s", "--json")
        process.stdin.write("".join(f"{line}\n" for line in documents("bread", 3)))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["n"] == 3
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert json.loads(out.splitlines()[-1])["version"] == 2

    def test_a_second_process_is_told(self, run, model):
        process = started("learn", model, "--follow", "-", "--every", "1s")
        process.stdin.write("".join(f"{line}\n" for line in documents("bread", 3)))
        process.stdin.flush()
        process.stdout.readline()
        one_line(
            run("learn", model, write("x.jsonl", documents("bread", 3)), "--json")[2], "only one process may change m"
        )
        process.stdin.close()
        assert process.wait(timeout=60) == 0
        process.stdout.close()
        process.stderr.close()


def test_threads_of_a_stream_end(run, model):
    before = threading.active_count()
    assert run("learn", model, "--follow", write("new.jsonl", ["{"], documents("bread", 500)))[0] == 2
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before
