"""Checkpoints of trainings that were interrupted, of every method that can resume one."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from labelspace.models.capabilities import Checkpoints
from labelspace.models.registry import METHODS, create
from labelspace.tagger import Tagger
from tests.fuzz.bases.models import NEED, QUICK, documents

EPOCHS = 3


def makers() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """The name of each checkpoint folder, which starts with that of its method, and who makes it."""
    for name in METHODS:
        if find_spec(NEED.get(name, "numpy")) and isinstance(create(name), Checkpoints):
            for patience in (None, 2):
                yield f"{name}-{patience}", lambda folder, base=f"{name}-{patience}": _interrupted(base, folder)


def resume(base: str, folder: Path, progress: Callable[[str, int, int], None] | None = None) -> Tagger:
    """Fit the model of a base, from the checkpoint in a folder where there is one."""
    name, _, patience = base.partition("-")
    tagger = Tagger(name, epochs=EPOCHS, patience=None if patience == "None" else int(patience))
    small = {key: value for key, value in QUICK.items() if key in tagger.model.params and key != "epochs"}
    tagger.model.set_params(**small)
    return tagger.fit_dataset(documents().rows(range(40)), progress=progress, checkpoint=folder)


class InterruptedTrainingError(Exception):
    """Raised by the progress report, as Ctrl-C would be."""


def _interrupted(base: str, folder: Path) -> None:
    def interrupt(step: str, done: int, total: int) -> None:
        if step in ("batches", "tokens") and done > 0.6 * total:
            raise InterruptedTrainingError

    try:
        resume(base, folder, interrupt)
    except InterruptedTrainingError:
        return
    raise AssertionError(f"the training of {base} was not interrupted")
