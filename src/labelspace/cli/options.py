"""Options of the command line as values for the library."""

import json
from dataclasses import replace
from typing import Any

from labelspace.errors import ParameterError
from labelspace.experiment import Limits, Recipe
from labelspace.experiment.timing import parse_duration
from labelspace.models.registry import DEFAULT, METHODS, method


def make_recipe(
    name: str | None, settings: list[str] | None, features: str | None, seed: int, preset: str | None = None
) -> Recipe:
    """The recipe of the options of `train`."""
    given, prefix = parse_settings(settings or []), "features."
    params = {key: value for key, value in given.items() if not key.startswith(prefix)}
    params = {key: _none_as_text(name or DEFAULT, key, value) for key, value in params.items()}
    feature_params = {key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)}
    return Recipe(name or DEFAULT, params, features, feature_params, seed, preset)


def _none_as_text(name: str, key: str, value: object) -> object:
    """None as the text "none" where a parameter takes that and not None, such as a stemming."""
    declared = method(name).params.get(key) if name in METHODS and value is None else None
    return "none" if declared is not None and not declared.constraint.holds(None) else value


def chosen_preset(preset: str | None, fast: bool, best: bool) -> str | None:
    """The preset that the options of `train` name."""
    named = [name for name in (preset, "fast" if fast else None, "best" if best else None) if name is not None]
    if len(set(named)) > 1:
        raise ParameterError(f"--preset, --fast and --best name one preset, but name {' and '.join(named)}; give one")
    return named[0] if named else None


def make_limits(budget: str | None, model_mb: float | None, latency_ms: float | None) -> Limits:
    """The limits that the options of `train` name."""
    return Limits(None if budget is None else parse_duration(budget), model_mb, latency_ms)


def compared_recipes(names: list[str], settings: list[str] | None, features: str | None, seed: int) -> list[Recipe]:
    """One recipe per method of `compare`; features are not set for a method that reads raw text."""
    recipes = []
    for name in names:
        recipe = make_recipe(name, settings_of(name, names, settings), features, seed)
        reads_text = name in METHODS and not method(name).view.is_matrix
        recipes.append(replace(recipe, features=None, feature_params={}) if reads_text else recipe)
    return recipes


def settings_of(name: str, names: list[str], settings: list[str] | None) -> list[str]:
    """Where there are several methods, METHOD.KEY=VALUE is for that one only; features.KEY=VALUE is for all."""
    for setting in settings or []:
        if setting.split(".")[0] not in ("features", *names):
            remedy = f"write {names[0]}.KEY=VALUE"
            raise ParameterError(f"--set must name the method, but is {setting!r}; {remedy}")
    return [s.removeprefix(f"{name}.") for s in settings or [] if s.startswith((f"{name}.", "features."))]


def parse_settings(settings: list[str]) -> dict[str, Any]:
    """KEY=VALUE strings as a dict: JSON values (numbers, true, null), none/true/false in any case, or text."""
    parsed: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ParameterError(f"--set must be KEY=VALUE, but is {setting!r}; write for example --set C=0.5")
        try:
            parsed[key] = json.loads(value)
        except ValueError:
            parsed[key] = {"none": None, "true": True, "false": False}.get(value.lower(), value)
    return parsed


def parse_ks(text: str) -> tuple[int, ...]:
    """'1,3,5' as numbers."""
    try:
        ks = tuple(dict.fromkeys(int(k) for k in text.split(",")))
    except ValueError:
        ks = ()
    if not ks or min(ks) < 1:
        raise ParameterError(
            f"--k must be integers of at least 1 separated by commas, but is {text!r}; write for example 1,3,5"
        )
    return ks
