"""compare, tune and reproduce on a cluster: the results of one process."""

import pytest

from labelspace.cluster import RayExecutor, connect
from labelspace.data.source import open_source, write_dataset
from labelspace.data.synthetic import planted
from labelspace.experiment import Recipe, compare, tune
from labelspace.experiment.reproduce import Reproduction, plan
from labelspace.experiment.reproduce.published import Column, PublishedTable, Row

pytest.importorskip("ray", reason="Ray is not installed: pip install 'labelspace[cluster]'")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def executor(machines):
    machines.restore()
    with connect(machines.address) as cluster:
        yield RayExecutor(cluster)


@pytest.fixture
def source(tmp_path):
    documents = planted(n=120, d=60, l=8, texts=True, seed=1)
    write_dataset(documents.rows(range(90)), tmp_path / "data" / "train.jsonl")
    write_dataset(documents.rows(range(90, 120)), tmp_path / "data" / "test.jsonl")
    return open_source(tmp_path / "data")


def test_compare_gives_figures_errors_and_memory_of_processes_on_other_machines(source, executor, tmp_path):
    recipes = [Recipe("random", seed=3), Recipe("label_tree", {"tree": "hierarchy"})]  # the data have no hierarchy
    here = compare(source, recipes, tmp_path / "here", isolated=False)
    there = compare(source, recipes, tmp_path / "there", executor=executor)
    (good, bad), expected = there["rows"], here["rows"]
    assert {key: good[key] for key in good if "@" in key} == {key: v for key, v in expected[0].items() if "@" in key}
    assert bad == expected[1]
    assert "needs a hierarchy of the labels" in bad["error"]
    assert good["peak_memory_mb"] > 50
    assert good["model"] == str(tmp_path / "there" / "models" / "random")
    for file in (tmp_path / "here" / "models" / "random").iterdir():
        assert (tmp_path / "there" / "models" / "random" / file.name).read_bytes() == file.read_bytes()


def test_tune_gives_the_same_trials(source, executor):
    pytest.importorskip("optuna", reason="needs optuna, which the extra tune installs")
    here = tune(source, "one_vs_rest", 7, parallel=4)
    there = tune(source, "one_vs_rest", 7, parallel=4, executor=executor)
    assert [trial["params"] for trial in there["trials"]] == [trial["params"] for trial in here["trials"]]
    assert [trial["figures"] for trial in there["trials"]] == [trial["figures"] for trial in here["trials"]]


def test_reproduce_gives_the_same_table(source, executor, tmp_path):
    rows = (Row("Linear", "one_vs_rest", {}), Row("Common", "popular", {}))
    paper = {"authors": "Someone", "year": 2020, "title": "A title"}
    table = PublishedTable("test-table", paper, "Table 1", "something", "percent", (Column("P@1"),), rows)
    found = [
        Reproduction(table, plan(table), source, tmp_path / name, None, 2).run(executor=on)
        for name, on in (("here", None), ("there", executor))
    ]
    here, there = ([(row["n_runs"], row["figures"]) for row in results["rows"]] for results in found)
    assert there == here
    assert [n for n, _ in here] == [2, 1]
