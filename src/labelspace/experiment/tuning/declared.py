"""The default search range of a parameter, from its declared type, default and constraint.

========================================== ==================================================================
true or false, one of several values        each value
a share, which cannot be 2                  0 to 0.9, or to 1 where that is allowed
a number above 0                            a tenth of the default to ten times the default, log
an integer of at least 1                    a quarter of the default to four times the default, log
a power of two, from 8                      the powers of two in that range
none, where the method chooses a number     a range that suits the name (``TYPICAL``), or nothing
0, a text, or a name in ``LEFT_OUT``        nothing: no scale is known, or it does not change the accuracy
========================================== ==================================================================
"""

from typing import Any

from labelspace.estimator import Param
from labelspace.experiment.tuning.ranges import Choices, Range, Searched, rounded

WITHOUT_EFFECT = ("random_state", "curve", "index", "recall_target", "engine")  # on accuracy, except by chance
COSTS = ("tol", "max_iter", "patience", "stop_by", "validation_share", "max_validation", "effort", "n_folds")
"""What to spend on a training: more is better, or as good, so that a search would always spend more."""
PURPOSES = ("optimize", "tune")  # what the model is for, or a choice that the method makes itself
LEFT_OUT = (*WITHOUT_EFFECT, *COSTS, *PURPOSES)
TYPICAL = {  # ranges on a log scale for parameters whose default is none
    "C": (0.03, 3.0),
    "embedding_dim": (50, 500),
    "n_neighbors": (5, 200),
    "power": (0.5, 8.0),
    "scale": (5.0, 80.0),
    "sharpness": (1.0, 40.0),
}
REAL_FACTOR, INTEGER_FACTOR = 10.0, 4  # from the default, up and down; wider ranges need more trials
MOST_OF_A_SHARE = 0.9  # in place of 1, where 1 is not allowed: a dropout near 1 learns nothing
FIRST_POWER = 8  # smaller powers of two, such as 2 layers, are counts and not widths
HIERARCHY_ONLY = ("hierarchy", "given")  # values that need a hierarchy of the labels
ONE_OF, LITERALS = "one of ", {"True": True, "False": False}


def declared_range(key: str, declared: Param, has_hierarchy: bool = True) -> Searched | None:
    """Return the values of a parameter to search by default; None if it is not searched.

    >>> from labelspace.models.registry import method
    >>> params = method("label_tree").params
    >>> [declared_range(key, params[key]).text for key in ("threshold", "beam_size", "normalize", "C")]
    ['0.01:1:log', '2:40:log', 'true,false', '0.03:3:log']
    """
    if key in LEFT_OUT:
        return None
    values = [value for value in _choices(declared) if has_hierarchy or value not in HIERARCHY_ONLY]
    if values:
        return Choices(tuple(values)) if len(values) > 1 else None
    if not is_numeric(declared):
        return None
    integer = is_integer(declared)
    if not integer and declared.constraint.holds(0.5) and not declared.constraint.holds(2.0):
        return Range(0.0, 1.0 if declared.constraint.holds(1.0) else MOST_OF_A_SHARE)
    if declared.default is None:
        low, high = TYPICAL.get(key, (0, 0))
        return Range(low, high, log=True, integer=integer) if low else None
    return _around(declared) if declared.default > 0 else None


def is_integer(declared: Param) -> bool:
    """Return whether a parameter is an integer, or none."""
    return _kinds(declared) <= {"int", "None"} or type(declared.default) is int


def is_numeric(declared: Param) -> bool:
    """Return whether the default of a parameter is a number, or none in place of a number."""
    if declared.default is None:
        return _kinds(declared) <= {"int", "float", "None"}
    return isinstance(declared.default, (int, float)) and not isinstance(declared.default, bool)


def _kinds(declared: Param) -> set[str]:
    return set(declared.type.split(" | "))


def _choices(declared: Param) -> list[Any]:
    """Return the values of a parameter that is one of several; an empty list for other parameters.

    The words of the constraint list the values, and its check confirms each.
    """
    listed = declared.constraint.text.removeprefix("none, or ")
    if not listed.startswith(ONE_OF):
        return []
    words = listed.removeprefix(ONE_OF).split(", ")
    if any(word.startswith("or ") for word in words):  # or a file
        return []
    values = [value for word in words if declared.constraint.holds(value := LITERALS.get(word, word))]
    return [None, *values] if declared.default is None else values


def _around(declared: Param) -> Searched | None:
    """Return values around the default that the constraint allows."""
    default, allowed = declared.default, declared.constraint.holds
    if not is_integer(declared):
        return Range(rounded(default / REAL_FACTOR), rounded(default * REAL_FACTOR), log=True)
    if default >= FIRST_POWER and default & (default - 1) == 0:  # units and dimensions: some must divide others
        powers = (default // 4, default // 2, default, 2 * default, 4 * default)
        return Choices(tuple(value for value in powers if allowed(value)))
    low = next(value for value in range(max(default // INTEGER_FACTOR, 1), default + 1) if allowed(value))
    high = next(value for value in range(default * INTEGER_FACTOR, default - 1, -1) if allowed(value))
    return Range(low, high, log=True, integer=True) if low < high else None
