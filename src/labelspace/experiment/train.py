"""Train: from a data source and a recipe to a fitted tagger. Fitting never sees the test documents."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labelspace.data.source import Source
from labelspace.errors import ParameterError
from labelspace.experiment.plan import Limits, Plan, Planner
from labelspace.experiment.splits import labeled
from labelspace.experiment.timing import cpu_clock
from labelspace.models.capabilities import Checkpoints, TrainsFromCache, TrainsInTasks, require
from labelspace.models.fit_context import Budget, Executor
from labelspace.models.registry import DEFAULT, create, method
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Progress

Settings = Mapping[str, Any]
PLANNED = ("members", "n_folds", "effort")  # parameters of blend that limits choose


@dataclass(frozen=True)
class Recipe:
    """What to train: a method, with the settings that differ from its defaults, and perhaps other features."""

    method: str = DEFAULT
    params: Settings = field(default_factory=dict)
    features: str | None = None
    feature_params: Settings = field(default_factory=dict)
    seed: int | None = None
    preset: str | None = None  # of the method; ``params`` take precedence

    def tagger(self) -> Tagger:
        """A tagger ready to fit; the seed goes to a method that has a ``random_state``."""
        seeded = self.seed is not None and "random_state" in method(self.method).params
        params = {**({"random_state": self.seed} if seeded else {}), **self.params}
        made = (
            create(self.method, **params)
            if self.preset is None
            else method(self.method).from_preset(self.preset, **params)
        )
        return Tagger(made, self.features, self.feature_params)

    def check(self) -> None:
        """Refuse an unknown method and unknown or invalid settings."""
        self.tagger().check_params()


def train(
    source: Source,
    recipe: Recipe,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    inspect: Callable[[Dataset], None] | None = None,
    limits: Limits | None = None,
    tell: Callable[[Plan], None] = lambda plan: None,
    keep_texts: bool = False,
    executor: Executor | None = None,
) -> Tagger:
    """Fit a tagger on the training documents of a source, or on its labels where it has nothing else.

    The source's validation documents are read where the method uses some. ``checkpoint`` is a folder where a training
    that is interrupted leaves what it needs to resume. ``inspect`` is called with the training documents. With
    ``limits`` the blend is planned to keep to them; ``tell`` is called with the plan, before the training and after it
    where more was left out. ``keep_texts`` keeps the training texts with the model, for explanations. ``executor`` runs
    tasks of the training on a cluster.
    """
    recipe.check()  # before the data are read: a typo should not cost minutes
    tagger = recipe.tagger()
    if checkpoint is not None:
        require(tagger.model, Checkpoints)
    if executor is not None:
        require(tagger.model, TrainsInTasks)
    if source.cache is not None:
        require(tagger.model, TrainsFromCache)
        if executor is not None:
            raise ParameterError(
                "a cache is for the memory of one machine, but the training is on a cluster; leave out one"
            )
    if limits:
        check_plannable(recipe, limits, checkpoint, on_cluster=executor is not None)
        return train_within(limits, source, recipe, progress, inspect, tell, keep_texts)
    if source.labels_only:
        return tagger.fit_labels(source.labels())
    documents = labeled(source, inspect)
    return tagger.fit_dataset(
        documents, lambda: source.dev(documents.labels), progress, checkpoint, keep_texts=keep_texts, executor=executor
    )


def check_plannable(recipe: Recipe, limits: Limits, checkpoint: Path | None = None, on_cluster: bool = False) -> None:
    """Refuse limits beside settings that they would choose, and for other methods than the one they are for."""
    limits.check()
    if not limits:
        return
    remedy = "leave it out, or the limits"
    if on_cluster:
        raise ParameterError(f"limits are kept to by what this machine measures, but there is a cluster; {remedy}")
    if recipe.method != DEFAULT:
        raise ParameterError(f"limits choose the members of {DEFAULT}, but the method is {recipe.method}; {remedy}")
    given = [key for key in PLANNED if key in recipe.params]
    given += [name for name in ("preset", "features") if getattr(recipe, name) is not None]
    given += [f"features.{key}" for key in recipe.feature_params]
    if checkpoint is not None:
        raise ParameterError(
            f"a plan may be another one when it is made again, but checkpoints are kept in {checkpoint}; "
            "leave the limits out, and give members and n_folds of the plan by --set"
        )
    if given:
        raise ParameterError(f"limits choose members, views and folds, but {given[0]} is given; {remedy}")


def train_within(
    limits: Limits,
    source: Source,
    recipe: Recipe,
    progress: Progress | None = None,
    inspect: Callable[[Dataset], None] | None = None,
    tell: Callable[[Plan], None] = lambda plan: None,
    keep_texts: bool = False,
) -> Tagger:
    """Plan the best blend within limits, and fit it."""
    with cpu_clock() as clock:
        budget = Budget(limits.cpu_seconds or math.inf, clock)
        documents = labeled(source, inspect)
        validation = source.dev(documents.labels)
        n_validation = 0 if validation is None or validation.Y.nnz == 0 else len(validation)
        planner = Planner(documents, limits, recipe.tagger().model.get_params()["optimize"], n_validation, budget)
        plan = planner.choose()
        tell(plan)
        tagger = replace(recipe, params={**recipe.params, **plan.params()}).tagger()
        tagger.fit_dataset(documents, validation, progress, budget=budget, keep_texts=keep_texts)
        late = dict.fromkeys(budget.left_out, "the training takes longer than it was expected to")
        late |= planner.keep_to_limits(tagger)
        if late:
            tell(replace(plan, left_out=late))
    return tagger
