import json
from dataclasses import replace
from importlib.util import find_spec

import pytest

from labelspace.data.source import Source, open_source, write_dataset
from labelspace.errors import DataError, ParameterError
from labelspace.experiment import Recipe, evaluate, train
from labelspace.experiment.reproduce import NOT_HERE, Reproduction, plan
from labelspace.experiment.reproduce.published import (
    GAP,
    Column,
    PublishedTable,
    Row,
    Slip,
    published_table,
    published_tables,
)
from labelspace.models.one_vs_rest import OneVsRest
from labelspace.models.registry import METHODS, method
from labelspace.tagger import Tagger
from labelspace.types import Dataset
from tests.fake_executor import FakeExecutor

TABLE = PublishedTable(
    "test-table",
    {"authors": "Someone", "year": 2020, "title": "A title"},
    "Table 1",
    "something",
    "fraction",
    (Column("P@1"), Column("P@1", GAP, "gap"), Column("model_mb", title="size")),
    (
        Row("Linear", "one_vs_rest", {"D": ["0.5", None, "15G"]}),
        Row("Linear, small C", "one_vs_rest", {"D": ["0.4", None, "3M"]}, params={"C": 0.01}),
        Row("Common", "popular", {"D": ["0.25", "0.1", None]}),
        Row("The same", "popular", {"D": ["0.25", None, None]}),
        Row("Other", None, {"D": ["0.9", None, None]}),
        Row("Published", "one_vs_rest", {"D": ["0.9", None, None]}, preset="paper"),
        Row("Unknown", "nonsense", {}),
        Row("Old", "one_vs_rest", {}, params={"D": 1}),
    ),
    (Slip("Common", "D", "P@1", "A misprint.", corrected="0.2"),),
    sizes={"D": {"n_train": 5}},
)


@pytest.fixture
def folder(data, tmp_path):
    """A small data folder of texts with a test file."""
    for name, part, n in zip(("train", "test"), data, (250, 60), strict=True):
        texts = part.rows(range(n))
        write_dataset(Dataset(texts.Y, texts.labels, texts=texts.texts), tmp_path / f"{name}.jsonl")
    return tmp_path


@pytest.fixture
def fits(monkeypatch):
    """The methods that were fitted, with their seeds."""
    fitted, fit = [], Tagger.fit_dataset

    def fit_and_tell(self, *args, **options):
        fitted.append((self.model.name, self.model.get_params().get("random_state")))
        return fit(self, *args, **options)

    monkeypatch.setattr(Tagger, "fit_dataset", fit_and_tell)
    return fitted


def reproduction(folder, out, pattern="Common", seeds=2, table=TABLE, given=None):
    rows = plan(table, "D", pattern, given)
    return Reproduction(table, rows, open_source(folder), out, "D", seeds)


def figures(results, label):
    return next(row for row in results["rows"] if row["row"] == label)["figures"]


def test_a_row_that_cannot_be_run_is_skipped_with_the_reason():
    skipped = {row.row.label: row.skipped for row in plan(TABLE) if row.recipe is None}
    assert skipped == {
        "Other": NOT_HERE,
        "Published": "one_vs_rest has no preset 'paper' in this version",
        "Unknown": "there is no method 'nonsense' in this version",
        "Old": skipped["Old"],
    }
    assert skipped["Old"].startswith("one_vs_rest has no parameter 'D'")


def test_parameters_are_those_of_the_preset_the_data_set_the_user_and_the_row_in_this_order(monkeypatch):
    monkeypatch.setattr(OneVsRest, "presets", {"paper": {"C": 2.0, "tol": 0.2, "max_iter": 7, "threshold": 0.5}})
    row = replace(TABLE.rows[5], params={"C": 3.0}, by_dataset={"D": {"tol": 0.4, "max_iter": 8}})
    given = {"one_vs_rest": Recipe("one_vs_rest", {"C": 3, "max_iter": 9})}
    (planned,) = plan(replace(TABLE, rows=(row,)), "D", None, given)
    params = planned.recipe.tagger().model.get_params()
    assert [params[key] for key in ("C", "tol", "max_iter", "threshold")] == [3.0, 0.4, 9, 0.5]


def test_a_row_whose_own_parameter_is_set_otherwise_is_skipped():
    planned = plan(TABLE, given={"one_vs_rest": Recipe("one_vs_rest", {"C": 5.0})})
    assert planned[0].recipe.params == {"C": 5.0}
    assert planned[1].skipped == "C is 0.01 in this row, but 5.0 is given"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("E", None, None), "must have values for the data set, but has none for 'E'; choose one of: D"),
        ((None, "z*", None), "must match a row of test-table, but is 'z\\*'; the rows are: Linear"),
        ((None, "Other", None), "must have a row that can be run, but has none: not here yet"),
        ((None, None, {"popular": Recipe("popular", {"D": 1})}), "popular has no parameter"),
    ],
)
def test_a_plan_without_a_row_to_run_is_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        plan(TABLE, *arguments)


