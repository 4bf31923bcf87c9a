"""The search space of a method: the values to try for each parameter, and which parameters have an effect together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from labelspace.errors import ParameterError
from labelspace.estimator import Estimator, Param
from labelspace.estimator.parameter_constraints import Condition, parse_value, shown
from labelspace.experiment.train import Recipe
from labelspace.experiment.tuning.ranges import EXAMPLE, Choices, Searched, declared_range, is_integer, parse_range
from labelspace.features import features_class
from labelspace.models.base import Model
from labelspace.models.registry import method

ALL = "all"  # in place of a parameter: all parameters that are searched by default
PREFIX = "features."

# The values to search, by parameter: a text as ``--search`` takes it, a list, or None for the declared range.
Search = Mapping[str, str | Sequence[Any] | None]


@dataclass(frozen=True)
class SearchSpace:
    """The ranges to search, and a recipe whose settings are fixed.

    >>> space = search_space(Recipe("pdsparse"), {"per_label": "true,false", "threshold": None})
    >>> space.text
    'per_label=true,false; threshold=0.001:0.1:log (with per_label=true)'
    """

    recipe: Recipe
    ranges: Mapping[str, Searched] = field(default_factory=dict)

    @cached_property
    def cls(self) -> type[Model]:
        """The class of the method."""
        return method(self.recipe.method)

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings of the recipe, which no trial changes."""
        return {**self.recipe.params, **{PREFIX + key: value for key, value in self.recipe.feature_params.items()}}

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The value of each parameter of the method where no trial changes it; parameters of features are left out."""
        return {**self.cls.defaults(), **self.recipe.params}

    @property
    def text(self) -> str:
        """The ranges in one line."""
        return "; ".join(f"{key}={text}" for key, text in self.texts.items())

    @property
    def texts(self) -> dict[str, str]:
        """The range of each parameter, as ``--search`` takes it, and the values of others that it needs."""
        texts = {}
        for key, searched in self.ranges.items():
            needs = [c.text for c in self.conditions(key) if not all(map(c.holds, self._possible(c.key)))]
            texts[key] = searched.text + (f" (with {' and '.join(needs)})" if needs else "")
        return texts

    def conditions(self, key: str) -> tuple[Condition, ...]:
        """Return the values of other parameters with which a parameter has an effect."""
        return () if key.startswith(PREFIX) else self.cls.params[key].conditions

    def default_trial(self) -> dict[str, Any]:
        """Return the default values that are in the space, for Optuna to learn from."""
        keys = [key for key in self.ranges if self.has_default(key) and self._has_effect(key, self.defaults)]
        return {key: self.defaults[key] for key in keys}

    def has_default(self, key: str) -> bool:
        """Return whether a trial can have the default of a parameter."""
        return key in self.defaults and self.defaults[key] in self.ranges[key]

    def draw(self, trial: Any) -> dict[str, Any]:  # noqa: ANN401 - a trial of Optuna
        """Return values that Optuna suggests, only of parameters that have an effect together."""
        values, drawn = dict(self.defaults), {}
        for key in self._order:
            if self._has_effect(key, values):
                values[key] = drawn[key] = self.ranges[key].draw(trial, key)
        return drawn

    def with_values(self, drawn: Mapping[str, Any]) -> Recipe:
        """Return the recipe of a trial; fixed settings without effect next to its values are left out."""
        params, features = dict(self.recipe.params), dict(self.recipe.feature_params)
        for key, value in drawn.items():
            (features if key.startswith(PREFIX) else params)[key.removeprefix(PREFIX)] = value
        for key in self.cls.without_effect(params):
            del params[key]
        return replace(self.recipe, params=params, feature_params=features)

    def changed(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that differ from the default."""
        return {key: value for key, value in drawn.items() if key not in self.defaults or value != self.defaults[key]}

    def unmet(self, key: str) -> Condition | None:
        """Return a condition of a parameter that no trial can satisfy; None if all can be satisfied."""
        return next((c for c in self.conditions(key) if not any(map(c.holds, self._possible(c.key)))), None)

    def check(self) -> None:
        """Raise ParameterError for values that the method or features do not take, or parameters without effect."""
        for key, searched in self.ranges.items():
            if key in self.fixed:
                raise ParameterError(f"{key} is fixed by --set and searched by --search; leave one of them out")
            unmet = self.unmet(key)
            if unmet is not None:
                rule = f"{key} of {self.recipe.method} has an effect only with {unmet.text}, but that is never so"
                raise ParameterError(f"{rule}; leave {key} out, or set or search {unmet.key}")
            for value in searched.examples:
                if key.startswith(PREFIX):
                    self.with_values({key: value}).check()
                else:
                    self.cls.params[key].constraint.check(f"{key} of {self.recipe.method}", value)

    def _has_effect(self, key: str, values: Mapping[str, Any]) -> bool:
        return all(condition.holds(values[condition.key]) for condition in self.conditions(key))

    def _possible(self, key: str) -> Sequence[Any]:
        """Return values that a parameter may have in a trial: all of several, or the ends of a range."""
        return self.ranges[key].examples if key in self.ranges else [self.defaults[key]]

    @cached_property
    def _order(self) -> list[str]:
        """The parameters, each after those that decide whether it has an effect."""
        order: list[str] = []

        def add(key: str) -> None:
            for condition in self.conditions(key):
                if condition.key in self.ranges and condition.key not in order:
                    add(condition.key)
            if key not in order:
                order.append(key)

        for key in self.ranges:
            add(key)
        return order


