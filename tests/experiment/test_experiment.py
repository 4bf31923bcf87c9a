import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace import experiment, metrics
from labelspace.data.source import open_source, read_dataset, write_dataset
from labelspace.errors import DataError, ParameterError
from labelspace.experiment import Recipe
from labelspace.models import registry
from labelspace.models.popular import Popular
from labelspace.types import Dataset, Hierarchy


@pytest.fixture
def folder(data, tmp_path):
    """A data folder of texts with a test file."""
    for name, part in zip(("train", "test"), data, strict=True):
        write_dataset(Dataset(part.Y, part.labels, texts=part.texts), tmp_path / f"{name}.jsonl")
    return tmp_path


class Watching(Popular):
    """Remembers the validation documents it was given."""

    name = "watching"
    uses_validation = True
    seen: list = []

    def _fit(self, X, Y, aids):
        Watching.seen.append((X.shape[0], aids.validation[0].shape[0]))
        super()._fit(X, Y, aids)


@pytest.fixture
def watching(monkeypatch):
    monkeypatch.setitem(registry.METHODS, "watching", "test_experiment:Watching")
    Watching.seen.clear()


def test_the_figures_are_those_of_the_metrics(folder, data):
    tagger = experiment.train(open_source(folder), Recipe("one_vs_rest"))
    test = read_dataset(folder / "test.jsonl", tagger.labels_)
    figures = experiment.evaluate(tagger, test)
    top = tagger.predict_topk(test.texts, 5)
    expected = metrics.evaluate(test.Y, top, tagger.labels_.counts, tagger.labels_.n_documents)
    assert {key: figures[key] for key in expected} == expected
    assert figures["P@1"] > 85
    assert set(figures["by_frequency"]) == {"head", "torso", "tail"}
    assert figures["latency_ms_p99"] >= figures["latency_ms_p50"] > 0


def test_the_hierarchy_is_that_of_the_documents_or_else_of_the_tagger(data):
    train, test = data
    tagger = experiment.Tagger("one_vs_rest").fit_dataset(train)
    figures = experiment.evaluate(tagger, test)
    tree, deep = train.labels.hierarchy, tagger.predict_topk(test.X, 40)
    answers = metrics.best_by_level(test.Y, deep, tree, tagger.labels_.counts)
    assert figures["by_level"]["1"]["accuracy"] == round(100 * answers[1]["accuracy"], 4)
    assert figures["deepest_accuracy"] == round(100 * metrics.deepest_accuracy(test.Y, deep, tree), 4)
    bare = replace(test, labels=replace(test.labels, hierarchy=None))
    assert experiment.evaluate(tagger, bare)["by_level"] == figures["by_level"]
    other = replace(test, labels=replace(test.labels, hierarchy=Hierarchy.from_edges([[1, 0]], 40)))
    assert len(experiment.evaluate(tagger, other)["by_level"]) == 2
    wider = bare.labels.extended(["a label nobody knows"])
    Y = sp.hstack([bare.Y, np.ones((len(bare), 1))], format="csr", dtype=np.float32)
    unknown = experiment.evaluate(tagger, replace(bare, Y=Y, labels=wider))
    assert unknown["by_level"]["0"]["n_labels"] == figures["by_level"]["0"]["n_labels"] + 1
    flat = experiment.Tagger("one_vs_rest").fit_dataset(replace(train, labels=bare.labels))
    assert "by_level" not in experiment.evaluate(flat, bare)