def test_figures_are_those_of_train_and_evaluate(folder, tmp_path):
    results = reproduction(folder, tmp_path / "out", "Linear*").run()
    source = open_source(folder)
    values = []
    for seed in (0, 1):
        tagger = train(source, Recipe("one_vs_rest", {"C": 0.01}, seed=seed))
        on = (source.test(tagger.labels_), source.train())
        values.append([evaluate(tagger, documents, (1,))["P@1"] for documents in on])
    (test, train_), (test1, train1) = values
    cell = figures(results, "Linear, small C")
    assert cell["P@1"]["ours"] == pytest.approx((test + test1) / 2, abs=1e-3)
    assert cell["P@1"]["std"] == pytest.approx(abs(test - test1) / 2**0.5, abs=1e-3)
    assert cell["gap"]["ours"] == pytest.approx((train_ + train1 - test - test1) / 2, abs=1e-3)
    assert cell["P@1"]["difference"] == pytest.approx(cell["P@1"]["ours"] - 40, abs=1e-3)
    assert 0 < cell["size"]["ours"] < 1
    assert figures(results, "Linear")["size"]["value"] == 15_000
    assert (results["n_train"], results["n_test"], results["n_labels"]) == (250, 60, len(tagger.labels_))
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == results


def test_the_difference_is_to_the_corrected_value(folder, tmp_path):
    cell = figures(reproduction(folder, tmp_path / "out").run(), "Common")["P@1"]
    assert (cell["printed"], cell["corrected"], cell["slip"], cell["std"]) == ("0.25", "0.2", "A misprint.", None)
    assert cell["difference"] == pytest.approx(cell["ours"] - 20, abs=1e-3)


def test_equal_rows_and_seeds_without_effect_are_one_run(folder, tmp_path, fits):
    results = reproduction(folder, tmp_path / "out", None).run()
    assert fits == [("one_vs_rest", 0), ("one_vs_rest", 1)] * 2 + [("popular", None)]
    same = figures(results, "The same")["P@1"]
    assert same["ours"] == figures(results, "Common")["P@1"]["ours"]
    assert "slip" not in same


