"""``method__C`` and ``features__ngrams``: parameters of the method and of the features by scikit-learn's protocol."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Self

from sklearn.base import BaseEstimator

from labelspace.errors import ParameterError
from labelspace.estimator import Estimator
from labelspace.features.registry import FEATURES, create_features
from labelspace.models.registry import METHODS, create

# The registered names, and who makes an object of one.
PARTS: dict[str, tuple[Collection[str], Callable[..., Estimator]]] = {
    "method": (METHODS, create),
    "features": (FEATURES, create_features),
}


class NestedParameters(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A BaseEstimator whose ``method`` and ``features`` are a name, or an object with parameters of its own.

    A name has the default parameters; setting one of them puts the object in the place of the name.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with ``deep`` those of the method and of the features too."""
        params: dict[str, Any] = super().get_params(deep=deep)
        for part, (registered, make) in PARTS.items():
            given = params[part]
            if deep and isinstance(given, str) and given in registered:
                params |= {f"{part}__{key}": value for key, value in make(given).get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 - parameters are of any type
        """Change parameters; an unknown one is an error that lists the known ones."""
        nested: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
        for key, value in params.items():
            part, delimiter, name = key.partition("__")
            if delimiter and part in PARTS:
                nested[part][name] = value
            elif key not in self._get_param_names():
                raise ParameterError(self._unknown(key))
        super().set_params(**{key: value for key, value in params.items() if key in self._get_param_names()})
        for part, settings in nested.items():
            if settings:
                setattr(self, part, self._with_settings(part, settings))
        return self

    def _with_settings(self, part: str, settings: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a Model or Features
        given, name = getattr(self, part), next(iter(settings))
        if isinstance(given, str):
            return PARTS[part][1](given).set_params(**settings)
        if not isinstance(given, Estimator):
            raise ParameterError(
                f"{part}__{name} needs {part} that are named, but {part} is {given!r}; "
                f"set {part} to one of {', '.join(PARTS[part][0])}"
            )
        return given.set_params(**settings)

    def _unknown(self, key: str) -> str:
        hints = [f"did you mean {name!r}? " for name in self.get_params() if name.endswith(f"__{key}")]
        known = ", ".join(self._get_param_names())
        return (
            f"{type(self).__name__} has no parameter {key!r}; {''.join(hints[:1])}its parameters are: {known}, "
            "and those of the method as method__..."
        )
