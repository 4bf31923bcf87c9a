import csv
import json
import statistics
from dataclasses import replace
from functools import partial

import numba
import pytest

from labelspace import Tagger
from labelspace.data.source import Source, open_source, read_dataset, write_dataset
from labelspace.errors import MissingExtraError, ModelError, ParameterError
from labelspace.experiment import Recipe, evaluate, train
from labelspace.experiment import compare as compare_isolated
from labelspace.experiment.comparison import run
from labelspace.experiment.timing import timed
from labelspace.features import Tfidf
from labelspace.models.registry import method

compare = partial(compare_isolated, isolated=False)  # a process takes two seconds to start


def test_a_method_is_fitted_with_all_seeds_before_it_sees_the_test_file(folder, tmp_path, monkeypatch):
    events = []
    fit, test = Tagger.fit_dataset, Source.test
    monkeypatch.setattr(Tagger, "fit_dataset", lambda self, *a, **k: (events.append("fit"), fit(self, *a, **k))[1])
    monkeypatch.setattr(Source, "test", lambda *a, **k: (events.append("test"), test(*a, **k))[1])
    monkeypatch.setattr(run, "compiles", lambda *_: False)  # it fits a few planted documents
    compare(open_source(folder), [Recipe("random"), Recipe("popular")], tmp_path / "out", seeds=[0, 1])
    assert events == ["fit", "fit", "test", "fit", "test"]


