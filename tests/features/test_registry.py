"""Features by name, and within scikit-learn."""

import pytest
from sklearn.base import clone
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from labelspace.errors import ParameterError
from labelspace.features import FEATURES, create_features


def test_features_are_made_by_name():
    assert sorted(FEATURES) == ["embeddings", "hashing", "tfidf"]
    for name, kind in FEATURES.items():
        assert type(create_features(name)) is kind
        assert kind.name == name
    assert create_features("tfidf", ngrams=1, max_features=10).get_params()["max_features"] == 10


def test_unknown_names_list_the_known():
    with pytest.raises(ParameterError, match="one of tfidf, hashing, embeddings, but are 'bm25'"):
        create_features("bm25")
    with pytest.raises(ParameterError, match="tfidf has no parameter 'ngram'; did you mean 'ngrams'"):
        create_features("tfidf", ngram=2)


@pytest.mark.parametrize("name", ["hashing", "tfidf"])
def test_features_work_in_a_pipeline(name):
    features = clone(create_features(name, ngrams=1))
    assert features.get_params()["ngrams"] == 1
    texts = ["red apple", "green apple", "fast car", "red car car"]
    pipeline = make_pipeline(features, MultinomialNB()).fit(texts, [0, 0, 1, 1])
    assert pipeline.predict(["apple", "car"]).tolist() == [0, 1]