def test_a_run_that_was_cut_off_resumes(folder, tmp_path, fits, monkeypatch):
    out, fit = tmp_path / "out", OneVsRest._fit

    def interrupted(self, *args):
        if self.random_state == 1:
            raise KeyboardInterrupt
        fit(self, *args)

    monkeypatch.setattr(OneVsRest, "_fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduction(folder, out, None).run()
    row = json.loads((out / "results.json").read_text())["rows"][0]
    assert (row["n_runs"], row["figures"]["P@1"]["std"]) == (1, None)
    monkeypatch.setattr(OneVsRest, "_fit", fit)
    fits.clear()
    whole = reproduction(folder, out, None).run()
    assert fits == [("one_vs_rest", 1), ("one_vs_rest", 0), ("one_vs_rest", 1), ("popular", None)]
    monkeypatch.setattr(Source, "train", lambda *_: pytest.fail("data were read"))
    assert reproduction(folder, out, None).run() == whole


def test_other_data_parameters_seeds_and_columns_run_anew(folder, tmp_path, fits):
    out = tmp_path / "out"
    reproduction(folder, out, "Linear", 1).run()
    first = len(fits)
    reproduction(folder, out, "Linear", 2).run()
    assert fits[first:] == [("one_vs_rest", 1)] * 2
    reproduction(folder, out, "small", 1, given={"one_vs_rest": Recipe("one_vs_rest", {"tol": 0.02})}).run()
    assert len(fits) == first + 3
    reproduction(folder, out, "small", 1, replace(TABLE, columns=(Column("P@3"),))).run()
    assert len(fits) == first + 4
    with (folder / "test.jsonl").open("a") as file:
        file.write('{"text": "w1", "labels": ["label 1"]}\n')
    assert reproduction(folder, out, "Common").run()["n_test"] == 61
    reproduction(folder, out, "small", 1).run()
    assert len(fits) == first + 6


def test_a_row_that_fails_is_reported_and_tried_again(folder, tmp_path, monkeypatch):
    def fail(*_):
        raise DataError("it must not, but fails; stop")

    with monkeypatch.context() as patch:
        patch.setattr(OneVsRest, "_fit", fail)
        results = reproduction(folder, tmp_path / "out", None).run()
    assert results["rows"][0]["error"] == "it must not, but fails; stop"
    assert figures(results, "Common")["P@1"]["ours"] > 0
    again = reproduction(folder, tmp_path / "out", None).run()
    assert "error" not in again["rows"][0]


def test_a_data_set_without_a_test_file_is_split(folder, tmp_path):
    results = reproduction(folder / "train.jsonl", tmp_path / "out").run()
    assert (results["n_train"], results["n_test"]) == (200, 50)


def without_times(results):
    runs = {key: {**run, "train_seconds": 0, "train_cpu_seconds": 0} for key, run in results["runs"].items()}
    return {**results, "runs": runs, "rows": [{**row, "train_cpu_seconds": 0} for row in results["rows"]]}


@pytest.mark.parametrize("has_splits", [True, False])
def test_a_cluster_gives_the_results_of_this_process(folder, tmp_path, has_splits):
    path = folder if has_splits else folder / "train.jsonl"
    failing = Row("Tree", "label_tree", {}, params={"tree": "hierarchy"})  # the data have no hierarchy
    table = replace(TABLE, rows=(failing, *TABLE.rows))
    here = reproduction(path, tmp_path / "here", None, table=table).run()
    steps, there = [], reproduction(path, tmp_path / "there", None, table=table)
    fingerprint = there.fingerprint
    executor = FakeExecutor(lambda: [file.unlink() for file in folder.glob("*.jsonl")])
    results = there.run(lambda *step: steps.append(step), executor)
    assert without_times(results) == without_times(here)
    assert list(results["runs"]) == list(here["runs"])
    assert "needs a hierarchy of the labels" in results["rows"][0]["error"]
    assert (results["fingerprint"], executor.calls) == (fingerprint, [(7, False)])
    assert steps == [("runs", done, 7) for done in range(8)]


def test_what_is_done_is_no_task(folder, tmp_path):
    whole = reproduction(folder, tmp_path / "out").run()
    assert reproduction(folder, tmp_path / "out").run(executor=FakeExecutor(pytest.fail)) == whole


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "no JSON",
        "[" * 100_000,
        '{"table": "other", "runs": {}}',
        '{"table": "test-table", "runs": {"a": 1}}',
        '{"table": "test-table", "runs": {"a": {"figures": {}}}}',
        '{"table": "test-table", "runs": {"a": {"figures": {"P@1": ""}, "train_cpu_seconds": 1, "n_train": 1, '
        '"n_test": 1, "n_labels": 1}}}',
    ],
    ids=range(7),
)
def test_foreign_results_are_not_replaced(folder, tmp_path, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results.json").write_text(text)
    with pytest.raises(ParameterError, match="must have results of test-table, but has others; choose another --out"):
        reproduction(folder, tmp_path / "out").run()
    assert (tmp_path / "out" / "results.json").read_text() == text


@pytest.mark.parametrize("table", published_tables().values(), ids=lambda table: table.name)
def test_published_tables_are_whole(table):
    labels = [row.label for row in table.rows]
    assert len(set(labels)) == len(labels)
    assert all(len(values) == len(table.columns) for row in table.rows for values in row.published.values())
    for dataset in table.datasets:
        for row in table.rows:
            for column in table.columns:
                value = table.value(row, column, dataset)
                assert (value["value"] is None) == (value["printed"] is None)
                assert value["value"] is None or 0 <= value["value"] <= (100 if column.metric != "model_mb" else 15_000)
    for slip in table.slips:
        row = next(row for row in table.rows if row.label == slip.row)
        column = next(c for c in table.columns if (c.metric, c.split) == (slip.metric, slip.split))
        assert table.value(row, column, slip.dataset)["slip"] == slip.why
    for row in table.rows:
        assert row.method is None or row.method in METHODS
        if row.method is not None and (row.params or row.by_dataset) and find_spec("torch"):
            known = method(row.method).params
            for key, value in [*row.params.items(), *(pair for of in row.by_dataset.values() for pair in of.items())]:
                known[key].constraint.check(key, value)


@pytest.mark.parametrize(
    ("name", "row", "dataset", "values"),
    [
        ("glas-table1", "Embedding Type: Linear", "AmazonCat-13K", [91.77]),
        ("glas-table2", "None", "Amazon-670K", [98.21, 44.53, 53.68]),
        ("glas-table3", "PPD-Sparse", "Wikipedia-500K", [70.16, 50.57, 39.66]),
        ("glas-table4", "Ours", "Delicious-200K", [28.68, 24.93, 23.87]),
        ("glas-table4", "PD-Sparse", "EURLex-4K", [38.28, 42.00, 44.89]),
        ("glas-table6", "XML-CNN", "Wikipedia-500K", [59.85, 48.67, 46.12]),
        ("hyp-table2", "Most-Common", "Amazon-670K", [0.0028, 0.0027, 0.0023]),
        ("hyp-table3", "AnnexML", "WikiLSHTC-325K", [63.4, 40.7, 29.8]),
        ("hyp-table4", "Euclidean, #Learners 1, # Dimensions 10", "Wiki10-31K", [79.1, 61.4, 50.4]),
        ("hyp-table5", "# learners 6", "Amazon-670K", [27.4, 24.8, 23.04]),
        ("secseq-table2", "FastXML", "AmazonCat-13K", [15_000, 92.68, 77.21, 62.07]),
        ("neuralxc-table2", "HierarchicalXC", "Bibtex", [3.96, 4.10, 2.66, 2.69]),
        ("neuralxc-fig4", "NeuralXC", "Bibtex", [None, None, None]),
        ("repository-2020", "SLEEC", "Delicious", [67.59, 61.38, 56.56, 59.28]),
    ],
)
def test_published_values(name, row, dataset, values):
    table = published_table(name)
    found = next(r for r in table.rows if r.label == row)
    assert [table.value(found, column, dataset)["value"] for column in table.columns] == values


def test_an_unknown_table_is_refused_with_the_nearest_name():
    with pytest.raises(ParameterError, match="no published table 'glas-table5'; did you mean 'glas-table"):
        published_table("glas-table5")
