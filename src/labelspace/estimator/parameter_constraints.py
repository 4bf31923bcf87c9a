"""Constraints on the values of parameters, with the words for them."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from operator import ge, gt, le, lt
from typing import Any

from labelspace.errors import ParameterError

MAX_NUMBER = 1e30  # float32 ends at 3e38: the margin is for what is computed with a parameter
MAX_INTEGER = 2**31  # kernels and arrays hold integers of 32 bits


@dataclass(frozen=True)
class Constraint:
    """A condition on a value, and the words that follow "must be" in an error."""

    text: str
    holds: Callable[[Any], bool]

    def check(self, name: str, value: Any) -> None:  # noqa: ANN401 - whatever was given
        """Raise a ``ParameterError`` unless the value satisfies the condition."""
        if not self.holds(value):
            raise ParameterError(f"{name} must be {self.text}, but is {value!r}; set it so")


@dataclass(frozen=True)
class Condition:
    """The values of another parameter with which a parameter has an effect: ``values``, or all except them."""

    key: str
    values: tuple[Any, ...]
    excluded: bool = False

    def holds(self, value: Any) -> bool:  # noqa: ANN401 - whatever was given
        """Return whether the parameter has an effect with this value of the other parameter."""
        return (value in self.values) != self.excluded

    @property
    def text(self) -> str:
        """Return the words that follow "with" in an error.

        >>> Condition("loss", ("margin", "bce")).text, Condition("patience", (None,), excluded=True).text
        ('loss=margin or bce', 'patience')
        """
        values = " or ".join(map(shown, self.values))
        if not self.excluded:
            return f"{self.key}={values}"
        return self.key if self.values == (None,) else f"{self.key} other than {values}"


@dataclass(frozen=True)
class AllBut:
    """Every value except this one, in a condition."""

    value: Any


def condition(key: str, values: Any) -> Condition:  # noqa: ANN401 - of a parameter
    """Return the condition that a parameter has a value, one of several values, or with ``AllBut`` a different one."""
    if isinstance(values, AllBut):
        return Condition(key, (values.value,), excluded=True)
    return Condition(key, values if isinstance(values, tuple) else (values,))


def shown(value: object) -> str:
    """Return a value as the command line takes it.

    >>> shown(None), shown(True), shown(0.5)
    ('none', 'true', '0.5')
    """
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return str(value) or "(empty)"


def parse_value(text: str) -> Any:  # noqa: ANN401 - of any type
    """Return a setting of the command line: a JSON value (number, true, null), none/true/false in any case, or text.

    >>> [parse_value(text) for text in ("0.5", "None", "TRUE", '"none"', "kmeans")]
    [0.5, None, True, 'none', 'kmeans']
    """
    try:
        return json.loads(text)
    except ValueError:
        return {"none": None, "true": True, "false": False}.get(text.lower(), text)


def real(
    at_least: float | None = None, above: float | None = None, at_most: float | None = None, below: float | None = None
) -> Constraint:
    """Require a number within bounds.

    >>> real(at_least=0, below=1).text
    'at least 0 and below 1'
    """
    bounds = (("at least", ge, at_least), ("above", gt, above), ("at most", le, at_most), ("below", lt, below))
    given = [(word, fits, limit) for word, fits, limit in bounds if limit is not None]
    text = " and ".join(f"{word} {limit}" for word, _, limit in given) or "a number"
    return Constraint(text, lambda value: _is_number(value) and all(fits(value, limit) for _, fits, limit in given))


def integer(at_least: int, at_most: int | None = None) -> Constraint:
    """Require an integer within bounds.

    >>> integer(1, at_most=16).text
    'an integer from 1 to 16'
    """
    largest = MAX_INTEGER - 1 if at_most is None else at_most
    text = f"an integer of at least {at_least} and below 2^31"
    if at_most is not None:
        text = f"an integer from {at_least} to {at_most}"

    def holds(value: Any) -> bool:  # noqa: ANN401 - whatever was given
        return isinstance(value, Integral) and _is_number(value) and at_least <= int(value) <= largest

    return Constraint(text, holds)


def one_of(*choices: object) -> Constraint:
    """Require one of the listed values."""
    return Constraint("one of " + ", ".join(map(str, choices)), lambda value: value in choices)


def boolean() -> Constraint:
    """Require True or False."""
    return one_of(True, False)


def optional(constraint: Constraint) -> Constraint:
    """Require None, or what the constraint requires."""
    return Constraint(f"none, or {constraint.text}", lambda value: value is None or constraint.holds(value))


def either(*constraints: Constraint) -> Constraint:
    """Require what one of the constraints requires."""
    text = ", or ".join(constraint.text for constraint in constraints)
    return Constraint(text, lambda value: any(constraint.holds(value) for constraint in constraints))


def mapping(values: Constraint) -> Constraint:
    """Require a dict of values by name."""

    def holds(value: Any) -> bool:  # noqa: ANN401 - whatever was given
        return isinstance(value, dict) and all(isinstance(key, str) and values.holds(v) for key, v in value.items())

    return Constraint(f"a dict of values that are each {values.text}", holds)


def list_of(values: Constraint) -> Constraint:
    """Require a list of values."""
    text = f"a list of values that are each {values.text}"
    return Constraint(text, lambda value: isinstance(value, list) and all(map(values.holds, value)))


def text() -> Constraint:
    """Require a text."""
    return Constraint("a text", lambda value: isinstance(value, str))


def anything() -> Constraint:
    """Allow any plain value: it is shown and never computed with."""
    return Constraint("anything", lambda _: True)


def layer_sizes(min_layers: int = 1) -> Constraint:
    """Require units of hidden layers: an integer, or several as text with commas between."""
    text = "an integer of at least 1 and below 2^20, or several with commas between, as in 512,256"

    def holds(value: Any) -> bool:  # noqa: ANN401 - whatever was given
        if type(value) is bool or not isinstance(value, (Integral, str)):
            return False
        parts = [part.strip() for part in str(value).split(",")] if str(value).strip() else []
        return len(parts) >= min_layers and all(part.isdecimal() and 1 <= int(part) < 2**20 for part in parts)

    return Constraint(text if min_layers else f"{text}, or nothing at all", holds)


def parse_layer_sizes(value: int | str) -> list[int]:
    """Return the sizes that a parameter with the constraint ``layer_sizes`` stands for.

    >>> parse_layer_sizes("512,256"), parse_layer_sizes(64), parse_layer_sizes("")
    ([512, 256], [64], [])
    """
    return [int(size) for size in str(value).split(",") if size.strip()]


def _is_number(value: Any) -> bool:  # noqa: ANN401 - whatever was given
    """Return whether a value is a finite number of a size that float32 can hold."""
    return type(value) is not bool and isinstance(value, Real) and abs(float(value)) < MAX_NUMBER
