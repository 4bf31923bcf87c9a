"""Train a tagger on the training documents of a source, by a recipe; the test documents are never read.

Also the split of an experiment: its training documents, and its test documents if there is no test file.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labelspace.data.source import Source
from labelspace.data.splits import hold_out
from labelspace.data.table import describe_labels
from labelspace.errors import DataError, ParameterError
from labelspace.experiment.plan import Limits, Plan, Planner
from labelspace.experiment.timing import cpu_clock
from labelspace.models.capabilities import Checkpoints, TrainsFromCache, TrainsInTasks, WeighsDocuments, require
from labelspace.models.fit_context import Budget, Executor
from labelspace.models.registry import DEFAULT, create, method
from labelspace.tagger import Tagger
from labelspace.tagger.lineage import Origin
from labelspace.types import Dataset, Progress

Inspect = Callable[[Dataset], None] | None
Tell = Callable[[Plan], None]
TEST_SHARE = 0.2  # of a data set without a test file; a larger share tests better and trains worse


def labeled(source: Source, inspect: Inspect = None) -> Dataset:
    """Read the training documents, and raise DataError if none has a label; ``inspect`` is called with them."""
    documents = source.train()
    if documents.Y.nnz == 0:
        remedy = "name the column of the labels: --labels tags, or those of a table: --inputs title --outputs brand"
        raise DataError(f"training needs labels, but no document of {source.train_path} has any; {remedy}")
    if inspect is not None:
        inspect(documents)
    return documents


def training_documents(source: Source, seed: int) -> tuple[Dataset, Dataset | None]:
    """Read the training documents, and hold out test documents if there is no test file; a test file is not read."""
    documents = labeled(source)
    return (documents, None) if source.has_test else hold_out_test(documents, seed)


def hold_out_test(documents: Dataset, seed: int) -> tuple[Dataset, Dataset]:
    """Split the documents of a data set without a test file into training and test documents."""
    train_set, test_set = hold_out(documents, TEST_SHARE, seed)
    if train_set.columns is not None:  # the hierarchy of levels must not come from rows that are held out
        space = describe_labels(train_set.labels, train_set.Y, train_set.columns)
        train_set, test_set = replace(train_set, labels=space), replace(test_set, labels=space)
    return train_set, test_set


def tested_on(source: Source) -> str:
    """Return the origin of the test documents, in words."""
    return "the test file" if source.has_test else f"a seeded {TEST_SHARE:.0%} of the documents"


Settings = Mapping[str, Any]
PLANNED = ("members", "n_folds", "effort")  # parameters of blend that limits choose


@dataclass(frozen=True)
class Recipe:
    """A method with the settings that differ from its defaults, and optionally other features."""

    method: str = DEFAULT
    params: Settings = field(default_factory=dict)
    features: str | None = None
    feature_params: Settings = field(default_factory=dict)
    seed: int | None = None
    preset: str | None = None  # of the method; ``params`` override it

    def tagger(self) -> Tagger:
        """Return a tagger ready to fit; the seed goes to a method that has a ``random_state``."""
        cls = method(self.method)
        params = dict(self.params)
        if self.seed is not None and "random_state" in cls.params:
            params = {"random_state": self.seed, **params}
        made = create(self.method, **params) if self.preset is None else cls.from_preset(self.preset, **params)
        return Tagger(made, self.features, self.feature_params)

    def check(
        self, *, checkpoint: bool = False, on_cluster: bool = False, cached: bool = False, weighted: bool = False
    ) -> None:
        """Raise ParameterError for an unknown method or invalid settings, or a training that the method cannot do.

        ``checkpoint``, ``on_cluster``, ``cached`` and ``weighted`` tell whether the training saves checkpoints, runs
        tasks on a cluster, reads its documents from a cache, and weighs them.
        """
        tagger = self.tagger()
        tagger.check_params()
        wanted = {Checkpoints: checkpoint, TrainsInTasks: on_cluster, TrainsFromCache: cached}
        wanted[WeighsDocuments] = weighted
        for capability, is_wanted in wanted.items():
            if is_wanted:
                require(tagger.model, capability)
        if cached and on_cluster:
            rule = "a cache is for the memory of one machine, but the training is on a cluster"
            raise ParameterError(f"{rule}; leave out one")


def seeds_of(recipe: Recipe, seeds: Sequence[int] | None) -> tuple[int | None, ...]:
    """Return the seeds of a recipe's runs: its own if none are given, and only one if the seed changes nothing.

    >>> seeds_of(Recipe("random"), [0, 1]), seeds_of(Recipe("popular"), [0, 1])
    ((0, 1), (0,))
    """
    if seeds is None:
        return (recipe.seed,)
    drawn = "random_state" in method(recipe.method).params and "random_state" not in recipe.params
    return tuple(seeds) if drawn else tuple(seeds[:1])


def train(
    source: Source,
    recipe: Recipe,
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    inspect: Inspect = None,
    limits: Limits | None = None,
    tell: Tell = lambda plan: None,
    keep_texts: bool = False,
    executor: Executor | None = None,
    label_weight: Mapping[str, float] | None = None,
) -> Tagger:
    """Fit a tagger on the training documents of a source, or on its labels if it has nothing else.

    Args:
        source: The data; its validation documents are read if the method uses them.
        recipe: The method and its settings.
        progress: Called with the steps of the training.
        checkpoint: A folder where an interrupted training leaves what it needs to resume.
        inspect: Called with the training documents.
        limits: Limits of time, size and latency; the best blend within them is planned and trained.
        tell: Called with the plan before the training, and after it if more members were left out.
        keep_texts: Keep the training texts with the model, for explanations.
        executor: A cluster that runs tasks of the training.
        label_weight: How much a right label is worth, by name; others are worth 1.
    """
    # Before the data are read: a typo should not cost minutes.
    cached, weighted = source.cache is not None, source.weights is not None
    recipe.check(checkpoint=checkpoint is not None, on_cluster=executor is not None, cached=cached, weighted=weighted)
    if limits:
        check_plannable(recipe, limits, checkpoint, on_cluster=executor is not None)
        if label_weight is not None:
            raise ParameterError("limits choose a blend without weights of labels, but some are given; leave out one")
    # Not after the training, which may take a night: the file may be gone.
    origin = Origin.of(source.train_path, None if source.path == source.train_path else source.path)
    if limits:
        tagger = _train_within(limits, source, recipe, progress, inspect, tell, keep_texts)
        tagger.origin_ = origin
        return tagger
    tagger = recipe.tagger()
    if source.labels_only:
        if weighted or label_weight is not None:
            raise ParameterError(f"weights are for a training on documents, but {source.path} has labels only")
        tagger.fit_labels(source.labels())
    else:
        documents = labeled(source, inspect)
        tagger.fit_dataset(
            documents,
            lambda: source.dev(documents.labels),
            progress,
            checkpoint,
            keep_texts=keep_texts,
            executor=executor,
            label_weight=label_weight,
        )
    tagger.origin_ = origin
    return tagger


def check_plannable(recipe: Recipe, limits: Limits, checkpoint: Path | None = None, on_cluster: bool = False) -> None:
    """Raise ParameterError for limits with settings that they would choose, or with a method other than blend."""
    limits.check()
    if not limits:
        return
    remedy = "leave it out, or the limits"
    if on_cluster:
        raise ParameterError(f"limits are kept by measurements on one machine, but there is a cluster; {remedy}")
    if recipe.method != DEFAULT:
        raise ParameterError(f"limits choose the members of {DEFAULT}, but the method is {recipe.method}; {remedy}")
    given = [key for key in PLANNED if key in recipe.params]
    given += [name for name in ("preset", "features") if getattr(recipe, name) is not None]
    given += [f"features.{key}" for key in recipe.feature_params]
    if checkpoint is not None:
        rule = f"a plan may differ when it is made again, but checkpoints are kept in {checkpoint}"
        raise ParameterError(f"{rule}; leave the limits out, and give members and n_folds of the plan by --set")
    if given:
        raise ParameterError(f"limits choose members, views and folds, but {given[0]} is given; {remedy}")


def _train_within(
    limits: Limits, source: Source, recipe: Recipe, progress: Progress | None, inspect: Inspect, tell: Tell, texts: bool
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
        tagger.fit_dataset(documents, validation, progress, budget=budget, keep_texts=texts)
        late = dict.fromkeys(budget.left_out, "the training takes longer than it was expected to")
        late |= planner.keep_to_limits(tagger)
        if late:
            tell(replace(plan, left_out=late))
    return tagger
