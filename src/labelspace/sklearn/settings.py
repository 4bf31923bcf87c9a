"""What the parameters of ``TaggerClassifier`` must satisfy, and how training reads them."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from labelspace.errors import ParameterError
from labelspace.estimator.parameter_constraints import MAX_INTEGER, Constraint, integer, optional, real
from labelspace.features.base import Features
from labelspace.models.base import Model
from labelspace.models.registry import create

CONSTRAINTS = {
    "method": Constraint("the name of a method, or a model", lambda value: isinstance(value, (str, Model))),
    "k": optional(integer(1)),
    "threshold": Constraint(
        "'auto', 'f1' or a number",
        lambda value: (
            value in ("auto", "f1") if isinstance(value, str) else isinstance(value, Real) and value is not True
        ),
    ),
    "validation_fraction": real(above=0, below=1),
    "features": optional(
        Constraint("the name of features, or features", lambda value: isinstance(value, (str, Features)))
    ),
    "sparse_output": Constraint(
        "True, False or 'auto'", lambda value: isinstance(value, bool) or (isinstance(value, str) and value == "auto")
    ),
    "n_jobs": optional(
        Constraint(
            "an integer other than 0", lambda value: isinstance(value, Integral) and value is not True and value != 0
        )
    ),
}


def check_settings(classifier: Any) -> None:  # noqa: ANN401 - a TaggerClassifier, which imports this
    """Check every parameter against its constraint."""
    for name, constraint in CONSTRAINTS.items():
        constraint.check(f"{name} of TaggerClassifier", getattr(classifier, name))


def check_for_classes(classifier: Any) -> None:  # noqa: ANN401 - a TaggerClassifier
    """Refuse what has no effect where every document has one class."""
    for name, default in (("k", None), ("threshold", "auto"), ("sparse_output", "auto")):
        value = getattr(classifier, name)
        if value != default and value is not False:
            raise ParameterError(
                f"{name} has an effect with a multilabel y alone, but y has one class per document and {name} is "
                f"{value!r}; leave it out"
            )


def seed_of(random_state: Any) -> int | None:  # noqa: ANN401 - as scikit-learn takes it
    """The seed for a training: a number is taken as it is, a RandomState draws one, None leaves it to the method.

    >>> seed_of(7), seed_of(None)
    (7, None)
    """
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)) and 0 <= random_state < MAX_INTEGER:
        return int(random_state)
    return int(check_random_state(random_state).randint(MAX_INTEGER - 1))


def new_model(method: str | Model, seed: int | None) -> Model:
    """A model that is not fitted, with this seed where it draws anything at random."""
    model: Model = create(method) if isinstance(method, str) else clone(method)
    return model if seed is None or "random_state" not in model.params else model.set_params(random_state=seed)
