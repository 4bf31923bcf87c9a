"""Reproduce: the rows of a published table on given data, ours beside the printed values.

1. Plan: check the method, the preset and the parameters of every row before any data are read. A row that cannot be run
   is skipped, with the reason.
2. For each row and seed, fit on the training documents and measure the table's columns. Rows with equal parameters are
   one run, and so are the seeds of a method that draws nothing at random.
3. Write ``results.json`` after each run. A run is known by its data, parameters, seed and the version of labelspace:
   what is in the file is not run again.
4. Mean and standard deviation over the seeds, and the difference to the printed value, or to the corrected one.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any, cast

from labelspace import metrics, store
from labelspace.data.files import reading
from labelspace.data.source import Source, files_of
from labelspace.errors import LabelspaceError, ParameterError
from labelspace.experiment.comparison.documents import hold_out_test, tested_on
from labelspace.experiment.evaluate import evaluate, megabytes
from labelspace.experiment.published import GAP, Column, PublishedTable, Row, propensity_preset
from labelspace.experiment.timing import Seconds, timed
from labelspace.experiment.train import Recipe, labeled
from labelspace.features.views import FeatureCache
from labelspace.models.registry import METHODS, method
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Progress, no_progress
from labelspace.version import __version__

RESULTS = "results.json"
DIGITS = 4  # after the point, as in ``evaluate``
NOT_HERE = "not here yet"
SIZE = "model_mb"  # the metric that needs a saved model


@dataclass(frozen=True)
class PlannedRow:
    """A row with what trains it, or the reason why nothing does."""

    row: Row
    recipe: Recipe | None
    skipped: str = ""
    selected: bool = True

    @property
    def runs(self) -> bool:
        """Whether the row is to be run."""
        return self.selected and self.recipe is not None


def plan(
    table: PublishedTable,
    dataset: str | None = None,
    pattern: str | None = None,
    given: Mapping[str, Recipe] | None = None,
) -> list[PlannedRow]:
    """What to run for each row of a table; an error where no row is left.

    ``pattern`` selects rows by their labels: a part of it, or with wildcards. ``given`` are recipes by method whose
    settings take precedence over presets; a row with another value of its own is skipped.
    """
    if dataset is not None and dataset not in table.datasets:
        listed = ", ".join(table.datasets)
        rule = f"{table.name} must have values for the data set, but has none for {dataset!r}"
        raise ParameterError(f"{rule}; choose one of: {listed}")
    for recipe in (given or {}).values():
        recipe.check()  # what a user mistypes is an error, not a row to skip
    planned = [_plan_row(row, dataset, pattern, given or {}) for row in table.rows]
    if not any(row.selected for row in planned):
        rows = "; ".join(row.label for row in table.rows)
        raise ParameterError(f"--rows must match a row of {table.name}, but is {pattern!r}; the rows are: {rows}")
    if not any(row.runs for row in planned):
        why = "; ".join(dict.fromkeys(row.skipped for row in planned if row.selected))
        raise ParameterError(f"{table.name} must have a row that can be run, but has none: {why}; choose other rows")
    return planned


def _plan_row(row: Row, dataset: str | None, pattern: str | None, given: Mapping[str, Recipe]) -> PlannedRow:
    selected = pattern is None or _matches(row.label, pattern)
    if row.method is None:
        return PlannedRow(row, None, NOT_HERE, selected)
    if row.method not in METHODS:
        return PlannedRow(row, None, f"there is no method {row.method!r} in this version", selected)
    base = given.get(row.method, Recipe(row.method))
    for key, own in row.params.items():  # with another value it would be another row
        if base.params.get(key, own) != own:
            return PlannedRow(row, None, f"{key} is {own} in this row, but {base.params[key]} is given", selected)
    params = {**row.by_dataset.get(dataset or "", {}), **base.params, **row.params}
    recipe = replace(base, params=params, preset=row.preset)
    try:
        if row.preset is not None and row.preset not in method(row.method).presets:
            raise ParameterError(f"{row.method} has no preset {row.preset!r} in this version")
        recipe.check()
    except LabelspaceError as error:  # also of a package that is not installed
        return PlannedRow(row, None, str(error), selected)
    return PlannedRow(row, recipe, "", selected)


def _matches(label: str, pattern: str) -> bool:
    label, pattern = label.casefold(), pattern.casefold()
    return pattern in label or fnmatchcase(label, pattern)


@dataclass(frozen=True)
class Run:
    """One training of a table: a recipe with a seed, and what identifies it."""

    recipe: Recipe
    key: str


@dataclass(frozen=True)
class Reproduction:
    """A planned table on given data, compared with the values of ``dataset``."""

    table: PublishedTable
    rows: Sequence[PlannedRow]
    source: Source
    out: Path
    dataset: str | None = None
    seeds: int = 3

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything that is read: the files of all splits with their label files, and how they are read."""
        options = replace(self.source.options, fields=None)  # those follow from the rest
        digest = blake2b(repr(options).encode(), digest_size=16)
        for path in (self.source.train_path, self.source.dev_path, self.source.test_path):
            for file in [] if path is None else files_of(path):
                digest.update(file.name.encode())
                with reading(file) as opened:
                    while block := opened.read(2**20):
                        digest.update(block)
        return digest.hexdigest()

    def runs(self, row: PlannedRow) -> list[Run]:
        """The runs of a row: one per seed, or one where the seed changes nothing."""
        if row.recipe is None:
            return []
        drawn = "random_state" in method(row.recipe.method).params and "random_state" not in row.recipe.params
        recipes = [replace(row.recipe, seed=seed) for seed in range(self.seeds if drawn else 1)]
        return [Run(recipe, self._key(recipe)) for recipe in recipes]

    def _key(self, recipe: Recipe) -> str:
        settled = {
            "data": self.fingerprint,
            "method": recipe.method,
            "params": recipe.tagger().model.get_params(),
            "features": [recipe.features, dict(recipe.feature_params)],
            "measured": [[asdict(column) for column in self.table.columns], self._propensities],
            "labelspace": __version__,
        }
        text = json.dumps(settled, sort_keys=True, default=repr)
        return blake2b(text.encode(), digest_size=16).hexdigest()

    @property
    def _propensities(self) -> tuple[str, str]:
        return self.table.propensity_from, propensity_preset(self.dataset)

    def run(self, progress: Progress | None = None) -> dict[str, Any]:
        """Run what is not in ``results.json`` yet; a row that fails on the data is reported, and the others go on."""
        done, errors = self.read_runs(), dict[str, str]()
        wanted = {run.key: run.recipe for row in self.rows if row.runs for run in self.runs(row)}
        missing = {key: recipe for key, recipe in wanted.items() if key not in done}
        progress = progress or no_progress
        with self._alone():
            documents, cache = Documents(self.source), FeatureCache()
            for number, (key, recipe) in enumerate(missing.items()):
                progress("runs", number, len(missing))
                train_set = documents.train  # a file that cannot be read is the failure of all rows
                try:
                    with timed() as taken:
                        tagger = recipe.tagger().fit_dataset(train_set, documents.dev, progress, cache=cache)
                except (LabelspaceError, MemoryError, ArithmeticError) as error:
                    errors[key] = str(error) or type(error).__name__
                else:
                    done[key] = self._measured(tagger, documents, {"seed": recipe.seed, **seconds(taken)})
                self._write(self.results(done, errors))
                progress("runs", number + 1, len(missing))
            results = self.results(done, errors)
            self._write(results)
        return results

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.out.mkdir(parents=True, exist_ok=True)
        with store.locked(self.out / ".reproduce.lock") as free:
            if not free:
                raise ParameterError(f"one run may write to {self.out}, but another one does; wait, or change --out")
            yield

    def _write(self, results: Mapping[str, Any]) -> None:
        with store.replacing_file(self.out / RESULTS) as path:
            path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def read_runs(self) -> dict[str, Any]:
        """The runs of ``results.json``, by key; an error where the file has something else."""
        path = self.out / RESULTS
        if not path.exists():
            return {}
        try:
            results = json.loads(path.read_text(encoding="utf-8"))
            runs, name = results["runs"], results["table"]
            is_ours = isinstance(runs, dict) and all(map(is_run, runs.values()))
        except (ValueError, LookupError, TypeError, RecursionError):
            is_ours, runs, name = False, {}, None
        if not is_ours or name != self.table.name:
            remedy = "choose another --out"
            raise ParameterError(f"{path} must have results of {self.table.name}, but has others; {remedy}")
        return dict(runs)

    def _measured(self, tagger: Tagger, documents: "Documents", about: Mapping[str, Any]) -> dict[str, Any]:
        columns = self.table.columns
        splits = {split for c in columns for split in (("train", "test") if c.split == GAP else (c.split,))}
        ks = sorted({1, *(int(rank) for c in columns if (rank := c.metric.partition("@")[2]).isdigit())})
        propensity_from, preset = cast(metrics.PropensityFrom, self._propensities[0]), self._propensities[1]
        figures = {
            split: evaluate(
                tagger,
                documents.split(split),
                ks,
                propensity_from=propensity_from,
                propensity_preset=preset,
                unlabelled="count",
                thresholds=False,
            )
            for split in sorted(splits)
        }
        if any(column.metric == SIZE for column in columns):
            figures["test"][SIZE] = saved_megabytes(tagger)
        return {
            "method": tagger.model.name,
            **about,
            "figures": {column.key: measured(figures, column) for column in columns},
            "n_train": len(documents.train),
            "n_test": len(documents.test),
            "n_labels": len(documents.train.labels),
        }

    def results(self, done: Mapping[str, Any], errors: Mapping[str, str]) -> dict[str, Any]:
        """The table: ours, published and the difference for each row and column."""
        rows = [self._result(row, done, errors) for row in self.rows]
        used = [done[run.key] for row in self.rows for run in self.runs(row) if run.key in done]
        sizes = {key: used[0][key] for key in ("n_train", "n_test", "n_labels")} if used else {}
        return {
            "table": self.table.name,
            "source": self.table.source,
            "title": self.table.paper["title"],
            "shows": self.table.shows,
            "note": self.table.note,
            "unit": self.table.unit,
            "columns": [{**asdict(column), "key": column.key} for column in self.table.columns],
            "data": self.source.path.resolve().name,
            "fingerprint": self.fingerprint,
            **sizes,
            "test": tested_on(self.source),
            "dataset": self.dataset,
            "published_sizes": self.table.sizes.get(self.dataset or ""),
            "seeds": self.seeds,
            "labelspace": __version__,
            "rows": rows,
            "runs": dict(done),
        }

    def _result(self, row: PlannedRow, done: Mapping[str, Any], errors: Mapping[str, str]) -> dict[str, Any]:
        runs = self.runs(row)
        ours = [done[run.key] for run in runs if run.key in done]
        failed = [errors[run.key] for run in runs if run.key in errors]
        state = {"skipped": row.skipped} if row.recipe is None else {"error": failed[0]} if failed else {}
        if row.recipe is not None:
            state["method"] = row.recipe.method
        return {
            "row": row.row.label,
            "source": f"{self.table.source}, row {row.row.label}",
            "preset": row.row.preset,
            "params": {} if row.recipe is None else dict(row.recipe.params),
            "note": row.row.note,
            **state,
            "n_runs": len(ours),
            "train_cpu_seconds": round(mean(run["train_cpu_seconds"] for run in ours), 3) if ours else None,
            "figures": {column.key: self._figure(row.row, column, ours) for column in self.table.columns},
        }

    def _figure(self, row: Row, column: Column, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        values = [value for run in runs if (value := run["figures"].get(column.key)) is not None]
        printed = {} if self.dataset is None else self.table.value(row, column, self.dataset)
        ours = round(mean(values), DIGITS) if values else None
        published = printed.get("value")
        return {
            "ours": ours,
            "std": round(stdev(values), DIGITS) if len(values) > 1 else None,
            **printed,
            "difference": None if ours is None or published is None else round(ours - published, DIGITS),
        }


class Documents:
    """The documents of a source, each split read once and when it is needed: test documents after the first fit."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def _held_out(self) -> tuple[Dataset, Dataset | None]:
        documents = labeled(self.source)
        return (documents, None) if self.source.has_test else hold_out_test(documents, seed=0)

    @property
    def train(self) -> Dataset:
        """The training documents."""
        return self._held_out[0]

    @cached_property
    def test(self) -> Dataset:
        """The test documents."""
        held = self._held_out[1]
        test = self.source.test(self.train.labels) if held is None else held
        assert test is not None
        return test

    def dev(self) -> Dataset | None:
        """The validation documents."""
        return self.source.dev(self.train.labels)

    def split(self, name: str) -> Dataset:
        """The training or the test documents."""
        return self.train if name == "train" else self.test


def measured(figures: Mapping[str, Mapping[str, Any]], column: Column) -> float | None:
    """The value of a column in the figures of each split; None where it was not measured.

    >>> measured({"train": {"P@1": 90.0}, "test": {"P@1": 70.0}}, Column("P@1", GAP))
    20.0
    """
    if column.split == GAP:
        train, test = (measured(figures, replace(column, split=split)) for split in ("train", "test"))
        return None if train is None or test is None else round(train - test, DIGITS)
    value: Any = figures[column.split]
    for part in column.metric.split("/"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) else None


def is_run(run: object) -> bool:
    """Whether a value of ``results.json`` is a run."""
    if not isinstance(run, dict) or not isinstance(run.get("figures"), dict):
        return False
    counted = [run.get(key) for key in ("train_cpu_seconds", "n_train", "n_test", "n_labels")]
    measured = [value for value in run["figures"].values() if value is not None]
    return all(isinstance(value, int | float) for value in counted + measured)


def seconds(taken: Seconds) -> dict[str, float]:
    """Wall and CPU seconds of a training, as in the results of ``compare``."""
    return {"train_seconds": round(taken.wall, 3), "train_cpu_seconds": round(taken.cpu, 3)}


def saved_megabytes(tagger: Tagger) -> float:
    """What the model weighs when it is saved."""
    with TemporaryDirectory() as folder:
        tagger.save(Path(folder) / "model")
        return megabytes(Path(folder) / "model")
