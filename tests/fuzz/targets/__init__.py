"""What is done with a mutated folder, of each kind: it must answer, or refuse in one line."""

from tests.fuzz.targets import checkpoints, data, encoders, models
from tests.fuzz.targets.outcome import Attempts, BadAnswerError, outcome_of

BY_KIND = {"models": models.run, "data": data.run, "checkpoints": checkpoints.run, "encoders": encoders.run}

__all__ = ["BY_KIND", "Attempts", "BadAnswerError", "outcome_of"]
