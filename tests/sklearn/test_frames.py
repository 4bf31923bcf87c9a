"""Tables and columns of pandas, polars and pyarrow."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from labelspace.errors import DataError
from labelspace.sklearn import TaggerClassifier
from labelspace.sklearn.scorers import precision_at, psp_at

pd, pl, pa = (
    pytest.importorskip(name, reason="tables are of this package") for name in ("pandas", "polars", "pyarrow")
)


@pytest.mark.parametrize("column", [pd.Series, pl.Series, pa.array, lambda values: pa.chunked_array([values])])
def test_texts_and_names_come_as_columns(documents, names, column):
    texts, labels = column(list(documents.texts)), column(names)
    classifier = TaggerClassifier("one_vs_rest").fit(texts, labels)
    same = TaggerClassifier("one_vs_rest").fit(list(documents.texts), names)
    assert classifier.predict(texts).tolist() == same.predict(list(documents.texts)).tolist()
    assert classifier.score(list(documents.texts), names) == same.score(list(documents.texts), names)
    for scorer in (precision_at(2), psp_at(2, y_train=labels)):
        assert scorer(classifier, texts, labels) == scorer(same, list(documents.texts), names)


def test_a_table_of_labels_is_a_matrix(documents):
    table = pd.DataFrame(documents.Y.toarray())
    found = TaggerClassifier("one_vs_rest", k=1).fit(documents.X, table).predict(documents.X)
    expected = TaggerClassifier("one_vs_rest", k=1).fit(documents.X, documents.Y).predict(documents.X)
    assert np.array_equal(found, expected.toarray())


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_of_columns_are_kept_and_compared(documents, frame):
    table = pd.DataFrame(documents.X.toarray()).add_prefix("x")
    classifier = TaggerClassifier("one_vs_rest", k=1).fit(frame(table), documents.Y)
    assert classifier.feature_names_in_.tolist() == list(table.columns)
    with pytest.raises(ValueError, match="feature names"):
        classifier.predict(frame(table.rename(columns={"x0": "other"})))
    classifier.fit(documents.texts, documents.Y)
    assert not hasattr(classifier, "feature_names_in_")


def test_frames_of_earlier_steps_give_names_of_features(documents):
    pipeline = make_pipeline(StandardScaler(), TaggerClassifier("one_vs_rest", k=1)).set_output(transform="pandas")
    frame = pd.DataFrame(documents.X.toarray()).add_prefix("x")
    assert pipeline.fit(frame, documents.Y)[-1].feature_names_in_.tolist() == list(frame.columns)


def test_a_table_with_texts_numbers_and_categories(documents):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"title": documents.texts, "price": rng.random(300), "shop": rng.choice(["a", "b"], 300)})
    columns = make_column_transformer(
        (TfidfVectorizer(), "title"), (StandardScaler(), ["price"]), (OneHotEncoder(), ["shop"])
    )
    pipeline = make_pipeline(columns, TaggerClassifier("label_tree", k=1)).fit(table[:240], documents.Y[:240])
    assert pipeline[-1].n_features_in_ == len(columns.named_transformers_["tfidfvectorizer"].vocabulary_) + 3
    assert precision_at(1)(pipeline, table[240:], documents.Y[240:]) > 0.7


def test_a_table_with_texts_needs_a_transformer(documents, names):
    table = pd.DataFrame({"title": documents.texts, "price": 1.0})
    with pytest.raises(DataError, match="X must be texts or numbers, but is a table with texts; give one column"):
        TaggerClassifier("one_vs_rest").fit(table, names)
