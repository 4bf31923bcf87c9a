import pytest
from sklearn.base import clone

from labelspace import create
from labelspace.errors import ParameterError
from labelspace.features import Hashing
from labelspace.sklearn import TaggerClassifier


def test_parameters_of_a_named_method_are_seen_and_set():
    classifier = TaggerClassifier("one_vs_rest")
    assert classifier.get_params()["method__C"] == create("one_vs_rest").C
    assert "method__C" not in classifier.get_params(deep=False)
    assert classifier.set_params(method__C=3.0, k=2) is classifier
    assert (repr(classifier.method), classifier.k) == ("OneVsRest(C=3.0)", 2)
    assert classifier.get_params()["method__C"] == 3.0


def test_a_method_and_its_parameters_may_be_set_at_once_in_any_order():
    classifier = TaggerClassifier().set_params(method__n_neighbors=7, method="neighbors")
    assert repr(classifier) == "TaggerClassifier(method=Neighbors(n_neighbors=7))"


def test_a_clone_has_a_model_of_its_own():
    classifier = TaggerClassifier(create("one_vs_rest", C=2.0))
    copied = clone(classifier).set_params(method__C=5.0)
    assert (classifier.method.C, copied.method.C) == (2.0, 5.0)


def test_parameters_of_features():
    assert TaggerClassifier(features="hashing").set_params(features__bits=9).features.bits == 9
    assert TaggerClassifier(features=Hashing(bits=8)).get_params()["features__bits"] == 8


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"C": 1},
            r"TaggerClassifier has no parameter 'C'; did you mean 'method__C'\? its parameters are: features, k",
        ),
        ({"zzz": 1}, "TaggerClassifier has no parameter 'zzz'; its parameters are: features, k, method,"),
        ({"other__C": 1}, "TaggerClassifier has no parameter 'other__C'"),
        ({"method__zzz": 1}, "one_vs_rest has no parameter 'zzz'; its parameters are: C, threshold"),
        ({"features__bits": 1}, "features__bits needs features that are named, but features is None; set features to"),
        ({"method": "nonsense", "method__C": 1}, "there is no method 'nonsense'"),
    ],
)
def test_an_unknown_parameter_is_an_error_that_names_the_known(params, message):
    with pytest.raises(ParameterError, match=message):
        TaggerClassifier("one_vs_rest").set_params(**params)