def search_space(recipe: Recipe, search: Search | None = None, has_hierarchy: bool = True) -> SearchSpace:
    """Return the space that ``search`` describes, by default every declared parameter that changes the accuracy.

    A range of ``search`` is checked against the declared constraint. The key ``all`` adds the default ranges.
    """
    recipe.check()
    given = dict(search or {ALL: None})
    whole = ALL in given
    if given.pop(ALL, None) is not None:
        raise ParameterError(f"--search {ALL} takes no values, but has some; write --search {ALL}")
    ranges = {key: _given_range(recipe, key, what, has_hierarchy) for key, what in given.items()}
    space = SearchSpace(recipe, {**(_declared_ranges(recipe, has_hierarchy) if whole else {}), **ranges})
    effective = {key: r for key, r in space.ranges.items() if key in given or space.unmet(key) is None}
    space = SearchSpace(recipe, effective)
    space.check()
    if not space.ranges:
        rule = f"there must be a parameter to search, but {recipe.method} has none"
        raise ParameterError(f"{rule}; choose another method, or {EXAMPLE}")
    return space


def _declared_ranges(recipe: Recipe, has_hierarchy: bool) -> dict[str, Searched]:
    """Return the default ranges of all parameters that are not fixed."""
    free = {key: declared for key, declared in method(recipe.method).params.items() if key not in recipe.params}
    found = {key: declared_range(key, declared, has_hierarchy) for key, declared in free.items()}
    return {key: searched for key, searched in found.items() if searched is not None}


def _given_range(recipe: Recipe, key: str, what: str | Sequence[Any] | None, has_hierarchy: bool) -> Searched:
    """Return the range of a parameter that ``--search`` names."""
    declared = _declared(recipe, key)
    if what is None:
        searched = declared_range(key, declared, has_hierarchy)
        if searched is None:
            raise ParameterError(f"{key} of {recipe.method} has no range of its own; {EXAMPLE}")
        return searched
    found = parse_range(key, what, is_integer(declared))
    holds = declared.constraint.holds
    # Some parameters take the text "none" and not None.
    if isinstance(found, Choices) and None in found and not holds(None) and holds("none"):
        return Choices(tuple("none" if value is None else value for value in found.values))
    return found


def _declared(recipe: Recipe, key: str) -> Param:
    """Return the declaration of a parameter of the method, or of its features."""
    owner: type[Estimator] = method(recipe.method)
    if key.startswith(PREFIX):
        owner = features_class(recipe.features or method(recipe.method).view.features)
    name = key.removeprefix(PREFIX)
    owner.reject_unknown({name: None})
    return owner.params[name]


def set_option(key: str, value: Any) -> str:  # noqa: ANN401 - of any type
    """Return KEY=VALUE as ``--set`` reads it; texts that ``--set`` would read as other values are quoted.

    >>> set_option("C", 0.25), set_option("curve", True), set_option("stemming", "none"), set_option("tree", "kmeans")
    ('C=0.25', 'curve=true', 'stemming="none"', 'tree=kmeans')
    """
    text = shown(value)
    if isinstance(value, str) and parse_value(text) != text:
        return f'{key}="{text}"'
    return f"{key}={text}"