def test_labels_unknown_to_the_model_count_as_missed(folder):
    tagger = experiment.train(open_source(folder), Recipe("neighbors"))
    lines = [json.loads(line) for line in (folder / "test.jsonl").read_text().splitlines()]
    before = experiment.evaluate(tagger, read_dataset(folder / "test.jsonl", tagger.labels_))
    for line in lines:
        line["labels"].append("a label nobody knows")
    (folder / "test.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    after = experiment.evaluate(tagger, read_dataset(folder / "test.jsonl", tagger.labels_))
    assert after["n_labels"] == before["n_labels"] + 1
    assert after["P@1"] == before["P@1"]
    assert after["R@5"] < before["R@5"]


def test_training_never_opens_the_test_file(folder, tmp_path):
    honest = experiment.train(open_source(folder), Recipe("one_vs_rest"))
    (folder / "test.jsonl").write_text("this is not even JSON")
    blind = experiment.train(open_source(folder), Recipe("one_vs_rest"))
    for tagger, name in ((honest, "honest"), (blind, "blind")):
        tagger.save(tmp_path / name)
    files = ("model.safetensors", "features.safetensors", "labels.jsonl")
    assert all((tmp_path / "honest" / f).read_bytes() == (tmp_path / "blind" / f).read_bytes() for f in files)


def test_compare_fits_everything_before_it_reads_the_test_file(folder, tmp_path, monkeypatch):
    events = []
    fit, test = experiment.Tagger.fit_dataset, experiment.Source.test
    monkeypatch.setattr(experiment.Tagger, "fit_dataset", lambda *a, **k: (events.append("fit"), fit(*a, **k))[1])
    monkeypatch.setattr(experiment.Source, "test", lambda *a, **k: (events.append("test"), test(*a, **k))[1])
    experiment.compare(open_source(folder), [Recipe("popular"), Recipe("neighbors")], tmp_path / "out")
    assert events == ["fit", "fit", "test"]


def test_validation_is_the_dev_file_or_a_seeded_cut_from_train(folder, data, watching, tmp_path):
    experiment.train(open_source(folder), Recipe("watching", seed=1))
    write_dataset(Dataset(data[1].Y[:50], data[1].labels, texts=data[1].texts[:50]), folder / "dev.jsonl")
    experiment.train(open_source(folder), Recipe("watching", seed=1))
    assert Watching.seen == [(630, 70), (700, 50)]
    experiment.compare(open_source(folder), [Recipe("watching")], tmp_path / "out")
    assert Watching.seen[-1] == (700, 50)


def test_compare_cuts_validation_for_those_who_use_it(folder, watching, tmp_path):
    results = experiment.compare(open_source(folder), [Recipe("watching"), Recipe("popular")], tmp_path / "out")
    assert Watching.seen == [(630, 70)]
    assert not any("error" in row for row in results["rows"])


def test_compare_reports_a_failure_and_goes_on(folder, tmp_path):
    recipes = [Recipe("one_vs_rest", {"C": -1}), Recipe("nonsense"), Recipe("neighbors")]
    results = experiment.compare(open_source(folder), recipes, tmp_path / "out")
    bad, unknown, good = results["rows"]
    assert "C of one_vs_rest must be above 0" in bad["error"]
    assert "no method 'nonsense'" in unknown["error"]
    assert good["P@1"] > 80
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == results
    rows = list(csv.DictReader((tmp_path / "out" / "results.csv").read_text().splitlines()))
    assert [row["method"] for row in rows] == ["one_vs_rest", "nonsense", "neighbors"]
    assert float(rows[2]["P@1"]) == good["P@1"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["models", "results.csv", "results.json"]


def test_compare_gives_the_figures_of_train_and_evaluate(folder, tmp_path):
    row = experiment.compare(open_source(folder), [Recipe("one_vs_rest")], tmp_path / "out")["rows"][0]
    tagger = experiment.train(open_source(folder), Recipe("one_vs_rest"))
    alone = experiment.evaluate(tagger, read_dataset(folder / "test.jsonl", tagger.labels_))
    assert all(row[key] == value for key, value in alone.items() if "@" in key)


def test_compare_without_a_test_file_holds_documents_out(folder, tmp_path):
    results = experiment.compare(open_source(folder / "train.jsonl"), [Recipe("popular")], tmp_path / "out")
    assert (results["n_train"], results["n_test"]) == (560, 140)
    assert "seeded 20%" in results["test"]


def test_the_seed_reaches_the_method():
    assert Recipe("random", seed=7).tagger().model.seed == 7
    assert Recipe("popular", seed=7).tagger().model.get_params() == {}
    assert Recipe("random", {"seed": 3}, seed=7).tagger().model.seed == 3


def test_a_method_may_prefer_single_words_unless_told_otherwise():
    assert Recipe("neighbors").tagger().features.ngrams == 1
    assert Recipe("neighbors", feature_params={"ngrams": 2}).tagger().features.ngrams == 2
    assert Recipe("popular").tagger().features.ngrams == 2


def test_features_for_a_model_of_texts_are_refused(folder, data):
    tagger = experiment.train(open_source(folder), Recipe("popular"))
    with pytest.raises(DataError, match="reads texts, but the data holds ready-made features"):
        experiment.evaluate(tagger, Dataset(data[1].Y, data[1].labels, X=data[1].X))


def test_a_wrong_parameter_is_said_before_the_data_are_read(tmp_path):
    class Unreadable:
        def train(self):
            raise AssertionError("the data were read")

    with pytest.raises(ParameterError, match="C of one_vs_rest must be above 0"):
        experiment.train(Unreadable(), Recipe("one_vs_rest", {"C": 0}))


def test_propensities_may_come_from_the_test_labels(folder):
    tagger = experiment.train(open_source(folder), Recipe("neighbors"))
    test = read_dataset(folder / "test.jsonl", tagger.labels_)
    ours, theirs = (experiment.evaluate(tagger, test, propensity_from=source) for source in ("train", "test"))
    assert ours["P@5"] == theirs["P@5"]
    assert ours["PSP@1"] != theirs["PSP@1"]
    amazon = experiment.evaluate(tagger, test, propensity_preset="amazon")
    assert amazon["PSP@1"] != ours["PSP@1"]
    with pytest.raises(ParameterError, match="one of default, wikipedia, amazon, but is 'moon'"):
        experiment.evaluate(tagger, test, propensity_preset="moon")


def test_a_stream_is_tagged_in_order_a_batch_at_a_time(folder, monkeypatch):
    from labelspace.data.records import Record

    tagger = experiment.train(open_source(folder), Recipe("neighbors"))
    monkeypatch.setattr(experiment, "BATCH", 4)
    drawn = []

    def endless():
        for number in range(10**9):
            drawn.append(number)
            yield Record(f"id {number}", f"w{number % 7} w{number % 5}")

    stream = experiment.predict_records(tagger, endless(), 3, "stream")
    first = [next(stream) for _ in range(6)]
    assert [record.id for record, _ in first] == [f"id {i}" for i in range(6)]
    assert len(drawn) == 8
    assert first[5][1] == tagger.tag("w5 w0", 3)


def test_latency_times_single_rows(data):
    shapes = []
    figures = experiment.latency(lambda X: shapes.append(X.shape), data[1].X)
    assert set(shapes) == {(1, 600)}
    assert len(shapes) == len(data[1])
    assert np.isfinite(list(figures.values())).all()
