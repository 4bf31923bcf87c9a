"""Declared parameters and declared learned state, which models, features and other learned parts share.

A parameter is one line in the class body: name, type, default, constraint and meaning. The signature, scikit-learn's
``get_params``, the saved settings, error messages, ``labelspace methods NAME`` and the tables in the docs are read from
it. A learned attribute is declared in the same way and ends in ``_``, with the constraint that it must satisfy when it
is loaded; saving and loading need nothing else.

scikit-learn itself is not imported here (it takes over a second): its ``clone`` and ``Pipeline`` ask for the protocol.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from labelspace.errors import NotFittedError, ParameterError
from labelspace.estimator.parameter_constraints import Condition, Constraint, condition, optional, shown
from labelspace.estimator.state_constraints import StateConstraint


@dataclass(frozen=True)
class Param:
    """A declared parameter."""

    default: Any
    constraint: Constraint
    meaning: str
    type: str = ""
    conditions: tuple[Condition, ...] = ()  # all must be satisfied for the parameter to have an effect
    earlier: Any = None  # the value of what was saved before there was the parameter; None for the default

    @property
    def needs(self) -> str:
        """Describe the settings without which the parameter has no effect; empty if it always has an effect."""
        return " and ".join(condition.text for condition in self.conditions)

    def only_with(self, **values: Any) -> Any:  # noqa: ANN401 - parameters are of any type
        """Return this parameter, with an effect only where other parameters have these values.

        As in ``param(...).only_with(loss="margin", pairs=("hardest", "all"), patience=AllBut(None))``.
        """
        return replace(self, conditions=(*self.conditions, *(condition(*given) for given in values.items())))

    def with_default(self, default: Any) -> Any:  # noqa: ANN401 - parameters are of any type
        """Return this parameter with another default, for a subclass."""
        return replace(self, default=default)

    def for_earlier(self, value: Any) -> Any:  # noqa: ANN401 - parameters are of any type
        """Return this parameter, with a value for what was saved before there was the parameter."""
        return replace(self, earlier=value)


NO_DEFAULT = object()


@dataclass(frozen=True)
class Learned:
    """A declared attribute that ``fit`` sets; reading it before is an ``AttributeError``."""

    constraint: StateConstraint | None = None  # None for what is not saved
    name: str = ""
    default: Any = NO_DEFAULT  # of a model that was saved before there was the attribute

    def __post_init__(self) -> None:
        if not isinstance(self.constraint, StateConstraint | None):
            raise TypeError(f"what is learned must have a constraint of state_constraints, but has {self.constraint!r}")

    def __set_name__(self, owner: type, name: str) -> None:
        object.__setattr__(self, "name", name)

    def __get__(self, instance: object | None, owner: type) -> Learned:
        if instance is None:
            return self
        raise AttributeError(f"{owner.__name__} has no {self.name} before it is fitted")


def param(default: Any, constraint: Constraint, meaning: str) -> Any:  # noqa: ANN401 - parameters are of any type
    """Declare a parameter of a class.

    An example is ``C: float = param(1.0, real(above=0), "Inverse regularization strength.")``. With None as the
    default, None is valid too. A parameter that has an effect only with some values of others says so by
    ``.only_with(loss="margin")``.
    """
    return Param(default, optional(constraint) if default is None else constraint, meaning)


def learned(constraint: StateConstraint | None, default: Any = NO_DEFAULT) -> Any:  # noqa: ANN401 - of any type
    """Declare a learned attribute, and what it must satisfy when it is loaded: see ``state_constraints``.

    An example is ``bias_: Floats = learned(array("float32", "n_labels"))``. The constraint is None for an attribute
    that is not saved; the code that loads the object sets it. A new attribute may have a ``default``, a plain value,
    for models that were saved without it.
    """
    return Learned(constraint, default=default)


class Stateful:
    """An object with a declared learned state, which ``labelspace.store`` saves and loads by the declaration."""

    name: ClassVar[str] = ""
    params: ClassVar[Mapping[str, Param]] = {}
    state: ClassVar[Mapping[str, Learned]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        declared = {key: value for base in reversed(cls.__mro__) for key, value in vars(base).items()}
        types = {key: kind for base in reversed(cls.__mro__) for key, kind in inspect.get_annotations(base).items()}
        cls.params = {
            key: replace(value, type=getattr(types.get(key), "__name__", str(types.get(key, ""))))
            for key, value in declared.items()
            if isinstance(value, Param)
        }
        cls.state = {key: value for key, value in declared.items() if isinstance(value, Learned) and value.constraint}

    @property
    def is_fitted(self) -> bool:
        """Return whether every learned attribute is set."""
        return self.state.keys() <= self.__dict__.keys()

    def check_fitted(self) -> None:
        """Raise NotFittedError unless every learned attribute is set."""
        if not self.is_fitted:
            raise NotFittedError(f"{self.name} must be fitted first, but has not been; call fit(...)")

    def files(self) -> dict[str, Callable[[Path], None]]:
        """Return functions that write files of a format of their own at a path, by the files' ending."""
        return {}

    def read_files(self, path_of: Callable[[str], Path]) -> None:
        """Read the files that ``files`` wrote, after the rest of the state is set."""

    def sizes(self) -> dict[str, int]:
        """Return sizes that the constraints of the state may name, after its plain values are set."""
        return {}

    def check_state(self) -> None:
        """Check by ``must`` what no constraint of a loaded state says: the structure of trees, for example."""

    def forget(self) -> None:
        """Delete the learned attributes and the cached properties derived from them; parameters stay."""
        self._delete(Learned, cached_property)

    def forget_derived(self) -> None:
        """Delete the cached properties: what they were derived from has changed."""
        self._delete(cached_property)

    def _delete(self, *kinds: type) -> None:
        for key in list(self.__dict__):
            if isinstance(getattr(type(self), key, None), kinds):
                del self.__dict__[key]


