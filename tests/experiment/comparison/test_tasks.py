"""Jobs as tasks of a cluster: the same results and models as in this process."""

import json
import os
import shutil
import tempfile
from functools import partial

import pytest

from labelspace import Tagger, experiment, store
from labelspace.data.source import open_source, write_dataset
from labelspace.errors import DataError
from labelspace.experiment import Recipe
from labelspace.experiment.comparison import run
from labelspace.experiment.comparison.tasks import LOCK, NEW_SECONDS, SavedSource, job_folder
from labelspace.types import Dataset
from tests.fake_executor import FakeExecutor

compare = partial(experiment.compare, isolated=False)  # a process takes two seconds to start
FAILING = Recipe("label_tree", {"tree": "hierarchy"})  # the data have no hierarchy
MEASURED = ("seconds", "latency", "peak_memory")


def without_times(value):
    """Results without what is measured by a clock."""
    if isinstance(value, dict):
        return {key: without_times(of) for key, of in value.items() if not any(part in key for part in MEASURED)}
    return [without_times(of) for of in value] if isinstance(value, list) else value


@pytest.mark.parametrize("has_splits", [True, False])
def test_tasks_give_the_results_and_the_models_of_this_process_without_its_files(data, folder, tmp_path, has_splits):
    recipes, seeds = [Recipe("random"), FAILING, Recipe("one_vs_rest"), Recipe("popular")], [0, 1]
    if has_splits:
        write_dataset(Dataset(data[1].Y, data[1].labels, texts=data[1].texts), folder / "dev.jsonl")
    path = folder if has_splits else folder / "train.jsonl"
    here = compare(open_source(path), recipes, tmp_path / "out", seeds=seeds, seed=3)
    (tmp_path / "out").rename(tmp_path / "here")
    executor = FakeExecutor(lambda: [file.unlink() for file in folder.glob("*.jsonl")])
    there = compare(open_source(path), recipes, tmp_path / "out", seeds=seeds, seed=3, executor=executor)
    assert without_times(there) == without_times(here)
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == there
    assert executor.calls == [(4, True)], "a machine for each method"
    files = {path.relative_to(tmp_path / "here") for path in (tmp_path / "here" / "models").rglob("*.*")}
    assert len(files) > 20
    for file in files:
        assert (tmp_path / "out" / file).read_bytes() == (tmp_path / "here" / file).read_bytes()
    assert Tagger.load(there["rows"][0]["runs"][1]["model"]).model.random_state == 1


def test_the_test_documents_are_read_after_the_training(folder, tmp_path, monkeypatch):
    events, fit, test = [], Tagger.fit_dataset, SavedSource.test
    monkeypatch.setattr(Tagger, "fit_dataset", lambda self, *a, **k: (events.append("fit"), fit(self, *a, **k))[1])
    monkeypatch.setattr(SavedSource, "test", lambda *a, **k: (events.append("test"), test(*a, **k))[1])
    monkeypatch.setattr(run, "compiles", lambda *_: False)  # it fits a few planted documents
    compare(open_source(folder), [Recipe("random")], tmp_path / "out", seeds=[0, 1], executor=FakeExecutor())
    assert events == ["fit", "fit", "test"]


def test_progress_is_one_bar_and_no_method_is_no_task(data, folder, tmp_path):
    steps, executor = [], FakeExecutor()
    recipes = [Recipe("random"), Recipe("popular")]
    show = lambda *step: steps.append(step)  # noqa: E731
    compare(open_source(folder), recipes, tmp_path / "a", progress=show, seeds=[0, 1], executor=executor)
    assert steps == [("runs", 0, 3), ("runs", 1, 3), ("runs", 3, 3)]
    write_dataset(Dataset(data[0].Y, data[0].labels, X=data[0].X), tmp_path / "rows" / "train.txt")
    source = open_source(tmp_path / "rows")
    results = compare(source, [Recipe("lexical")], tmp_path / "b", only_runnable=True, executor=executor)
    assert results["rows"] == []
    assert len(executor.calls) == 1


def test_a_test_file_that_cannot_be_read_is_an_error_before_the_training(folder, tmp_path):
    (folder / "test.jsonl").write_text("garbage\n")
    with pytest.raises(DataError, match=r"test\.jsonl:1"):
        compare(open_source(folder), [Recipe("popular")], tmp_path / "out", executor=FakeExecutor(pytest.fail))


def test_what_a_killed_task_left_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with job_folder() as folder:
        assert folder.stat().st_mode & 0o077 == 0, "documents are for nobody else"
        left, used = folder.with_name(folder.name + "1"), folder.with_name(folder.name + "2")
        new, foreign = folder.with_name(folder.name + "3"), tmp_path / "foreign"
        for path in (left, used, new, foreign):
            shutil.copytree(folder, path)
        for path in (left, used, foreign):
            os.utime(path, (0, path.stat().st_mtime - NEW_SECONDS - 1))
        with store.locked(used / LOCK), job_folder() as other:
            assert {path.name for path in tmp_path.iterdir()} == {p.name for p in (folder, used, new, foreign, other)}
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in (used, new, foreign)}
