"""Recipes: what to train, from the options --method, --preset, --features, --set and --seed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Option

from labelspace.cli.arguments import OptionGroup
from labelspace.errors import ParameterError

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from labelspace.experiment import Limits, Recipe

Method = Annotated[str | None, Option("--method", help="The method; `labelspace methods` lists them. Default: blend.")]
Features = Annotated[
    str | None,
    Option("--features", help="Features of texts: tfidf, hashing or embeddings. Default: chosen by the method."),
]
Seed = Annotated[int, Option("--seed", min=0, help="Random seed.")]
Set = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a parameter of the method, or of the features: features.KEY=VALUE. Repeatable; the last KEY counts.",
    ),
]


class TrainingOptions(NamedTuple):
    """The options of `train` that say how a model is trained."""

    preset: Annotated[
        str | None, Option(help="Parameters by name, such as paper: the method as published; --set overrides.")
    ] = None
    fast: Annotated[bool, Option(help="Short for --preset fast: a blend at a fraction of the cost.")] = False
    best: Annotated[bool, Option(help="Short for --preset best: more members and folds.")] = False
    budget: Annotated[
        str | None,
        Option(
            metavar="2m", help="CPU time that training may take, as 90s, 2m or 1h30m; plans the best blend within it."
        ),
    ] = None
    max_model_mb: Annotated[
        float | None, Option(metavar="MB", help="Megabytes that the model may have on disk; plans for it.")
    ] = None
    max_latency_ms: Annotated[
        float | None, Option(metavar="MS", help="Milliseconds that one document may take, in the median; plans for it.")
    ] = None
    optimize: Annotated[
        str | None,
        Option(metavar="METRIC", help="Rank labels for this metric, such as PSP@5 for rare labels. Only for blend."),
    ] = None
    features: Features = None
    settings: Set = None
    seed: Seed = 0

    def recipe(self, method: str | None) -> "Recipe":
        """Return the recipe of these options."""
        optimized = [] if self.optimize is None else [f"optimize={self.optimize}"]
        preset = chosen_preset(self.preset, self.fast, self.best)
        return make_recipe(method, [*(self.settings or []), *optimized], self.features, self.seed, preset)

    def limits(self) -> "Limits":
        """Return the limits that the training is planned for."""
        return make_limits(self.budget, self.max_model_mb, self.max_latency_ms)


Training = Annotated[TrainingOptions, Option(parser=OptionGroup.of(TrainingOptions))]


def make_recipe(
    name: str | None, settings: Sequence[str] | None, features: str | None, seed: int, preset: str | None = None
) -> "Recipe":
    """Return the recipe of a method, the default one if it has no name."""
    from labelspace.experiment import Recipe
    from labelspace.models.registry import DEFAULT

    given, prefix = parse_settings(settings or []), "features."
    params = {key: value for key, value in given.items() if not key.startswith(prefix)}
    params = {key: _none_as_text(name or DEFAULT, key, value) for key, value in params.items()}
    feature_params = {key.removeprefix(prefix): value for key, value in given.items() if key.startswith(prefix)}
    return Recipe(name or DEFAULT, params, features, feature_params, seed, preset)


def _none_as_text(name: str, key: str, value: object) -> object:
    """Return the text "none" for None if a parameter takes that and not None, such as a stemming."""
    from labelspace.models.registry import METHODS, method

    declared = method(name).params.get(key) if name in METHODS and value is None else None
    return "none" if declared is not None and not declared.constraint.holds(None) else value


def chosen_preset(preset: str | None, fast: bool, best: bool) -> str | None:
    """Return the preset that --preset, --fast or --best names; raise if they name several."""
    named = [name for name in (preset, "fast" if fast else None, "best" if best else None) if name is not None]
    if len(set(named)) > 1:
        raise ParameterError(f"--preset, --fast and --best name one preset, but name {' and '.join(named)}; give one")
    return named[0] if named else None


def make_limits(budget: str | None, model_mb: float | None = None, latency_ms: float | None = None) -> "Limits":
    """Return the limits of a training; a budget is a duration."""
    from labelspace.experiment import Limits
    from labelspace.experiment.timing import parse_duration

    return Limits(None if budget is None else parse_duration(budget), model_mb, latency_ms)


def compared_recipes(names: list[str], settings: list[str] | None, features: str | None, seed: int) -> "list[Recipe]":
    """Return one recipe per method of `compare`; features are not set for a method that reads raw text."""
    from labelspace.models.registry import METHODS, method

    recipes = []
    for name in names:
        recipe = make_recipe(name, settings_of(name, names, settings), features, seed)
        reads_text = name in METHODS and not method(name).view.is_matrix
        recipes.append(replace(recipe, features=None, feature_params={}) if reads_text else recipe)
    return recipes


def settings_of(name: str, names: list[str], settings: list[str] | None) -> list[str]:
    """Return the settings for one of several methods: METHOD.KEY=VALUE; features.KEY=VALUE is for all."""
    for setting in settings or []:
        if setting.split(".")[0] not in ("features", *names):
            remedy = f"write {names[0]}.KEY=VALUE"
            raise ParameterError(f"--set must name the method, but is {setting!r}; {remedy}")
    return [s.removeprefix(f"{name}.") for s in settings or [] if s.startswith((f"{name}.", "features."))]


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return KEY=VALUE strings as a dict: JSON values (numbers, true, null), none/true/false in any case, or text."""
    from labelspace.estimator.parameter_constraints import parse_value

    parsed: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ParameterError(f"--set must be KEY=VALUE, but is {setting!r}; write for example --set C=0.5")
        parsed[key] = parse_value(value)
    return parsed
