"""The parameters of ``TaggerClassifier``: nested ones, their constraints, seed and threads of a training."""

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs  # type: ignore[import-untyped]
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from labelspace.errors import ParameterError
from labelspace.estimator import Estimator
from labelspace.estimator.parameter_constraints import MAX_INTEGER, Constraint, integer, optional, real
from labelspace.features import FEATURES, create_features
from labelspace.features.base import Features
from labelspace.kernels.threads import THREADS_VARIABLE
from labelspace.models.base import Model
from labelspace.models.registry import METHODS, create


def is_threshold(value: object) -> bool:
    """Return whether a value may be a threshold; True is a number in Python, and no threshold."""
    if isinstance(value, str):
        return value in ("auto", "f1")
    return value is not True and isinstance(value, Real)


def is_auto_or_bool(value: object) -> bool:
    """Return whether a value is True, False or "auto"."""
    return isinstance(value, bool) or (isinstance(value, str) and value == "auto")


def is_n_jobs(value: object) -> bool:
    """Return whether a value is a number of jobs, which may be negative."""
    return value is not True and isinstance(value, Integral) and value != 0


FEATURES_RULE = Constraint("the name of features, or features", lambda value: isinstance(value, (str, Features)))
CONSTRAINTS = {
    "method": Constraint("the name of a method, or a model", lambda value: isinstance(value, (str, Model))),
    "k": optional(integer(1)),
    "threshold": Constraint("'auto', 'f1' or a number", is_threshold),
    "validation_fraction": real(above=0, below=1),
    "features": optional(FEATURES_RULE),
    "sparse_output": Constraint("True, False or 'auto'", is_auto_or_bool),
    "n_jobs": optional(Constraint("an integer other than 0", is_n_jobs)),
}


def seed_of(random_state: Any) -> int | None:  # noqa: ANN401 - as scikit-learn takes it
    """Return the seed of a training: a number as it is, a draw of a RandomState, or None, the method's own seed.

    >>> seed_of(7), seed_of(None)
    (7, None)
    """
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)) and 0 <= random_state < MAX_INTEGER:
        return int(random_state)
    return int(check_random_state(random_state).randint(MAX_INTEGER - 1))


def new_model(method: str | Model, seed: int | None) -> Model:
    """Return a model that is not fitted, with this seed if it draws anything at random."""
    model: Model = create(method) if isinstance(method, str) else clone(method)
    return model if seed is None or "random_state" not in model.params else model.set_params(random_state=seed)


# The registered names of each part, and the function that makes an object of a name.
PARTS: dict[str, tuple[Collection[str], Callable[..., Estimator]]] = {
    "method": (METHODS, create),
    "features": (FEATURES, create_features),
}


class NestedParameters(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A BaseEstimator whose ``method`` and ``features`` are a name, or an object with parameters of its own.

    A name has the default parameters; setting one of them puts the object in the place of the name.
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` also the parameters of the method and of the features."""
        params: dict[str, Any] = super().get_params(deep=deep)
        for part, (registered, make) in PARTS.items():
            given = params[part]
            if deep and isinstance(given, str) and given in registered:
                params |= {f"{part}__{key}": value for key, value in make(given).get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 - parameters are of any type
        """Change parameters; raise ParameterError, which lists the known parameters, for an unknown one."""
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            part, delimiter, name = key.partition("__")
            if delimiter and part in PARTS:
                nested.setdefault(part, {})[name] = value
            elif key not in self._get_param_names():
                raise ParameterError(self._unknown(key))
        super().set_params(**{key: value for key, value in params.items() if key in self._get_param_names()})
        for part, settings in nested.items():
            setattr(self, part, self._with_settings(part, settings))
        return self

    def _check_settings(self) -> None:
        """Check every parameter against its constraint."""
        for name, constraint in CONSTRAINTS.items():
            constraint.check(f"{name} of {type(self).__name__}", getattr(self, name))

    def _check_for_classes(self) -> None:
        """Raise ParameterError for parameters that have no effect if every document has one class."""
        for name, default in (("k", None), ("threshold", "auto"), ("sparse_output", "auto")):
            value = getattr(self, name)
            if value != default and value is not False:
                rule = f"{name} has an effect only with a multilabel y, but y has one class per document"
                raise ParameterError(f"{rule} and {name} is {value!r}; leave it out")

    def _with_settings(self, part: str, settings: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a Model or Features
        given, name = getattr(self, part), next(iter(settings))
        if isinstance(given, str):
            return PARTS[part][1](given).set_params(**settings)
        if not isinstance(given, Estimator):
            rule = f"{part}__{name} needs {part} that are named, but {part} is {given!r}"
            raise ParameterError(f"{rule}; set {part} to one of {', '.join(PARTS[part][0])}")
        return given.set_params(**settings)

    def _unknown(self, key: str) -> str:
        hints = [f"did you mean {name!r}? " for name in self.get_params() if name.endswith(f"__{key}")]
        known = f"its parameters are: {', '.join(self._get_param_names())}, and those of the method as method__..."
        return f"{type(self).__name__} has no parameter {key!r}; {''.join(hints[:1])}{known}"


_lock = threading.Lock()
_before: list[str | None] = []  # LABELSPACE_THREADS as it was, once for each training or prediction that has set it


@contextmanager
def limited_threads(n_jobs: int | None) -> Iterator[None]:
    """Use ``n_jobs`` threads here, as joblib counts them: -1 for all CPUs; None changes nothing.

    LABELSPACE_THREADS belongs to the whole process: if two threads set it at the same time, the last value counts, and
    the value before is restored after both are done.

    >>> from labelspace.kernels.threads import n_threads
    >>> with limited_threads(3):
    ...     print(n_threads())
    3
    """
    if n_jobs is None:
        yield
        return
    threads = str(effective_n_jobs(n_jobs))
    with _lock:
        _before.append(_before[0] if _before else os.environ.get(THREADS_VARIABLE))
        os.environ[THREADS_VARIABLE] = threads
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before and before is not None:
                os.environ[THREADS_VARIABLE] = before
            elif not _before:
                os.environ.pop(THREADS_VARIABLE, None)
