"""Searches, cross-validation, pipelines and tables of scikit-learn."""

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline

from labelspace.sklearn import TaggerClassifier
from labelspace.sklearn.scorers import ndcg_at, precision_at, psp_at


def test_a_grid_search_over_the_parameters_of_the_method(documents):
    search = GridSearchCV(
        TaggerClassifier("one_vs_rest", k=1), {"method__C": [1e-6, 1.0]}, scoring=precision_at(1), cv=2
    )
    search.fit(documents.X, documents.Y)
    assert search.best_params_ == {"method__C": 1.0}
    assert search.best_estimator_.tagger_.model.C == 1.0
    assert search.best_score_ > 0.9
    assert search.predict(documents.X).shape == documents.Y.shape


def test_a_grid_search_over_methods_each_with_its_parameters(documents):
    grid = [{"method": ["popular"]}, {"method": ["neighbors"], "method__n_neighbors": [1, 10]}]
    search = GridSearchCV(TaggerClassifier(k=1), grid, scoring=precision_at(1), cv=2).fit(documents.X, documents.Y)
    assert len(search.cv_results_["params"]) == 3
    assert search.best_estimator_.tagger_.model.name == "neighbors"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_grid_search_on_two_processes(documents):
    pipeline = Pipeline([("tfidf", TfidfVectorizer()), ("tagger", TaggerClassifier("one_vs_rest", n_jobs=1))])
    grid = {"tagger__method__C": [1e-6, 1.0]}
    with parallel_config("multiprocessing"):  # the usual processes import all packages again, for many seconds
        results = [
            GridSearchCV(pipeline, grid, scoring=ndcg_at(3), cv=2, n_jobs=n_jobs).fit(documents.texts, documents.Y)
            for n_jobs in (1, 2)
        ]
    scores = [search.cv_results_["mean_test_score"].tolist() for search in results]
    assert scores[0] == scores[1]
    assert results[1].best_params_ == {"tagger__method__C": 1.0}


def test_a_randomized_search(documents):
    space = {"method__C": [0.1, 1.0, 10.0], "threshold": np.linspace(0.2, 0.8, 7)}
    classifier = TaggerClassifier("one_vs_rest")
    search = RandomizedSearchCV(classifier, space, n_iter=3, scoring="f1_micro", cv=2, random_state=0)
    search.fit(documents.X, documents.Y)
    assert len(search.cv_results_["params"]) == 3
    assert search.best_score_ > 0.7
    assert search.best_estimator_.threshold_ == search.best_params_["threshold"]


def test_cross_validation_of_a_pipeline_with_a_sparse_y(documents):
    pipeline = make_pipeline(TfidfVectorizer(), TaggerClassifier("one_vs_rest"))
    scoring = {"P@1": precision_at(1), "PSP@3": psp_at(3, y_train=documents.Y), "F1": "f1_micro"}
    with config_context(skip_parameter_validation=True):  # cross_validate refuses a sparse y before it reads it
        sparse = cross_validate(pipeline, documents.texts, documents.Y, scoring=scoring, cv=3)
    dense = cross_validate(pipeline, documents.texts, documents.Y.toarray(), scoring=scoring, cv=3)
    for name in scoring:
        assert sparse[f"test_{name}"] == pytest.approx(dense[f"test_{name}"])
        assert sparse[f"test_{name}"].min() > 0.7


def test_cross_validation_with_names(documents, names):
    classifier, scoring = TaggerClassifier("one_vs_rest", k=3), {"nDCG@3": ndcg_at(3), "PSP@3": psp_at(3, names)}
    by_name = cross_validate(classifier, documents.X, names, scoring=scoring, cv=KFold(3))
    scoring["PSP@3"] = psp_at(3, documents.Y)
    by_column = cross_validate(classifier, documents.X, documents.Y.toarray(), scoring=scoring, cv=KFold(3))
    for name in scoring:
        assert by_name[f"test_{name}"] == pytest.approx(by_column[f"test_{name}"])
    found = cross_val_predict(classifier, documents.X, names, cv=KFold(3))
    assert all(len(row) == 3 and set(row) <= set(documents.labels.names) for row in found)
