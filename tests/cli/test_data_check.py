"""The command data check: what it prints, as text and as JSON, and the copy that it writes."""

import json

import pytest

from labelspace.data.checks import CHECKS, DEEP_CHECKS
from tests.data.test_cleaning import DEV, TEST, TRAIN, write

CLEAN = [
    {"text": f"{word} and some more words about number {i}", "labels": [word]}
    for i, word in enumerate(["bread", "fish", "rice"] * 4)
]


@pytest.fixture
def dirty(tmp_path):
    folder = tmp_path / "dirty"
    folder.mkdir()
    for name, rows in (("train", TRAIN), ("dev", DEV), ("test", TEST)):
        write(folder / f"{name}.jsonl", rows)
    return folder


def test_findings_are_said_worst_first_with_reason_and_remedy(run, dirty):
    code, out, _ = run("data", "check", "dirty")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].rstrip() == "dirty: 20 train, 3 dev, 3 test documents, 4 labels"
    severities = [line.split()[0] for line in lines if line.startswith(("high", "medium", "low"))]
    assert severities == sorted(severities, key=["high", "medium", "low"].index)
    assert severities[0] == "high"
    assert "4 of 6 dev and test documents stand in an earlier split too" in out
    assert "train.jsonl:19 = test.jsonl:1" in out
    assert "the figures of the test are too good" in out
    assert "remove them from train (--fix does it)" in out
    assert "labelspace data check dirty --fix OUT" in out
    assert "checks found nothing: " in out


def test_json_is_one_object(run, dirty):
    code, out, err = run("data", "check", "dirty", "--json", "--examples", 1)
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["data"] == "dirty"
    assert answer["documents"] == {"train": 20, "dev": 3, "test": 3}
    first = answer["checks"][0]
    assert first["check"] == "leaked_documents"
    assert first["severity"] == "high"
    assert first["remedy"] == "remove them from train: labelspace data check dirty --fix OUT --only leaked_documents"
    assert set(first) >= {"check", "severity", "count", "of", "examples", "why", "remedy"}
    assert all(len(check["examples"]) <= 1 for check in answer["checks"])
    names = [check["check"] for check in answer["checks"]] + answer["passed"]
    assert sorted(names) == sorted(CHECKS)


def test_clean_data_are_one_line(run, tmp_path):
    write(tmp_path / "clean.jsonl", CLEAN)
    code, out, _ = run("data", "check", "clean.jsonl")
    assert code == 0
    lines = [line.rstrip() for line in out.splitlines() if line.strip()]
    assert lines[0] == "clean.jsonl: 12 train documents, 3 labels"
    assert lines[1].startswith(f"{len(CHECKS)} checks found no problem: ")
    assert "--fix" not in out


def test_only_and_skip(run, dirty):
    answer = json.loads(
        run("data", "check", "dirty", "--json", "--only", "repeated_ids", "--only", "empty_documents")[1]
    )
    assert [check["check"] for check in answer["checks"]] == ["empty_documents"]
    assert answer["passed"] == ["repeated_ids"]
    answer = json.loads(run("data", "check", "dirty", "--json", "--skip", "leaked_documents")[1])
    assert "leaked_documents" not in [check["check"] for check in answer["checks"]] + answer["passed"]


def test_fix_writes_a_copy_and_says_what_it_changed(run, dirty, tmp_path):
    code, out, _ = run("data", "check", "dirty", "--fix", "new", "--skip", "wrong_encoding")
    assert code == 0
    assert "leaked_documents: 2 documents removed from train, 1 document removed from dev" in out
    assert "  Breads -> bread" in out
    assert "wrong_encoding:" not in out
    assert "new/train.jsonl: 16 documents, 3 labels" in out
    assert "cafÃ©" in (tmp_path / "new" / "train.jsonl").read_text()
    again = json.loads(run("data", "check", "new", "--json", "--fix", "newer")[1])
    assert [check["check"] for check in again["checks"] if check["fixed_by_fix"]] == ["wrong_encoding"]
    assert again["fix"]["changes"] == {"wrong_encoding": {"texts of train": 1}}
    assert again["fix"]["written"]["newer/train.jsonl"] == 16


def test_a_table(run, tmp_path):
    (tmp_path / "p.csv").write_text(
        "title,brand\n" + "".join(f"tea pack {i},{'Tata' if i % 2 else 'TATA'}\n" for i in range(9))
    )
    options = ("--inputs", "title", "--outputs", "brand")
    code, out, err = run("data", "check", "p.csv", *options, "--fix", "q.csv")
    assert code == 0
    assert "brand: Tata -> brand: TATA" in out
    assert "labelspace data check p.csv --inputs title --outputs brand --fix OUT" in out
    assert "q.csv has texts and labels in place of the columns" in err
    assert "title: tea pack 1,brand: TATA" in (tmp_path / "q.csv").read_text()


def test_labels_alone_are_checked(run, tmp_path):
    (tmp_path / "labels.jsonl").write_text('{"label": "T-Shirt"}\n{"label": "t shirts"}\n')
    answer = json.loads(run("data", "check", "labels.jsonl", "--json")[1])
    assert [check["check"] for check in answer["checks"]] == ["near_duplicate_labels"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fix", "dirty"), "the cleaned copy must be a new file or folder"),
        (("--only", "leaks"), "--only and --skip take names of checks, but there is no 'leaks'"),
        (("--only", "probably_wrong_labels"), "probably_wrong_labels needs --deep"),
        (("--inputs", "title"), "--outputs is missing"),
    ],
)
def test_bad_options_are_one_line(run, dirty, options, message):
    code, out, err = run("data", "check", "dirty", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_fix_of_labels_alone_is_refused(run, tmp_path):
    (tmp_path / "labels.jsonl").write_text('{"label": "tea"}\n')
    code, _, err = run("data", "check", "labels.jsonl", "--fix", "out")
    assert code == 2
    assert "--fix needs documents" in err


@pytest.mark.slow
def test_deep(run, hierarchy_folder):
    code, out, err = run("data", "check", hierarchy_folder, "--deep", "--json")
    assert code == 0, err
    answer = json.loads(out)
    names = [check["check"] for check in answer["checks"]] + answer["passed"]
    assert set(names) == {*CHECKS, *DEEP_CHECKS}


def test_names_of_a_file_do_not_steer_the_terminal(run, tmp_path):
    rows = [{"text": "a \x1b[31mb\x07 c", "labels": ["x\x1b[0m", "[bold]y[/bold]"]}, *CLEAN]
    write(tmp_path / "e.jsonl", rows)
    _, out, _ = run("data", "check", "e.jsonl", "--only", "control_characters", "--fix", "f.jsonl")
    assert "\x1b" not in out
    assert "\\x1b[31mb" in out
