"""What is done with a mutated folder, of each kind: it must answer, or refuse in one line."""

from tests.fuzz.targets import checkpoints, data, models
from tests.fuzz.targets.outcome import Attempts, BadAnswerError, outcome_of

BY_KIND = {"models": models.run, "data": data.run, "checkpoints": checkpoints.run}

__all__ = ["BY_KIND", "Attempts", "BadAnswerError", "outcome_of"]
