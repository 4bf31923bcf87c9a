import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from labelspace.data.source import Source, write_dataset
from labelspace.experiment.reproduce import published
from labelspace.experiment.reproduce.published import Column, PublishedTable, Row, Slip
from labelspace.types import Dataset
from tests.fake_executor import fake_cluster

EVIL = "<script>alert(1)</script> 'a' \"b\" \x1b[31m"


def table(**changes):
    parts = {
        "paper": {"authors": "Someone", "year": 2020, "title": EVIL},
        "place": "Table 1",
        "shows": "something",
        "unit": "percent",
        "columns": (Column("P@1"), Column("P@3")),
        "rows": (
            Row("Common", "popular", {"Set-1": ["20.0", None], "Set-2": ["30.0", "9.5"]}),
            Row("Linear", "one_vs_rest", {"Set-1": ["60.0", "40"]}),
            Row(EVIL, None, {"Set-1": ["70.0", None]}),
            Row("Published", "one_vs_rest", {"Set-1": ["80.0", None]}, preset="paper"),
        ),
        "slips": (Slip("Common", "Set-1", "P@1", EVIL, corrected="25.0"),),
        "sizes": {"Set-1": {"n_train": 5}},
    }
    return PublishedTable("test-table", **{**parts, **changes})


@pytest.fixture(autouse=True)
def tables(monkeypatch):
    monkeypatch.setattr(published, "published_tables", lambda: {"test-table": table()})


@pytest.fixture
def set1(data, tmp_path):
    """A data folder named almost like a published data set."""
    for name, part, n in zip(("train", "test"), data, (250, 60), strict=True):
        texts = part.rows(range(n))
        write_dataset(Dataset(texts.Y, texts.labels, texts=texts.texts), tmp_path / "set1" / f"{name}.jsonl")
    return "set1"


def test_list(run):
    code, out, _ = run("reproduce", "list")
    assert code == 0
    assert "test-table" in out
    assert "Someone 2020, Table 1" in out
    assert "3 of 4" in out
    listed = json.loads(run("reproduce", "list", "--json")[1])["test-table"]
    assert listed["datasets"] == ["Set-1", "Set-2"]
    assert listed["rows"][0] == {"row": "Common", "method": "popular", "preset": None}


def test_ours_stands_beside_the_published_value(run, set1):
    code, out, err = run("reproduce", "test-table", set1, "--seeds", "2")
    assert code == 0
    results = json.loads(Path("runs/set1-test-table/results.json").read_text())
    common, linear = (row["figures"]["P@1"] for row in results["rows"][:2])
    line = next(line.split() for line in out.splitlines() if line.split()[:1] == ["Common"])
    assert line[1:4] == [f"{common['ours']:.2f}", "20.0*", f"{common['ours'] - 25:+.2f}"]
    assert f"{linear['ours']:.2f} ± {linear['std']:.2f}" in out
    assert "not here yet" in out
    assert "one_vs_rest has no preset 'paper' in this version (Published)" in out
    assert "These data are not Set-1 of the paper: 250 training documents, not 5." in out
    assert "The difference is to 25.0." in out
    assert "compared with the published Set-1, by the name of the data" in err
    assert "\x1b" not in out
    again = run("reproduce", "test-table", set1, "--seeds", "2")
    assert again[1] == out
    assert "3 of 3 runs are done already" in again[2]


def test_the_page_has_no_foreign_markup_and_loads_nothing(run, set1):
    run("reproduce", "test-table", set1, "--seeds", "1", "--rows", "Common")
    page = Path("runs/set1-test-table/report.html").read_text()

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attrs):
            assert tag not in ("script", "link", "img", "iframe")
            assert {name for name, _ in attrs} <= {"lang", "charset", "name", "content", "class", "title"}

    Tags().feed(page)
    assert "alert(1)" in page
    assert "http" not in page
    assert "not run" in page


