"""scikit-learn's own checks of an estimator; none is expected to fail."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from labelspace import create
from labelspace.sklearn import TaggerClassifier

NEEDS_MORE = {  # checks that are skipped, and why
    "check_array_api_input": "SCIPY_ARRAY_API is not set",
    "check_classifiers_multilabel_output_format_predict_proba": "does not have a predict_proba method",
}


@pytest.mark.filterwarnings("ignore")  # checks look for some warnings themselves, and give others on purpose
@pytest.mark.parametrize(
    "classifier",
    [
        TaggerClassifier("one_vs_rest"),
        TaggerClassifier(create("one_vs_rest", C=1.0), n_jobs=1, random_state=3),
        TaggerClassifier("neighbors"),
        pytest.param(TaggerClassifier(create("blend", members="one_vs_rest", n_folds=2)), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_all_checks_of_scikit_learn_pass(classifier):
    results = check_estimator(classifier, on_fail=None, on_skip=None)
    assert len(results) > 50
    failed = {result["check_name"]: repr(result["exception"]) for result in results if result["status"] == "failed"}
    assert failed == {}
    for result in results:
        if result["status"] != "passed":
            assert NEEDS_MORE[result["check_name"]] in str(result["exception"])


def test_the_default_method_has_probabilities_and_so_has_one_check_more():
    assert hasattr(TaggerClassifier(), "predict_proba")
    assert not hasattr(TaggerClassifier("one_vs_rest"), "predict_proba")
