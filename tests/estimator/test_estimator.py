from __future__ import annotations

import inspect
from functools import cached_property

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from labelspace.errors import MissingExtraError, NotFittedError, ParameterError, require
from labelspace.estimator import Estimator, Stateful, learned, param
from labelspace.estimator.parameter_constraints import integer, optional, real
from labelspace.estimator.state_constraints import array
from labelspace.features import Hashing
from labelspace.metrics import precision_at_k
from labelspace.models.registry import create, method


class Centers(Estimator):
    name = "centers"

    k: int = param(3, integer(1), "Number of centers.")
    width: float | None = param(None, optional(real(above=0)), "Width of a center.")

    centers_: np.ndarray = learned(array("float64", "n"))
    context_: object = learned(None)

    @cached_property
    def norms(self):
        return np.linalg.norm(self.centers_, axis=1)


class WideCenters(Centers):
    name = "wide_centers"

    width: float | None = Centers.params["width"].with_default(2.0)
    sharp: bool = param(False, integer(0), "Whether centers are sharp.")


def test_parameters_are_declared_once_and_read_everywhere():
    assert list(Centers.params) == ["k", "width"]
    assert (Centers.params["k"].type, Centers.params["k"].meaning) == ("int", "Number of centers.")
    assert Centers.defaults() == {"k": 3, "width": None}
    signature = inspect.signature(Centers)
    assert [(p.name, p.default, p.kind.name) for p in signature.parameters.values()] == [
        ("k", 3, "KEYWORD_ONLY"),
        ("width", None, "KEYWORD_ONLY"),
    ]
    with pytest.raises(TypeError):
        Centers(3)


def test_a_subclass_adds_parameters_and_changes_defaults():
    assert WideCenters.defaults() == {"k": 3, "width": 2.0, "sharp": False}
    assert Centers.defaults() == {"k": 3, "width": None}
    assert WideCenters.params["width"].meaning == "Width of a center."
    assert list(WideCenters.state) == ["centers_"]


def test_parameters_follow_the_protocol_of_scikit_learn():
    model = Centers(k=5)
    assert model.get_params() == {"k": 5, "width": None}
    assert model.set_params(width=1.0) is model
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == {"k": 5, "width": 1.0}
    assert repr(copy) == "Centers(k=5, width=1.0)"
    assert repr(Centers()) == "Centers()"


def test_parameters_are_stored_as_given_and_checked_later():
    model = Centers(k="many")
    assert model.k == "many"
    with pytest.raises(ParameterError, match="^k of centers must be an integer .*, but is 'many'; set it so$"):
        model.check_params()
    model.set_params(k=2).check_params()


@pytest.mark.parametrize("call", [lambda **params: Centers(**params), lambda **params: Centers().set_params(**params)])
def test_an_unknown_parameter_is_an_error(call):
    with pytest.raises(ParameterError, match=r"centers has no parameter 'wdth'; did you mean 'width'\? its parameters"):
        call(wdth=1)
    with pytest.raises(ParameterError, match=r"centers has no parameter 'zzz'; its parameters are: k, width"):
        call(zzz=1)


def test_what_is_learned_is_there_once_fitted():
    model = Centers()
    assert not model.is_fitted
    assert not model.__sklearn_is_fitted__()
    with pytest.raises(AttributeError, match="Centers has no centers_ before it is fitted"):
        model.centers_  # noqa: B018 - reading it raises
    assert not hasattr(model, "context_")
    with pytest.raises(NotFittedError, match=r"centers must be fitted first, but has not been; call fit"):
        model.check_fitted()
    model.centers_ = np.eye(2)
    assert model.is_fitted, "what is not saved need not be there"
    model.check_fitted()


def test_forget_drops_all_but_parameters():
    model = Centers(k=2)
    model.centers_, model.context_ = np.eye(2), "context"
    assert model.norms.tolist() == [1, 1]
    model.forget()
    assert vars(model) == {"k": 2, "width": None}
    model.centers_ = 3 * np.eye(2)
    assert model.norms.tolist() == [3, 3], "derived anew"


def test_a_part_without_parameters_has_a_state_too():
    class Part(Stateful):
        name = "part"
        weights_: np.ndarray = learned(array("float64", "n"))

    part = Part()
    assert (list(part.state), part.params, part.files()) == (["weights_"], {}, {})
    assert not part.is_fitted


def test_a_parameter_out_of_range_is_rule_value_remedy(data):
    with pytest.raises(ParameterError, match="C of one_vs_rest must be above 0, but is -1; set it so"):
        create("one_vs_rest", C=-1).fit(data[0].X, data[0].Y)


def test_a_near_miss_is_guessed():
    with pytest.raises(ParameterError, match=r"no parameter 'treshold'; did you mean 'threshold'\?"):
        create("one_vs_rest", treshold=1)
    with pytest.raises(ParameterError, match=r"no method 'neighbours'; did you mean 'neighbors'\?"):
        method("neighbours")


def test_a_model_works_in_a_pipeline(data):
    train, test = data
    pipeline = make_pipeline(Hashing(bits=12), create("one_vs_rest")).fit(train.texts, train.Y)
    assert pipeline.predict(test.texts).shape == test.Y.shape


def test_a_missing_extra_names_the_command_to_install_it():
    with pytest.raises(MissingExtraError, match=r"pip install 'labelspace\[parquet\]'"):
        require("no_such_package_at_all", extra="parquet")


def test_scikit_learn_searches_its_parameters(data):
    def precision(model, X, Y):
        return precision_at_k(Y, model.predict_topk(X, 1), 1)

    search = GridSearchCV(create("one_vs_rest"), {"C": [1e-6, 1.0]}, scoring=precision, cv=2)
    search.fit(data[0].X, data[0].Y)
    assert search.best_params_ == {"C": 1.0}
    assert search.best_score_ > 0.85
