import csv
import json

import numba
import pytest

from labelspace import Tagger
from labelspace.data.source import Source, open_source, read_dataset
from labelspace.errors import ModelError, ParameterError
from labelspace.experiment import Recipe, compare, evaluate, train
from labelspace.experiment.timing import timed
from labelspace.features import Tfidf


def test_compare_fits_everything_before_it_reads_the_test_file(folder, tmp_path, monkeypatch):
    events = []
    fit, test = Tagger.fit_dataset, Source.test
    monkeypatch.setattr(Tagger, "fit_dataset", lambda *a, **k: (events.append("fit"), fit(*a, **k))[1])
    monkeypatch.setattr(Source, "test", lambda *a, **k: (events.append("test"), test(*a, **k))[1])
    compare(open_source(folder), [Recipe("popular"), Recipe("neighbors")], tmp_path / "out")
    assert events == ["fit", "fit", "test"]


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


def test_compare_makes_each_view_once_whoever_asks_for_it(folder, tmp_path, monkeypatch):
    fitted = []
    fit = Tfidf.fit_transform
    monkeypatch.setattr(Tfidf, "fit_transform", lambda self, texts: (fitted.append(repr(self)), fit(self, texts))[1])
    recipes = [Recipe("neighbors"), Recipe("one_vs_rest"), Recipe("blend", {"members": "neighbors,label_tree"})]
    rows = compare(open_source(folder), recipes, tmp_path / "out")["rows"]
    assert fitted == ["Tfidf(ngrams=1)"]
    assert rows[0]["features_seconds"] == rows[2]["features_seconds"] > 0


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
    assert "reliability" not in rows["neighbors"]
    assert "precision_coverage" not in rows["neighbors"]


def test_one_method_is_compared_with_none(folder, tmp_path):
    assert compare(open_source(folder), [Recipe("popular")], tmp_path / "out")["paired_test"]["metrics"] == {}
