"""The values to try for one parameter: a range of numbers, or a list of values."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from labelspace.errors import ParameterError
from labelspace.estimator.parameter_constraints import shown

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


def parse_range(key: str, text: str, integer: bool) -> Searched:
    """Parse the text of ``--search KEY=...``: LOW:HIGH, LOW:HIGH:log, a list A,B,C or a JSON list.

    ``integer`` makes a range one of integers.

    >>> parse_range("C", "0.1:10:log", integer=False)
    Range(low=0.1, high=10.0, log=True, integer=False)
    >>> parse_range("loss", "bce,margin", integer=False), parse_range("k", '["1,2", null]', integer=False)
    (Choices(values=('bce', 'margin')), Choices(values=('1,2', None)))
    """
    if ":" in text and not text.startswith("["):
        return _bounds(key, text, integer)
    try:
        listed = json.loads(text) if text.startswith("[") else [_value(part.strip()) for part in text.split(",")]
    except ValueError as error:
        raise ParameterError(f"--search {key} must be a JSON list, but is {text!r}; {EXAMPLE}") from error
    return choices(key, listed)


def choices(key: str, values: Sequence[Any]) -> Choices:
    """Return the values of a list, each once; raise ParameterError unless all are plain, since Optuna stores them."""
    if not values or not all(value is None or isinstance(value, (bool, int, float, str)) for value in values):
        raise ParameterError(
            f"--search {key} must list numbers, texts, true, false or none, but is {values}; {EXAMPLE}"
        )
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


def _value(text: str) -> Any:  # noqa: ANN401 - of any type
    try:
        return json.loads(text)
    except ValueError:
        return {"none": None, "true": True, "false": False}.get(text.lower(), text)
