"""What models and features share: parameters by scikit-learn's protocol, and a declared learned state.

scikit-learn itself is not imported here (it takes over a second): its ``clone`` and ``Pipeline`` ask for the protocol.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, ClassVar, Self

from labelspace.errors import NotFittedError, ParameterError

LARGEST = 1e30  # of a parameter: float32 ends at 3e38


@dataclass(frozen=True)
class Rule:
    """What a parameter must satisfy, and the words for it."""

    words: str
    holds: Callable[[Any], bool]


def at_least(bound: float) -> Rule:
    """A number no smaller than the bound."""
    return Rule(f"at least {bound}", lambda value: _is_number(value) and value >= bound)


def above(bound: float) -> Rule:
    """A number larger than the bound."""
    return Rule(f"above {bound}", lambda value: _is_number(value) and value > bound)


def whole(bound: int) -> Rule:
    """A whole number no smaller than the bound."""
    return Rule(
        f"a whole number of at least {bound} and below 2^31",
        lambda value: isinstance(value, Integral) and _is_number(value) and bound <= int(value) < 2**31,
    )


def one_of(*choices: object) -> Rule:
    """One of the listed values."""
    return Rule("one of " + ", ".join(map(str, choices)), lambda value: value in choices)


def optional(rule: Rule) -> Rule:
    """None, or what the rule asks for."""
    return Rule(f"none, or {rule.words}", lambda value: value is None or rule.holds(value))


def widths(fewest: int = 1) -> Rule:
    """Widths of layers: a whole number, or several as text with commas between."""
    words = "a whole number of at least 1 and below 2^20, or several with commas between, as in 512,256"
    return Rule(words if fewest else f"{words}, or nothing at all", lambda value: _are_widths(value, fewest))


def listed_widths(value: int | str) -> list[int]:
    """What such a parameter says.

    >>> listed_widths("512,256"), listed_widths(64), listed_widths("")
    ([512, 256], [64], [])
    """
    return [int(width) for width in str(value).split(",") if width.strip()]


def _are_widths(value: Any, fewest: int) -> bool:  # noqa: ANN401 - whatever was given
    if type(value) is bool or not isinstance(value, (Integral, str)):
        return False
    parts = [part.strip() for part in str(value).split(",")] if str(value).strip() else []
    return len(parts) >= fewest and all(part.isdecimal() and 1 <= int(part) < 2**20 for part in parts)


def _is_number(value: Any) -> bool:  # noqa: ANN401 - whatever was given
    """A finite number of a size that float32 can hold."""
    return type(value) is not bool and isinstance(value, Real) and abs(float(value)) < LARGEST


share = Rule("at least 0 and below 1", lambda value: _is_number(value) and 0 <= value < 1)
"""A part of a whole that leaves something."""


class Estimator:
    """Parameters are what ``__init__`` takes and only stores; what is learned ends in ``_``, named in ``state``."""

    name: ClassVar[str] = ""
    rules: ClassVar[Mapping[str, Rule]] = {}
    state: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Parameter -> default, read from the signature: the one place where a default is written."""
        if cls.__init__ is object.__init__:
            return {}
        return {key: p.default for key, p in inspect.signature(cls.__init__).parameters.items() if key != "self"}

    @classmethod
    def reject_unknown(cls, keys: Mapping[str, Any]) -> None:
        """An unknown parameter is an error that lists the known ones."""
        known = cls.defaults()
        for key in keys:
            if key not in known:
                close = get_close_matches(key, known, n=1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                listed = ", ".join(known) or "none"
                raise ParameterError(f"{cls.name} has no parameter {key!r}; {hint}its parameters are: {listed}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters as given; ``deep`` is there for scikit-learn and changes nothing."""
        return {key: getattr(self, key) for key in self.defaults()}

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 - parameters are of any type
        """Change parameters; an unknown one is an error."""
        self.reject_unknown(params)
        for key, value in params.items():
            setattr(self, key, value)
        return self

    def check_params(self) -> None:
        """Hold every parameter against its rule."""
        for key, rule in self.rules.items():
            value = getattr(self, key)
            if not rule.holds(value):
                raise ParameterError(f"{key} of {self.name} must be {rule.words}, but is {value!r}; set it so")

    @property
    def is_fitted(self) -> bool:
        """Whether ``fit`` has been through."""
        return all(hasattr(self, key) for key in self.state)

    def check_fitted(self) -> None:
        """Raise unless ``fit`` has been through."""
        if not self.is_fitted:
            raise NotFittedError(f"{self.name} must be fitted first, but has not been; call fit(...)")

    def __sklearn_is_fitted__(self) -> bool:
        return self.is_fitted

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 - scikit-learn's own type, imported only when it asks
        from sklearn.utils import InputTags, Tags, TargetTags

        tags = Tags(estimator_type=None, target_tags=TargetTags(required=True, multi_output=True))
        tags.input_tags = InputTags(sparse=True)
        return tags

    def __repr__(self) -> str:
        defaults = self.defaults()
        changed = {key: value for key, value in self.get_params().items() if value != defaults[key]}
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in changed.items())})"
