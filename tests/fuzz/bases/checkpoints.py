"""Checkpoints of trainings that were interrupted, of every method that can resume one."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from labelspace.models.capabilities import Checkpoints
from labelspace.models.registry import METHODS, create, method
from labelspace.tagger import Tagger
from tests.fuzz.bases.models import NEED, QUICK, documents

EPOCHS = 3
MEMBERS, LAST_STEP = "neighbors,label_tree,lexical", "all documents: lexical"  # of blend


def makers() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """The name of each checkpoint folder, which starts with that of its method, and who makes it."""
    for name in METHODS:
        if find_spec(NEED.get(name, "numpy")) and isinstance(create(name), Checkpoints):
            for patience in (None, 2) if "patience" in method(name).params else (None,):
                yield f"{name}-{patience}", lambda folder, base=f"{name}-{patience}": _interrupted(base, folder)


def resume(base: str, folder: Path, progress: Callable[[str, int, int], None] | None = None) -> Tagger:
    """Fit the model of a base, from the checkpoint in a folder where there is one."""
    name, _, patience = base.partition("-")
    tagger = Tagger(name)
    given = {**QUICK, "epochs": EPOCHS, "patience": None if patience == "None" else int(patience), "members": MEMBERS}
    tagger.model.set_params(**{key: value for key, value in given.items() if key in tagger.model.params})
    train = documents()  # for blend all, and their texts: it has no folds of fewer, and a member that reads texts
    train = replace(train, X=None) if name == "blend" else train.rows(range(40))
    return tagger.fit_dataset(train, progress=progress, checkpoint=folder)


class InterruptedTrainingError(Exception):
    """Raised by the progress report, as Ctrl-C would be."""


def _interrupted(base: str, folder: Path) -> None:
    def interrupt(step: str, done: int, total: int) -> None:
        if step == LAST_STEP or (step in ("batches", "tokens") and done > 0.6 * total):
            raise InterruptedTrainingError

    try:
        resume(base, folder, interrupt)
    except InterruptedTrainingError:
        return
    raise AssertionError(f"the training of {base} was not interrupted")
