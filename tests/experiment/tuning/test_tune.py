import csv
import json
import shlex
import sys
from functools import partial

import pytest

from labelspace import Tagger, experiment
from labelspace.cli.recipes import parse_settings
from labelspace.data.source import Source, open_source, write_dataset
from labelspace.errors import DataError, MissingExtraError, ParameterError
from labelspace.experiment import Recipe, evaluate, train, tune
from labelspace.features import Tfidf
from labelspace.types import Dataset
from tests.fake_executor import FakeExecutor

pytest.importorskip("optuna", reason="needs optuna, which the extra tune installs")


def values(results):
    return [trial["value"] for trial in results["trials"]]


def test_tune_finds_better_parameters_than_a_bad_start_and_says_by_how_much(folder, tmp_path):
    recipe = Recipe("one_vs_rest", {"threshold": 0.01}, seed=0)
    lines, steps = [], []
    results = tune(
        open_source(folder), recipe, 14, tmp_path / "out", search={"C": "0.0001:10:log"},
        tell=lines.append, progress=lambda *step: steps.append(step),
    )  # fmt: skip
    assert results["n_trials"] == 14 == len(results["trials"])
    assert results["default"] == values(results)[0]
    best = results["best"]
    assert best["value"] == max(values(results))
    assert best["gain"] == round(best["value"] - results["default"], 4)
    assert [trial["rank"] for trial in results["trials"]].count(1) == 1
    assert results["searched"] == {"C": "0.0001:10:log"}
    assert results["importance"]["C"] > 0.5
    assert results["fixed"] == {"threshold": 0.01}
    assert lines[0] == "searching C=0.0001:10:log"
    assert lines[1] == f"trial 0, the default: nDCG@5 {results['default']:.2f}"
    assert steps[0] == ("trials", 0, 14)
    assert steps[-1] == ("trials", 14, 14)
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == results
    rows = list(csv.DictReader((tmp_path / "out" / "results.csv").read_text().splitlines()))
    assert [float(row["nDCG@5"]) for row in rows] == values(results)
    assert float(rows[best["trial"]]["C"]) == results["trials"][best["trial"]]["params"]["C"]


def test_the_same_seed_gives_the_same_and_more_trials_go_on(folder, tmp_path):
    once = tune(open_source(folder), "one_vs_rest", 6)
    short = tune(open_source(folder), "one_vs_rest", 3, tmp_path / "out")
    lines = []
    longer = tune(open_source(folder), "one_vs_rest", 6, tmp_path / "out", tell=lines.append)
    assert values(short) == values(once)[:3]
    assert values(longer) == values(once)
    assert longer["best"]["params"] == once["best"]["params"]
    assert "3 trials are done already" in lines
    fewer = tune(open_source(folder), "one_vs_rest", 2, tmp_path / "out")
    assert fewer["n_trials"] == 6


