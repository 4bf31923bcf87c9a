import json
from pathlib import Path

import pytest

from labelspace.data.source import write_dataset
from labelspace.models.registry import METHODS
from labelspace.types import Dataset
from tests.fake_executor import fake_cluster


@pytest.fixture
def rows(data, tmp_path):
    """A folder with ready-made features."""
    for name, part in zip(("train", "test"), data, strict=True):
        write_dataset(Dataset(part.Y, part.labels, X=part.X), tmp_path / "rows" / f"{name}.txt")
    return tmp_path / "rows"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--methods", "popular,lable_tree"), "there is no method 'lable_tree'; did you mean 'label_tree'?"),
        (("--methods", "popular,all"), "--methods must be names or all alone, but is 'popular,all'"),
        (("--methods", "popular", "--seeds", "0,one"), "--seeds must be different integers from 0 to 4294967295"),
        (("--methods", "popular", "--seeds", "1,1"), "but is '1,1'; write for example 0,1,2"),
        (("--methods", "popular", "--seeds", ""), "but is ''; write for example 0,1,2"),
        (("--methods", "popular", "--seeds", "4294967296"), "but is '4294967296'"),
    ],
)
def test_names_and_seeds_are_checked_before_anything_is_read(run, options, message):
    code, out, err = run("compare", "nowhere", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_seeds_are_shown_as_deviations_and_what_draws_nothing_runs_once(run, hierarchy_folder):
    code, out, err = run("compare", hierarchy_folder, "--methods", "random,popular", "--seeds", "0,1", "--out", "out")
    assert code == 0
    assert "±: standard deviation over the seeds" in out
    assert "trained once, since nothing is drawn at random: popular" in err
    results = json.loads(Path("out/results.json").read_text())
    assert results["seeds"] == results["rows"][0]["seeds"] == [0, 1]
    assert "P@1_std" in Path("out/results.csv").read_text().splitlines()[0]
    assert "2 seeds each" in Path("out/report.html").read_text()


def test_all_methods_are_those_that_can_read_the_data(run, rows, monkeypatch):
    few = {name: cls for name, cls in METHODS.items() if name in ("popular", "random", "lexical")}
    monkeypatch.setattr("labelspace.models.registry.METHODS", few)
    code, out, err = run("compare", rows, "--methods", "all", "--out", "out")
    assert code == 0
    assert "note: left out: lexical, since it reads texts, but the data hold ready-made features" in err
    assert [row["method"] for row in json.loads(Path("out/results.json").read_text())["rows"]] == ["popular", "random"]
    assert "lexical" not in out


def test_a_failure_has_exit_code_2_with_json_and_page(run, rows):
    code, out, _ = run("compare", rows, "--methods", "popular,lexical", "--out", "out", "--json")
    assert code == 2
    good, bad = json.loads(out)["rows"]
    assert good["P@1"] > 0
    assert "lexical reads texts, but the data holds ready-made features" in bad["error"]
    assert "lexical failed: " in Path("out/report.html").read_text()


def test_a_cluster_prints_the_same_table(run, rows, monkeypatch):
    monkeypatch.setattr("labelspace.cli.compare.cluster_executor", fake_cluster)
    code, out, err = run("compare", rows, "--methods", "popular,random", "--out", "out", "--cluster", "local")
    assert code == 0
    assert "runs: 2 of 2" in err
    assert "saved to out: results.json" in out
    assert {path.name for path in Path("out/models").iterdir()} == {"popular", "random"}


def test_memory_of_tasks_needs_a_cluster(run, rows):
    code, out, err = run("compare", rows, "--methods", "popular", "--task-memory", "1GB")
    assert (code, out) == (2, "")
    assert "--task-memory is for the tasks of a cluster, but there is no --cluster" in err