def test_name_chooses_what_to_compare_with(run, set1):
    results = json.loads(run("reproduce", "test-table", set1, "--name", "set 2", "--rows", "Common", "--json")[1])
    assert results["dataset"] == "Set-2"
    assert results["rows"][0]["figures"]["P@3"]["printed"] == "9.5"
    Path("set1").rename("mine")
    code, out, err = run("reproduce", "test-table", "mine", "--rows", "Common", "--out", "other")
    assert code == 0
    assert "no published data set is named mine, so our values have nothing to compare with" in err
    assert "; --name compares with one of: Set-1, Set-2" in err
    assert "diff" not in out


def test_fractions_are_shown_as_percentages(run, set1, monkeypatch):
    rows = (Row("Common", "popular", {"Set-1": ["0.0410", None]}),)
    monkeypatch.setattr(
        published, "published_tables", lambda: {"test-table": table(unit="fraction", rows=rows, slips=())}
    )
    out = run("reproduce", "test-table", set1)[1]
    figure = json.loads(Path("runs/set1-test-table/results.json").read_text())["rows"][0]["figures"]["P@1"]
    line = next(line.split() for line in out.splitlines() if line.split()[:1] == ["Common"])
    assert line[1:4] == [f"{figure['ours']:.2f}", "4.10", f"{figure['ours'] - 4.1:+.2f}"]
    assert "The paper prints fractions, which are percentages here." in out


def test_set_changes_the_rows_of_a_method(run, set1):
    arguments = (
        "reproduce",
        "test-table",
        set1,
        "--seeds",
        "1",
        "--rows",
        "Lin*",
        "--set",
        "one_vs_rest.C=0.01",
        "--json",
    )
    results = json.loads(run(*arguments)[1])
    assert results["rows"][1]["params"] == {"C": 0.01}
    assert [row["n_runs"] for row in results["rows"]] == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("test-tabel", "set1"), "there is no published table 'test-tabel'; did you mean 'test-table'?"),
        (("test-table",), "DATA must be given"),
        (("test-table", "set1", "--name", "Set-3"), "has none for 'Set-3'; choose one of: Set-1, Set-2"),
        (("test-table", "set1", "--rows", "Published"), "has none: one_vs_rest has no preset 'paper' in this version"),
        (("test-table", "set1", "--set", "one_vs_rest.D=1"), "one_vs_rest has no parameter 'D'"),
        (("test-table", "set1", "--set", "D=1"), "--set must name the method, but is 'D=1'; write popular.KEY=VALUE"),
        (("test-table", "nowhere"), "nowhere does not exist"),
    ],
)
def test_what_is_wrong_is_said_before_data_are_read(run, set1, monkeypatch, arguments, message):
    monkeypatch.setattr(Source, "train", lambda *_: pytest.fail("data were read"))
    code, _, err = run("reproduce", *arguments)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_it_fails_where_all_rows_fail(run, tmp_path, monkeypatch):
    rows = (Row("Tree", "label_tree", {}, params={"tree": "hierarchy"}),)
    monkeypatch.setattr(published, "published_tables", lambda: {"test-table": table(rows=rows, slips=())})
    (tmp_path / "flat.jsonl").write_text('{"text": "word other", "labels": ["x"]}\n' * 30)
    code, out, _ = run("reproduce", "test-table", "flat.jsonl", "--seeds", "1")
    assert code == 2
    assert "needs a hierarchy of the labels" in out


def test_runs_on_a_cluster(run, set1, monkeypatch):
    monkeypatch.setattr("labelspace.cli.reproduce.cluster_executor", fake_cluster)
    here = run("reproduce", "test-table", set1, "--seeds", "2", "--out", "a")
    there = run("reproduce", "test-table", set1, "--seeds", "2", "--out", "b", "--cluster", "local")
    assert there[:2] == (0, here[1].replace("saved to a:", "saved to b:"))
    assert "runs: 3 of 3" in there[2]
