"""The job of one method in a comparison: fit once per seed, save, evaluate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from labelspace import metrics
from labelspace.data.source import Source
from labelspace.experiment.train import Recipe
from labelspace.models.registry import method
from labelspace.types import Progress

PerDocument = Mapping[str, metrics.DocumentValues]


@dataclass(frozen=True)
class Job:
    """The runs of one method, on the documents of a source."""

    recipe: Recipe
    seeds: tuple[int | None, ...]  # None leaves random draws to the parameters of the method
    source: Source
    out: Path
    ks: Sequence[int]
    split_seed: int  # of the test documents, if there is no test file

    @property
    def recipes(self) -> list[Recipe]:
        """The recipe with each seed."""
        return [replace(self.recipe, seed=seed) for seed in self.seeds]

    @property
    def folders(self) -> list[Path]:
        """The folder of the model of each seed."""
        return model_folders(self.recipe, self.seeds, self.out)


@dataclass(frozen=True)
class JobResult:
    """The row of a method, and the contribution of each test document to its metrics: means over the seeds."""

    row: dict[str, Any]
    per_document: PerDocument
    n_test: int | None = None  # None if the method failed

    @staticmethod
    def failed(job: Job, error: str) -> JobResult:
        """Return the result of a method that failed."""
        return JobResult({**described(job.recipe), "error": error}, {})


RunJob = Callable[[Job, Progress], JobResult]


def described(recipe: Recipe) -> dict[str, Any]:
    """Return the first columns of a row."""
    return {"method": recipe.method, "params": dict(recipe.params)}


def model_folders(recipe: Recipe, seeds: Sequence[int | None], out: Path) -> list[Path]:
    """Return the folder of the model of each seed.

    >>> [folder.name for folder in model_folders(Recipe("random"), (0, 1), Path("out"))]
    ['random-seed0', 'random-seed1']
    """
    names = [f"{recipe.method}-seed{seed}" for seed in seeds] if len(seeds) > 1 else [recipe.method]
    return [out / "models" / name for name in names]


def seeds_of(recipe: Recipe, seeds: Sequence[int] | None) -> tuple[int | None, ...]:
    """Return the seeds of a recipe's runs: its own if none are given, and only one if the seed changes nothing.

    >>> seeds_of(Recipe("random"), [0, 1]), seeds_of(Recipe("popular"), [0, 1])
    ((0, 1), (0,))
    """
    if seeds is None:
        return (recipe.seed,)
    drawn = "random_state" in method(recipe.method).params and "random_state" not in recipe.params
    return tuple(seeds) if drawn else tuple(seeds[:1])
