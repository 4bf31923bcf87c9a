"""Train: from a data source and a recipe to a fitted tagger. Fitting never sees the test documents."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labelspace.data.source import Source
from labelspace.errors import DataError
from labelspace.models.capabilities import Checkpoints, require
from labelspace.models.registry import DEFAULT, create, method
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Progress

Settings = Mapping[str, Any]


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
) -> Tagger:
    """Fit a tagger on the training documents of a source, or on its labels where it has nothing else.

    The source's validation documents are read where the method uses some. ``checkpoint`` is a folder where a training
    that is interrupted leaves what it needs to resume. ``inspect`` is called with the training documents.
    """
    recipe.check()  # before the data are read: a typo should not cost minutes
    tagger = recipe.tagger()
    if checkpoint is not None:
        require(tagger.model, Checkpoints)
    if source.labels_only:
        return tagger.fit_labels(source.labels())
    documents = labeled(source)
    if inspect is not None:
        inspect(documents)
    return tagger.fit_dataset(documents, lambda: source.dev(documents.labels), progress, checkpoint)


def labeled(source: Source) -> Dataset:
    """The training documents, which must have labels."""
    documents = source.train()
    if documents.Y.nnz == 0:
        raise DataError(
            f"training needs labels, but no document of {source.train_path} has any; name the field or column 'labels'"
            ", or the columns of a table: --inputs title --outputs brand"
        )
    return documents
