"""Reproduce the rows of a published table on given data, and compare our figures with the printed ones.

1. Check the method, the preset and the parameters of every row before any data are read. A row that cannot be run is
   skipped, with the reason.
2. For each row and seed, fit on the training documents and measure the table's columns. Rows with equal parameters are
   one run, and so are the seeds of a method that draws nothing at random.
3. Write ``results.json`` after each run. A run is identified by its data, parameters, seed and the version of
   labelspace; a run in the file is not run again.
4. Compute means and standard deviations over the seeds, and the differences to the printed or corrected values.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from labelspace.data.dataset_file import files_of
from labelspace.data.files import reading
from labelspace.data.source import Source
from labelspace.errors import LabelspaceError, ParameterError
from labelspace.experiment.reproduce.published import Column, PublishedTable, Row, propensity_preset
from labelspace.experiment.reproduce.runs import DIGITS, Documents, Runner, run_all
from labelspace.experiment.results import RESULTS, only_writer, write_json
from labelspace.experiment.train import Recipe, seeds_of, tested_on
from labelspace.models.fit_context import Executor
from labelspace.models.registry import METHODS, method
from labelspace.types import Progress, no_progress
from labelspace.version import __version__

NOT_HERE = "not here yet"
Recipes = Mapping[str, Recipe]  # by method


@dataclass(frozen=True)
class PlannedRow:
    """A row with its recipe, or the reason why it cannot be run."""

    row: Row
    recipe: Recipe | None
    skipped: str = ""
    selected: bool = True

    @property
    def runs(self) -> bool:
        """True if the row is to be run."""
        return self.selected and self.recipe is not None


def plan(
    table: PublishedTable, dataset: str | None = None, pattern: str | None = None, given: Recipes | None = None
) -> list[PlannedRow]:
    """Plan the run of each row of a table; raise ParameterError if no row is left.

    ``pattern`` selects rows by a part of their labels, or with wildcards. ``given`` has recipes by method, whose
    settings override presets; a row with a different value of its own is skipped.
    """
    if dataset is not None and dataset not in table.datasets:
        listed = ", ".join(table.datasets)
        rule = f"{table.name} must have values for the data set, but has none for {dataset!r}"
        raise ParameterError(f"{rule}; choose one of: {listed}")
    for recipe in (given or {}).values():
        recipe.check()  # a mistake of the user is an error, not a row to skip
    planned = [_plan_row(row, dataset, pattern, given or {}) for row in table.rows]
    if not any(row.selected for row in planned):
        rows = "; ".join(row.label for row in table.rows)
        raise ParameterError(f"--rows must match a row of {table.name}, but is {pattern!r}; the rows are: {rows}")
    if not any(row.runs for row in planned):
        why = "; ".join(dict.fromkeys(row.skipped for row in planned if row.selected))
        raise ParameterError(f"{table.name} must have a row that can be run, but has none: {why}; choose other rows")
    return planned


def _plan_row(row: Row, dataset: str | None, pattern: str | None, given: Recipes) -> PlannedRow:
    label, part = row.label.casefold(), (pattern or "").casefold()
    selected = part in label or fnmatchcase(label, part)
    if row.method is None:
        return PlannedRow(row, None, NOT_HERE, selected)
    if row.method not in METHODS:
        return PlannedRow(row, None, f"there is no method {row.method!r} in this version", selected)
    base = given.get(row.method, Recipe(row.method))
    for key, own in row.params.items():  # a different value would make a different row
        if base.params.get(key, own) != own:
            return PlannedRow(row, None, f"{key} is {own} in this row, but {base.params[key]} is given", selected)
    params = {**row.by_dataset.get(dataset or "", {}), **base.params, **row.params}
    recipe = replace(base, params=params, preset=row.preset)
    try:
        if row.preset is not None and row.preset not in method(row.method).presets:
            raise ParameterError(f"{row.method} has no preset {row.preset!r} in this version")
        recipe.check()
    except LabelspaceError as error:  # such as a package that is not installed
        return PlannedRow(row, None, str(error), selected)
    return PlannedRow(row, recipe, "", selected)


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
        """A hash of all that is read: the files of all splits with their label files, and the options of reading."""
        options = replace(self.source.options, fields=None)  # fields follow from the rest
        digest = blake2b(repr(options).encode(), digest_size=16)
        for path in (self.source.train_path, self.source.dev_path, self.source.test_path):
            for file in [] if path is None else files_of(path):
                digest.update(file.name.encode())
                with reading(file) as opened:
                    while block := opened.read(2**20):
                        digest.update(block)
        return digest.hexdigest()

    def runs(self, row: PlannedRow) -> dict[str, Recipe]:
        """Return the runs of a row by the keys that identify them: one per seed, or one if the seed changes nothing."""
        if row.recipe is None:
            return {}
        recipes = [replace(row.recipe, seed=seed) for seed in seeds_of(row.recipe, range(self.seeds))]
        return {self._key(recipe): recipe for recipe in recipes}

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

    def run(self, progress: Progress | None = None, executor: Executor | None = None) -> dict[str, Any]:
        """Run all that is not in ``results.json`` yet, here or on a cluster.

        A row that fails on the data is reported, and the others continue.
        """
        done, errors = self.read_runs(), dict[str, str]()
        wanted = {key: recipe for row in self.rows if row.runs for key, recipe in self.runs(row).items()}
        missing = {key: recipe for key, recipe in wanted.items() if key not in done}
        order = [*done, *missing]
        with only_writer(self.out, ".reproduce.lock", "run"):
            runner = Runner(Documents(self.source), self.table.columns, self._propensities)
            for key, finished in run_all(runner, missing, executor, progress or no_progress):
                if finished.run is None:
                    errors[key] = finished.error
                else:
                    done[key] = finished.run
                write_json(self.results(done, errors), self.out)
            results = self.results({key: done[key] for key in order if key in done}, errors)
            write_json(results, self.out)
        return results

    def read_runs(self) -> dict[str, Any]:
        """Read the runs of ``results.json`` by key; raise ParameterError if the file holds something else."""
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
            raise ParameterError(f"{path} must have results of {self.table.name}, but has others; choose another --out")
        return dict(runs)

    def results(self, done: Mapping[str, Any], errors: Mapping[str, str]) -> dict[str, Any]:
        """Return the table: our value, the published one and the difference for each row and column."""
        rows = [self._result(row, done, errors) for row in self.rows]
        used = [done[key] for row in self.rows for key in self.runs(row) if key in done]
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
        ours = [done[key] for key in runs if key in done]
        failed = [errors[key] for key in runs if key in errors]
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
        std = round(stdev(values), DIGITS) if len(values) > 1 else None
        published = printed.get("value")
        difference = None if ours is None or published is None else round(ours - published, DIGITS)
        return {"ours": ours, "std": std, **printed, "difference": difference}


def is_run(run: object) -> bool:
    """Return whether a value of ``results.json`` is a run."""
    if not isinstance(run, dict) or not isinstance(run.get("figures"), dict):
        return False
    counted = [run.get(key) for key in ("train_cpu_seconds", "n_train", "n_test", "n_labels")]
    measured = [value for value in run["figures"].values() if value is not None]
    return all(isinstance(value, int | float) for value in counted + measured)