def test_an_interrupted_search_goes_on_where_it_stopped(folder, tmp_path, monkeypatch):
    whole, fit, calls = tune(open_source(folder), "one_vs_rest", 6), Tagger.fit_dataset, []

    def interrupted(*args, **kwargs):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return fit(*args, **kwargs)

    monkeypatch.setattr(Tagger, "fit_dataset", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tune(open_source(folder), "one_vs_rest", 6, tmp_path / "out")
    assert values(tune(open_source(folder), "one_vs_rest", 6, tmp_path / "out")) == values(whole)
    assert len(calls) == 4 + 3


def test_the_test_file_is_never_read(folder, monkeypatch):
    expected = values(tune(open_source(folder), "one_vs_rest", 3))
    (folder / "test.jsonl").write_text("garbage, no JSON\n")
    monkeypatch.setattr(Source, "test", lambda *_: pytest.fail("the test file was read"))
    assert values(tune(open_source(folder), "one_vs_rest", 3)) == expected


def test_validation_is_the_dev_file_or_a_seeded_part_of_the_training_documents(data, folder):
    results = tune(open_source(folder), "one_vs_rest", 1)
    assert (results["n_train"], results["n_validation"]) == (560, 140)
    assert results["validation"] == "a seeded 20% of the training documents"
    dev = Dataset(data[1].Y, data[1].labels, texts=data[1].texts)
    write_dataset(dev, folder / "dev.jsonl")
    results = tune(open_source(folder), "one_vs_rest", 1)
    assert (results["n_train"], results["n_validation"], results["validation"]) == (700, 200, "the validation file")
    figures = evaluate(train(open_source(folder), Recipe("one_vs_rest")), open_source(folder).dev())
    assert results["default"] == figures["nDCG@5"]
    write_dataset(Dataset(dev.Y * 0, dev.labels, texts=dev.texts), folder / "dev.jsonl")
    with pytest.raises(DataError, match="validation needs labels"):
        tune(open_source(folder), "one_vs_rest", 1)


def test_methods_do_not_stop_by_the_documents_that_trials_are_measured_on(folder, monkeypatch):
    given, fit = [], Tagger.fit_dataset
    monkeypatch.setattr(
        Tagger, "fit_dataset", lambda self, train, *args, **kwargs: (given.append(args), fit(self, train, **kwargs))[1]
    )
    tune(open_source(folder), "one_vs_rest", 2)
    assert given == [(), ()]


def test_features_are_made_once_for_all_trials_that_share_their_settings(folder, monkeypatch):
    fitted, fit = [], Tfidf.fit_transform
    monkeypatch.setattr(Tfidf, "fit_transform", lambda self, texts: (fitted.append(repr(self)), fit(self, texts))[1])
    tune(open_source(folder), "one_vs_rest", 4)
    assert fitted == ["Tfidf(ngrams=1)"]
    fitted.clear()
    results = tune(open_source(folder), "one_vs_rest", 8, search={"C": None, "features.ngrams": "1,2"})
    assert sorted(fitted) == ["Tfidf()", "Tfidf(ngrams=1)"], "2 is the default"
    assert {trial["params"].get("features.ngrams") for trial in results["trials"]} == {None, 1, 2}


def test_a_failing_trial_is_reported_and_the_others_go_on(folder):
    lines = []
    search = {"tree": ["balanced", "hierarchy"]}  # the data have no hierarchy
    results = tune(open_source(folder), Recipe("label_tree", {"tune": False}), 6, search=search, tell=lines.append)
    failed = [trial for trial in results["trials"] if "error" in trial]
    assert results["n_failed"] == len(failed) > 0
    assert "needs a hierarchy of the labels" in failed[0]["error"]
    assert (failed[0]["rank"], failed[0]["value"]) == (None, None)
    assert sum("failed (tree=hierarchy)" in line for line in lines) == 1, "a repeated trial is not run again"
    assert results["best"]["trial"] == 0
    results = tune(open_source(folder), Recipe("label_tree", {"tree": "hierarchy"}), 2, search={"C": None})
    assert results["best"] is results["default"] is None


def test_a_trial_that_was_tried_is_not_trained_again(folder, monkeypatch):
    fits, fit = [], Tagger.fit_dataset
    monkeypatch.setattr(Tagger, "fit_dataset", lambda *a, **k: (fits.append(1), fit(*a, **k))[1])
    results = tune(open_source(folder), "one_vs_rest", 8, search={"normalize": "true,false"})
    assert len(fits) == 2
    assert len(set(values(results))) <= 2
    assert results["n_trials"] == 8


def test_no_trial_begins_after_the_budget(folder):
    lines = []
    results = tune(open_source(folder), "one_vs_rest", 5, cpu_seconds=1e-9, tell=lines.append)
    assert results["n_trials"] == 1
    assert lines[-1] == "the budget of 0.0 s is used up after 1 trials"


@pytest.mark.parametrize("metric", ["P@1", "R@3", "coverage@7", "PSP@5"])
def test_any_metric_of_an_evaluation_can_be_maximized(folder, metric):
    results = tune(open_source(folder), "one_vs_rest", 1, metric=metric)
    assert results["default"] == results["trials"][0]["figures"][metric]


def test_the_command_trains_the_best_model(folder):
    recipe = Recipe("lexical", {"prior_strength": 2.0}, seed=3)
    results = tune(open_source(folder), recipe, 3, search={"stemming": ["none"]}, train_options=["--inputs", "a b"])
    best = next(trial for trial in results["trials"] if trial["params"])
    assert best["params"] == {"stemming": "none"}
    command = shlex.split(results["best"]["command"])
    start = ["labelspace", "train", str(folder), "--inputs", "a b", "--method", "lexical", "--seed", "3", "--set"]
    assert command[:10] == start
    given = parse_settings([option for option in command[10:] if option != "--set"])
    assert given == {"prior_strength": 2.0, **results["best"]["params"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metric": "accuracy"}, "--metric must be P@k, nDCG@k"),
        ({"n_trials": 0}, "number of trials must be at least 1, but is 0"),
        ({"parallel": 0}, "trials at a time must be at least 1, but are 0"),
        ({"search": {"D": None}}, "no parameter 'D'"),
        ({"method": "popular"}, "a parameter to search, but popular has none"),
        ({"out": "folder"}, "has other files"),
    ],
)
def test_what_is_wrong_is_said_before_the_data_are_read(folder, monkeypatch, changes, message):
    monkeypatch.setattr(Source, "train", lambda *_: pytest.fail("data were read"))
    if "out" in changes:
        changes = {"out": folder}
    with pytest.raises(ParameterError, match=message):
        tune(open_source(folder), **{"method": "one_vs_rest", **changes})


def test_a_rank_without_labels_is_refused(folder):
    with pytest.raises(ParameterError, match="at most the number of labels"):
        tune(open_source(folder), "one_vs_rest", metric="P@1000")


def test_without_optuna_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"labelspace tune needs the package 'optuna'.*labelspace\[tune\]"):
        experiment.tune(open_source(folder), "one_vs_rest")


