"""The weights of the levels in the loss, as they are given."""

from collections.abc import Sequence

import numpy as np

from labelspace.errors import ParameterError
from labelspace.estimator.parameter_constraints import Constraint, list_of, real
from labelspace.types import Floats

LevelWeight = float | str | Sequence[float]
WEIGHT = real(above=0)
WEIGHTS = list_of(WEIGHT)


def parse_weights(text: str) -> list[float]:
    """Return the numbers of a text with commas between them, as on the command line."""
    return [float(part) for part in text.split(",")]


def _is_level_weight(value: object) -> bool:
    try:
        value = parse_weights(value) if isinstance(value, str) else value
    except ValueError:
        return False
    return WEIGHT.holds(value) or (value != [] and WEIGHTS.holds(value))


LEVEL_WEIGHT = Constraint("a number above 0, or one for each level, as in 1,0.5,0.25", _is_level_weight)


def level_weights(value: LevelWeight, levels: int) -> Floats:
    """Return the weight of each level in the loss: as given, or the powers of a single number. Shape (levels,).

    >>> level_weights(0.5, 3).tolist(), level_weights("2,3", 2).tolist()
    ([1.0, 0.5, 0.25], [2.0, 3.0])
    """
    weights = parse_weights(value) if isinstance(value, str) else np.ravel(value).tolist()
    if len(weights) == 1:
        return np.float32(weights[0]) ** np.arange(levels, dtype=np.float32)
    if len(weights) != levels:
        rule = f"level_weight of treespace must be one number or {levels}, one for each level of the hierarchy"
        raise ParameterError(f"{rule}, but has {len(weights)}; set it so")
    return np.array(weights, np.float32)
