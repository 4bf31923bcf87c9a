"""The values to try for one parameter: a range of numbers, or a list of values; given, or from its declaration."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from labelspace.errors import ParameterError
from labelspace.estimator import Param
from labelspace.estimator.parameter_constraints import parse_value, shown

DIGITS = 4  # significant digits of a number that is tried, so that the printed number is the trained one
SIMPLE = re.compile(r"[A-Za-z_][\w.+-]*")  # texts that need no quotes in a list
SCALES = ("log", "linear")
EXAMPLE = "write for example C=0.1:10:log, embedding_dim=64,128,256, or C for its own range"


@dataclass(frozen=True)
class Range:
    """Numbers from low to high, both included.

    >>> Range(0.1, 10.0, log=True).text, Range(1, 80, integer=True).text
    ('0.1:10:log', '1:80')
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False

    @property
    def text(self) -> str:
        """The range as ``--search`` takes it."""
        return f"{self.low:.12g}:{self.high:.12g}{':log' * self.log}"

    @property
    def examples(self) -> tuple[float, ...]:
        """The values that must be valid for the whole range to be valid."""
        return (self.low, self.high)

    def __contains__(self, value: object) -> bool:
        """Return whether a value is in the range."""
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return False
        return self.low <= value <= self.high and (isinstance(value, int) or not self.integer)

    def distribution(self) -> Any:  # noqa: ANN401 - of Optuna, which is optional
        """Return the distribution that Optuna draws from."""
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.integer:
            return IntDistribution(int(self.low), int(self.high), log=self.log)
        return FloatDistribution(self.low, self.high, log=self.log)

    def draw(self, trial: Any, key: str) -> float | int:  # noqa: ANN401 - a trial of Optuna
        """Return a value that Optuna suggests."""
        if self.integer:
            return int(trial.suggest_int(key, int(self.low), int(self.high), log=self.log))
        value = float(trial.suggest_float(key, self.low, self.high, log=self.log))
        return min(max(rounded(value), self.low), self.high)


@dataclass(frozen=True)
class Choices:
    """One of several values.

    >>> Choices((True, None, "bce")).text, Choices(("512,256", "512")).text
    ('true,none,bce', '["512,256", "512"]')
    """

    values: tuple[Any, ...]

    @property
    def text(self) -> str:
        """The values as ``--search`` takes them."""
        if any(isinstance(value, str) and not SIMPLE.fullmatch(value) for value in self.values):
            return json.dumps(self.values, ensure_ascii=False)
        return ",".join(map(shown, self.values))

    @property
    def examples(self) -> tuple[Any, ...]:
        """The values that must be valid."""
        return self.values

    def __contains__(self, value: object) -> bool:
        """Return whether a value is one of these; 1 and true differ here."""
        return any(value == other and type(value) is type(other) for other in self.values)

    def distribution(self) -> Any:  # noqa: ANN401 - of Optuna, which is optional
        """Return the distribution that Optuna draws from."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.values)

    def draw(self, trial: Any, key: str) -> Any:  # noqa: ANN401 - a trial of Optuna, and a value of any type
        """Return a value that Optuna suggests."""
        return trial.suggest_categorical(key, self.values)


Searched = Range | Choices


def rounded(value: float) -> float:
    """Return a number with ``DIGITS`` significant digits."""
    return float(f"{value:.{DIGITS}g}")


def parse_range(key: str, text: str | Sequence[Any], integer: bool) -> Searched:
    """Parse the text of ``--search KEY=...``: LOW:HIGH, LOW:HIGH:log, a list A,B,C or a JSON list; or check a list.

    ``integer`` makes a range one of integers.

    >>> parse_range("C", "0.1:10:log", integer=False)
    Range(low=0.1, high=10.0, log=True, integer=False)
    >>> parse_range("loss", "bce,margin", integer=False), parse_range("k", '["1,2", null]', integer=False)
    (Choices(values=('bce', 'margin')), Choices(values=('1,2', None)))
    """
    if not isinstance(text, str):
        return _choices_of(key, text)
    if ":" in text and not text.startswith("["):
        return _bounds(key, text, integer)
    try:
        listed = json.loads(text) if text.startswith("[") else [parse_value(part.strip()) for part in text.split(",")]
    except ValueError as error:
        raise ParameterError(f"--search {key} must be a JSON list, but is {text!r}; {EXAMPLE}") from error
    return _choices_of(key, listed)


def _choices_of(key: str, values: Sequence[Any]) -> Choices:
    """Return the values of a list, each once; raise ParameterError unless all are plain, since Optuna stores them."""
    if not values or not all(value is None or isinstance(value, (bool, int, float, str)) for value in values):
        rule = f"--search {key} must list numbers, texts, true, false or none"
        raise ParameterError(f"{rule}, but is {values}; {EXAMPLE}")
    return Choices(tuple(value for i, value in enumerate(values) if value not in Choices(tuple(values[:i]))))


def _bounds(key: str, text: str, integer: bool) -> Range:
    low, high, *rest = text.split(":")
    try:
        bounds = float(low), float(high)
    except ValueError as error:
        raise ParameterError(f"--search {key} must be LOW:HIGH with numbers, but is {text!r}; {EXAMPLE}") from error
    if not -float("inf") < bounds[0] < bounds[1] < float("inf"):
        raise ParameterError(f"--search {key} must be LOW:HIGH with LOW below HIGH, but is {text!r}; {EXAMPLE}")
    if len(rest) > 1 or (rest and rest[0] not in SCALES):
        raise ParameterError(f"--search {key} must end with {' or '.join(SCALES)}, but is {text!r}; {EXAMPLE}")
    log = rest == ["log"]
    if log and bounds[0] <= 0:
        raise ParameterError(f"a log scale must begin above 0, but --search {key} is {text!r}; begin above 0")
    if integer and not (bounds[0].is_integer() and bounds[1].is_integer()):
        raise ParameterError(f"--search {key} must be LOW:HIGH with integers, but is {text!r}; {EXAMPLE}")
    if integer:
        return Range(int(bounds[0]), int(bounds[1]), log, integer)
    return Range(*bounds, log)


WITHOUT_EFFECT = ("random_state", "curve", "index", "recall_target", "engine")  # on accuracy, except by chance
# What to spend on a training: more is better, or as good, so that a search would always spend more.
COSTS = ("tol", "max_iter", "patience", "stop_by", "validation_share", "max_validation", "effort", "n_folds")
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

    They follow from the declared type, default and constraint:

    ========================================== ==================================================================
    true or false, one of several values        each value
    a share, which cannot be 2                  0 to 0.9, or to 1 where that is allowed
    a number above 0                            a tenth of the default to ten times the default, log
    an integer of at least 1                    a quarter of the default to four times the default, log
    a power of two, from 8                      the powers of two in that range
    none, where the method chooses a number     a range that suits the name (``TYPICAL``), or nothing
    0, a text, or a name in ``LEFT_OUT``        nothing: no scale is known, or it does not change the accuracy
    ========================================== ==================================================================

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
