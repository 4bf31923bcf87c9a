"""Resume a training from its checkpoint."""

from pathlib import Path

from tests.fuzz.bases.checkpoints import resume
from tests.fuzz.targets.models import ask
from tests.fuzz.targets.outcome import Attempts


def run(base: str, folder: Path, out: Path) -> tuple[str, str]:
    """The outcome of one case."""
    attempts = Attempts()
    tagger = attempts(resume, base, folder)
    if tagger is not None:
        ask(tagger, attempts)
    return attempts.outcome
