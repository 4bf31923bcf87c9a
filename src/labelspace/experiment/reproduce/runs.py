"""Train recipes and measure the columns of a table, here or on a cluster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

from labelspace import metrics
from labelspace.data.source import Source
from labelspace.errors import LabelspaceError
from labelspace.experiment.evaluate import EvaluationOptions, evaluate, saved_megabytes
from labelspace.experiment.reproduce.published import GAP, Column
from labelspace.experiment.timing import timed
from labelspace.experiment.train import Recipe, training_documents
from labelspace.features.views import FeatureCache
from labelspace.models.fit_context import Executor
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Progress, no_progress

DIGITS = 4  # after the decimal point, as in ``evaluate``
SIZE = "model_mb"  # the metric that needs a saved model


class Documents:
    """The documents of a source; each split is read once, when it is needed: test documents after the first fit."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __getstate__(self) -> dict[str, Any]:
        """Return all splits without the source: the machine that receives them need not have the files."""
        return {name: getattr(self, name) for name in ("_held_out", "test", "dev")}

    @cached_property
    def _held_out(self) -> tuple[Dataset, Dataset | None]:
        return training_documents(self.source, seed=0)

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

    @cached_property
    def dev(self) -> Dataset | None:
        """The validation documents, if any."""
        return self.source.dev(self.train.labels)


class Finished(NamedTuple):
    """The figures of a run, or its error."""

    run: dict[str, Any] | None
    error: str = ""


@dataclass(frozen=True)
class Runner:
    """Runs recipes on the same documents; features with the same settings are made once for all runs."""

    documents: Documents
    columns: Sequence[Column]
    propensities: tuple[str, str]  # the split that the propensities come from, and their preset
    cache: FeatureCache = field(default_factory=FeatureCache)

    def run(self, recipe: Recipe, progress: Progress = no_progress) -> Finished:
        """Train a recipe and measure the columns; a failure of the training becomes the error of the result."""
        train_set = self.documents.train  # outside the try: a file that cannot be read fails all rows
        try:
            with timed() as taken:
                tagger = recipe.tagger().fit_dataset(train_set, lambda: self.documents.dev, progress, cache=self.cache)
        except (LabelspaceError, MemoryError, ArithmeticError) as error:
            return Finished(None, str(error) or type(error).__name__)
        seconds = {"train_seconds": round(taken.wall, 3), "train_cpu_seconds": round(taken.cpu, 3)}
        return Finished(self._measured(tagger, {"seed": recipe.seed, **seconds}))

    def _measured(self, tagger: Tagger, about: Mapping[str, Any]) -> dict[str, Any]:
        columns, documents = self.columns, self.documents
        splits = {split for c in columns for split in (("train", "test") if c.split == GAP else (c.split,))}
        ks = sorted({1, *(int(rank) for c in columns if (rank := c.metric.partition("@")[2]).isdigit())})
        options: EvaluationOptions = {"unlabelled": "count", "thresholds": False}
        options["propensity_from"] = cast(metrics.PropensityFrom, self.propensities[0])
        options["propensity_preset"] = self.propensities[1]
        figures = {split: evaluate(tagger, getattr(documents, split), ks, **options) for split in sorted(splits)}
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


def run_all(
    runner: Runner, recipes: Mapping[str, Recipe], executor: Executor | None, progress: Progress
) -> Iterator[tuple[str, Finished]]:
    """Yield the key and the result of each run as it finishes; on a cluster each run has a CPU."""
    keys = list(recipes)
    if not keys:
        return
    progress("runs", 0, len(keys))
    found: Iterator[tuple[int, Finished]] = enumerate(runner.run(recipe, progress) for recipe in recipes.values())
    if executor is not None:
        found = executor.map_unordered(Runner.run, runner, list(recipes.values()))
    for done, (at, finished) in enumerate(found, start=1):
        yield keys[at], finished
        progress("runs", done, len(keys))


def measured(figures: Mapping[str, Mapping[str, Any]], column: Column) -> float | None:
    """Return the value of a column from the figures of each split; None if it was not measured.

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