def without_times(results):
    trials = [{key: value for key, value in trial.items() if key != "cpu_seconds"} for trial in results["trials"]]
    return {**results, "cpu_seconds": 0, "trials": trials}


def test_a_cluster_gives_the_trials_of_this_process_in_batches(folder, tmp_path):
    search, lines = {"tree": ["balanced", "hierarchy"], "C": "0.1:1"}, []  # the data have no hierarchy
    run = partial(tune, method=Recipe("label_tree", {"tune": False}), n_trials=7, search=search)
    here = run(open_source(folder), parallel=3)
    executor, steps = FakeExecutor(lambda: (folder / "train.jsonl").unlink(missing_ok=True)), []
    there = run(
        open_source(folder), parallel=3, executor=executor, tell=lines.append, progress=lambda *step: steps.append(step)
    )
    assert without_times(there) == without_times(here)
    assert here["n_failed"] > 0
    assert executor.calls == [(3, False), (3, False), (1, False)]
    assert steps == [("trials", done, 7) for done in range(8)]
    numbers = [int(line.split()[1].rstrip(",")) for line in lines if line.startswith("trial ")]
    assert numbers == sorted(numbers)


def test_values_that_occur_twice_in_a_batch_are_trained_once(folder):
    executor = FakeExecutor()
    results = tune(open_source(folder), "one_vs_rest", 8, search={"normalize": "true,false"}, executor=executor)
    assert results["parallel"] == 8, "the default on a cluster"
    assert executor.calls == [(2, False)]
    assert sorted(trial["cpu_seconds"] > 0 for trial in results["trials"]) == [False] * 6 + [True] * 2


def test_a_batch_that_was_interrupted_goes_on_with_the_trials_that_are_left(folder, tmp_path, monkeypatch):
    class Interrupted(FakeExecutor):
        def map_unordered(self, *args, **kwargs):
            for number, done in enumerate(sorted(super().map_unordered(*args, **kwargs))):
                if number == 2:
                    raise KeyboardInterrupt
                yield done

    whole, executor = tune(open_source(folder), "one_vs_rest", 6, parallel=4), FakeExecutor()
    with pytest.raises(KeyboardInterrupt):
        tune(open_source(folder), "one_vs_rest", 6, tmp_path / "out", parallel=4, executor=Interrupted())
    again = tune(open_source(folder), "one_vs_rest", 6, tmp_path / "out", parallel=4, executor=executor)
    assert without_times(again) == without_times(whole)
    assert executor.calls == [(2, False), (2, False)]
