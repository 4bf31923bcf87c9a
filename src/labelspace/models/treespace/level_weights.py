"""The importance of each level in the prediction loss: one number, or one for each level."""

from collections.abc import Sequence

import numpy as np

from labelspace.errors import ParameterError
from labelspace.estimator.parameter_constraints import Constraint, list_of, real
from labelspace.types import Floats

LevelWeight = float | str | Sequence[float]
WEIGHT = real(above=0)
WEIGHTS = list_of(WEIGHT)


def parse(text: str) -> list[float]:
    """The numbers of a text with commas between.

    >>> parse("1,0.5")
    [1.0, 0.5]
    """
    return [float(part) for part in text.split(",")]


def level_weights(value: LevelWeight, levels: int) -> Floats:
    """The weight of each level: as given, or for one number the powers of it. Shape (levels,).

    >>> level_weights(0.5, 3).tolist(), level_weights("2,3", 2).tolist()
    ([1.0, 0.5, 0.25], [2.0, 3.0])
    """
    weights = parse(value) if isinstance(value, str) else np.ravel(value).tolist()
    if len(weights) == 1:
        return np.float32(weights[0]) ** np.arange(levels, dtype=np.float32)
    if len(weights) != levels:
        raise ParameterError(
            f"level_weight of treespace must be one number or {levels}, one for each level of the hierarchy, but has "
            f"{len(weights)}; set it so"
        )
    return np.array(weights, np.float32)


def _holds(value: object) -> bool:
    try:
        value = parse(value) if isinstance(value, str) else value
    except ValueError:
        return False
    return WEIGHT.holds(value) or (value != [] and WEIGHTS.holds(value))


LEVEL_WEIGHT = Constraint("a number above 0, or one for each level, as in 1,0.5,0.25", _holds)