def test_compare_reports_a_failure_and_goes_on(folder, tmp_path):
    recipes = [Recipe("label_tree", {"tree": "hierarchy"}), Recipe("neighbors")]  # the data have no hierarchy
    results = compare(open_source(folder), recipes, tmp_path / "out")
    bad, good = results["rows"]
    assert "needs a hierarchy of the labels" in bad["error"]
    assert good["P@1"] > 80
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == results
    rows = list(csv.DictReader((tmp_path / "out" / "results.csv").read_text().splitlines()))
    assert [row["method"] for row in rows] == ["label_tree", "neighbors"]
    assert float(rows[1]["P@1"]) == good["P@1"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["models", "results.csv", "results.json"]


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe("nonsense"), "no method 'nonsense'"),
        (Recipe("one_vs_rest", {"C": -1}), "C of one_vs_rest must be above 0"),
        (Recipe("one_vs_rest", {"D": 1}), "one_vs_rest has no parameter 'D'"),
        (Recipe("blend", {"members": "neighbors,nonsense"}), "members of blend must be"),
        (Recipe("neighbors", {}, "tfidf", {"ngrams": 9}), "ngrams of tfidf must be"),
    ],
)
def test_compare_refuses_what_is_wrong_before_it_reads_anything(folder, tmp_path, monkeypatch, recipe, message):
    monkeypatch.setattr(Source, "train", lambda *_: pytest.fail("data were read"))
    with pytest.raises(ParameterError, match=message):
        compare(open_source(folder), [Recipe("popular"), recipe], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_compare_refuses_a_rank_without_labels_and_foreign_folders_before_it_trains(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(Tagger, "fit_dataset", lambda *_, **__: pytest.fail("training began"))
    with pytest.raises(ParameterError, match="at most the number of labels, but is 101 and there are 40"):
        compare(open_source(folder), [Recipe("popular")], tmp_path / "out", ks=(1, 101))
    foreign = tmp_path / "out" / "models" / "popular"
    foreign.mkdir(parents=True)
    (foreign / "letter.txt").write_text("dear")
    with pytest.raises(ModelError, match="holds other files"):
        compare(open_source(folder), [Recipe("popular")], tmp_path / "out")


def test_compare_gives_the_figures_of_train_and_evaluate(folder, tmp_path):
    row = compare(open_source(folder), [Recipe("one_vs_rest")], tmp_path / "out")["rows"][0]
    tagger = train(open_source(folder), Recipe("one_vs_rest"))
    alone = evaluate(tagger, read_dataset(folder / "test.jsonl", tagger.labels_))
    assert all(row[key] == value for key, value in alone.items() if "@" in key)


def test_compare_without_a_test_file_holds_documents_out(folder, tmp_path):
    results = compare(open_source(folder / "train.jsonl"), [Recipe("popular")], tmp_path / "out")
    assert (results["n_train"], results["n_test"]) == (560, 140)
    assert "seeded 20%" in results["test"]


def test_the_seeds_of_a_method_share_its_features(folder, tmp_path, monkeypatch):
    fitted = []
    fit = Tfidf.fit_transform
    monkeypatch.setattr(Tfidf, "fit_transform", lambda self, texts: (fitted.append(len(texts)), fit(self, texts))[1])
    rows = compare(open_source(folder), [Recipe("one_vs_rest")], tmp_path / "out", seeds=[0, 1, 2])["rows"]
    assert fitted.count(700) == 1
    assert rows[0]["features_seconds"] > 0


def test_seeds_give_means_and_deviations_and_a_model_each(folder, tmp_path):
    recipes = [Recipe("random", seed=9), Recipe("popular")]
    results = compare(open_source(folder), recipes, tmp_path / "out", seeds=[0, 1, 2])
    drawn, fixed = results["rows"]
    assert results["seeds"] == drawn["seeds"] == [run["seed"] for run in drawn["runs"]] == [0, 1, 2]
    values = [run["P@5"] for run in drawn["runs"]]
    assert drawn["P@5"] == pytest.approx(statistics.mean(values), abs=1e-3)
    assert drawn["P@5_std"] == pytest.approx(statistics.stdev(values), abs=1e-3)
    assert drawn["P@5_std"] > 0
    assert drawn["by_frequency"]["head"]["recall_std"] >= 0
    alone = compare(open_source(folder), [Recipe("random", seed=1)], tmp_path / "alone")["rows"][0]
    assert alone["P@5"] == values[1]
    assert fixed["seeds"] == [0], "nothing is drawn at random"
    assert not any(key.endswith("_std") for key in fixed)
    models = {path.name for path in (tmp_path / "out" / "models").iterdir()}
    assert models == {"random-seed0", "random-seed1", "random-seed2", "popular"}
    difference = results["paired_test"]["metrics"]["P@5"]["others"]["random"]["difference"]
    assert difference == pytest.approx(fixed["P@5"] - drawn["P@5"], abs=1e-3), "of the means over the seeds"


def test_what_cannot_run_is_left_out_of_all_methods_only(data, folder, tmp_path, monkeypatch):
    write_dataset(replace(data[0], texts=None), tmp_path / "rows" / "train.txt")
    recipes = [Recipe("popular"), Recipe("lexical"), Recipe("secseq")]

    def missing(self):
        raise MissingExtraError("this needs the package 'torch', which is not installed; run: pip install it")

    monkeypatch.setattr(method("secseq"), "check_params", missing)
    results = compare(open_source(tmp_path / "rows"), recipes, tmp_path / "out", only_runnable=True)
    assert [row["method"] for row in results["rows"]] == ["popular"]
    assert results["left_out"] == {
        "secseq": "this needs the package 'torch', which is not installed; run: pip install it",
        "lexical": "it reads texts, but the data hold ready-made features",
    }
    with pytest.raises(MissingExtraError):
        compare(open_source(folder), recipes, tmp_path / "out")
    with pytest.raises(ParameterError, match="there must be a method to compare"):
        compare(open_source(folder), recipes[2:], tmp_path / "out", only_runnable=True)


def test_progress_says_which_run_of_how_many(folder, tmp_path):
    class Shown:
        lines: list = []

        def __call__(self, *_):
            pytest.fail("a whole is shown as one")

        def overall(self, phase, step, share, seconds_left):
            self.lines.append((phase, share))

    recipes = [Recipe("random"), Recipe("popular")]
    compare(open_source(folder), recipes, tmp_path / "o", ks=(1,), seed=0, progress=Shown(), seeds=[4, 5])
    phases = list(dict.fromkeys(phase for phase, _ in Shown.lines))
    assert phases == ["random, seed 4, run 1 of 3", "random, seed 5, run 2 of 3", "popular, run 3 of 3"]
    shares = [share for _, share in Shown.lines]
    assert shares == sorted(shares)
    counted = []
    compare(open_source(folder), [Recipe("popular")], tmp_path / "o", progress=lambda *step: counted.append(step))
    assert counted[-1] == ("runs", 1, 1)


def test_compiling_is_measured():
    @numba.njit
    def kernel(x):
        return x + 1

    with timed() as first:
        kernel(1)
    with timed() as second:
        kernel(2)
    assert first.wall >= first.compiling > 0 == second.compiling


def test_compare_tests_the_differences_between_methods_that_ran(folder, tmp_path):
    recipes = [Recipe("label_tree", {"tree": "hierarchy"}), Recipe("popular"), Recipe("neighbors")]
    results = compare(open_source(folder), recipes, tmp_path / "out")
    test = results["paired_test"]["metrics"]
    assert {"P@1", "nDCG@5", "PSP@5", "R@5", "micro_f1"} <= set(test)
    assert test["P@1"]["best"] == "neighbors"
    assert list(test["P@1"]["others"]) == ["popular"], "the first one failed"
    found, rows = test["P@1"]["others"]["popular"], {row["method"]: row for row in results["rows"]}
    assert found["difference"] == pytest.approx(rows["neighbors"]["P@1"] - rows["popular"]["P@1"], abs=1e-3)
    assert found["interval"][0] < found["difference"] < found["interval"][1]
    assert found["significant"]
    assert "precision_coverage" not in rows["neighbors"]
    low, high = rows["neighbors"]["ci"]["P@1"]
    assert low < rows["neighbors"]["P@1"] < high


def test_one_method_is_compared_with_none(folder, tmp_path):
    assert compare(open_source(folder), [Recipe("popular")], tmp_path / "out")["paired_test"]["metrics"] == {}