class Estimator(Stateful):
    """An object with parameters by scikit-learn's protocol: ``__init__`` only stores them.

    There, a parameter that is unknown or has no effect with the others is an error. ``set_params``, ``clone`` and
    loading accept parameters without effect: a grid search tries them, and a saved model stays as it was.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        keyword = inspect.Parameter.KEYWORD_ONLY
        cls.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # what inspect and editors show
            [inspect.Parameter(key, keyword, default=p.default, annotation=p.type) for key, p in cls.params.items()]
        )

    def __init__(self, **params: Any) -> None:  # noqa: ANN401 - parameters are of any type
        self.reject_unknown(params)
        for key, declared in self.params.items():
            setattr(self, key, params.get(key, declared.default))
        for key, unmet in self.without_effect(params).items():
            value = shown(getattr(self, unmet.key))
            rule = f"{key} of {self.name} has an effect only with {self.params[key].needs}, but {unmet.key} is {value}"
            raise ParameterError(f"{rule}; leave {key} out, or set {unmet.text}")

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the default of each parameter."""
        return {key: declared.default for key, declared in cls.params.items()}

    @classmethod
    def reject_unknown(cls, keys: Mapping[str, Any]) -> None:
        """Raise ParameterError, which lists the known parameters, if one of these is unknown."""
        for key in keys:
            if key not in cls.params:
                close = get_close_matches(key, cls.params, n=1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                known = ", ".join(cls.params) or "none"
                raise ParameterError(f"{cls.name} has no parameter {key!r}; {hint}its parameters are: {known}")

    @classmethod
    def without_effect(cls, params: Mapping[str, Any]) -> dict[str, Condition]:
        """Return the parameters without effect, and the condition that each misses; skip defaults and bad values."""
        values, found = {**cls.defaults(), **params}, {}

        def is_valid(key: str) -> bool:
            return cls.params[key].constraint.holds(values[key])

        for key in params:
            declared = cls.params[key]
            unmet = [c for c in declared.conditions if is_valid(c.key) and not c.holds(values[c.key])]
            if unmet and is_valid(key) and values[key] != declared.default:
                found[key] = unmet[0]
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; ``deep`` is there for scikit-learn and changes nothing."""
        return {key: getattr(self, key) for key in self.params}

    def saved_params(self) -> dict[str, Any]:
        """Return the parameters as they are saved: plain values."""
        return self.get_params()

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 - parameters are of any type
        """Change parameters; raise ParameterError if one is unknown."""
        self.reject_unknown(params)
        for key, value in params.items():
            setattr(self, key, value)
        return self

    def check_params(self) -> None:
        """Check every parameter against its constraint."""
        for key, declared in self.params.items():
            declared.constraint.check(f"{key} of {self.name}", getattr(self, key))

    def __sklearn_clone__(self) -> Self:
        return type(self)().set_params(**deepcopy(self.get_params()))

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
