import json
from pathlib import Path

import pytest

from labelspace import Tagger
from labelspace.data.source import write_dataset
from labelspace.types import Dataset
from tests.fake_executor import fake_cluster

pytest.importorskip("optuna", reason="needs optuna, which the extra tune installs")


@pytest.fixture
def texts(data, tmp_path):
    """A data folder with texts, and a test file that cannot be read."""
    part = data[0].rows(range(200))
    write_dataset(Dataset(part.Y, part.labels, texts=part.texts), tmp_path / "texts" / "train.jsonl")
    (tmp_path / "texts" / "test.jsonl").write_text("garbage")
    return "texts"


def test_tune_prints_the_best_and_how_to_train_it(run, texts):
    code, out, err = run("tune", texts, "--method", "one_vs_rest", "--trials", "4", "--search", "C=0.01:10:log")
    assert code == 0
    results = json.loads(Path("runs/texts-one_vs_rest-tune/results.json").read_text())
    assert f"{results['best']['value']:.2f}" in out
    assert "(the default)" in out
    assert "note: searching C=0.01:10:log\n" in err
    assert "trials: 4 of 4" in err
    command = next(line.strip() for line in out.splitlines() if line.startswith("  labelspace train"))
    assert command == results["best"]["command"]
    assert run(*command.split()[1:], "--out", "model")[0] == 0
    assert Tagger.load("model").model.C == results["best"]["params"].get("C", 0.5)
    files = {path.name for path in Path("runs/texts-one_vs_rest-tune").iterdir()}
    assert files == {"study.journal", "results.json", "results.csv", "report.html"}


def test_the_same_command_goes_on(run, texts):
    command = ("tune", texts, "--method", "one_vs_rest", "--search", "C", "--out", "out")
    run(*command, "--trials", "2")
    code, out, err = run(*command, "--trials", "3", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["n_trials"] == 3
    assert "3 trials are done already" in run(*command, "--trials", "3")[2]
    code, out, err = run(*command, "--seed", "1")
    assert code == 2
    assert err.splitlines()[-1].startswith("error: a search goes on with the same data and settings, but seed differs")


def test_an_interrupt_says_how_to_go_on(run, texts, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Tagger, "fit_dataset", interrupted)
    code, _, err = run("tune", texts, "--method", "one_vs_rest", "--out", "out")
    assert code == 130
    assert "note: the same command continues where this one stopped: finished trials are in out\n" in err


def test_a_search_whose_trials_all_fail_exits_with_2(run, texts):
    failing = ("--set", "tree=hierarchy", "--search", "C")  # the data have no hierarchy
    code, out, err = run("tune", texts, "--method", "label_tree", *failing, "--trials", "2", "--out", "out")
    assert code == 2
    assert "Every trial failed." in out
    assert "note: trial 0 failed (the default): " in err
    assert Path("out/report.html").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "popular"), "there must be a parameter to search, but popular has none"),
        (("--search", "n_candidates=a:b"), "--search n_candidates must be LOW:HIGH with numbers, but is 'a:b'"),
        (("--search", "C=1:2"), "blend has no parameter 'C'"),
        (("--metric", "F1"), "--metric must be P@k"),
        (("--budget", "soon"), "--budget must be a duration such as 90s"),
        (("--budget", "0s"), "--budget must be a positive number"),
        (("--set", "n_candidates=5", "--search", "n_candidates"), "n_candidates is fixed by --set"),
        (("--out", "texts"), "--out must be a new folder or one of labelspace tune"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run, texts, options, message):
    code, out, err = run("tune", texts, *options)
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1


def test_trials_on_a_cluster_are_those_of_as_many_at_a_time_here(run, texts, monkeypatch):
    monkeypatch.setattr("labelspace.cli.tune.cluster_executor", fake_cluster)
    command = ("tune", texts, "--method", "one_vs_rest", "--trials", "3", "--search", "C", "--json")
    there = json.loads(run(*command, "--out", "a", "--cluster", "local")[1])
    here = json.loads(run(*command, "--out", "b", "--parallel", "8")[1])
    assert [trial["figures"] for trial in there["trials"]] == [trial["figures"] for trial in here["trials"]]
    assert there["parallel"] == here["parallel"] == 8
    code, out, err = run(*command, "--out", "a")
    assert (code, out) == (2, "")
    assert "but parallel differs: that in a is of 8, and this one of 1; give the same command" in err
