"""Named views of documents, how they are made of texts, and raw texts."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError, NotFittedError, ParameterError
from labelspace.features import Sequences, Tfidf
from labelspace.features.base import RawText
from labelspace.features.normalize import normalize_rows
from labelspace.features.views import (
    BIGRAMS,
    CHARS,
    EMBEDDINGS,
    GIVEN,
    HASHING,
    SEQUENCES,
    TEXT,
    VIEWS,
    WORDS,
    FeatureCache,
    View,
    Views,
    ViewTransformer,
    is_matrix,
    n_rows,
    override,
    take_rows,
)
from tests.features.saving import saved_and_loaded

TEXTS = ["red apple", "green apple", "red car", "", "a green car"]


@pytest.fixture
def fits(monkeypatch):
    """The features that are fitted, in order."""
    fitted = []
    for kind in (Tfidf, Sequences):

        def spy(self, texts, y=None, original=kind.fit_transform):
            fitted.append(repr(self))
            return original(self, texts)

        monkeypatch.setattr(kind, "fit_transform", spy)
    return fitted


def same(one, other):
    return one.shape == other.shape and (one != other).nnz == 0


# ---- a view


def test_views_are_found_by_name_and_make_their_features():
    assert all(view.name == name for name, view in VIEWS.items())
    assert repr(BIGRAMS.create()) == "Tfidf()"
    assert repr(CHARS.create()) == "Tfidf(analyzer='char', min_n=4, max_n=4)"
    assert type(SEQUENCES.create()) is Sequences
    assert type(TEXT.create()) is RawText
    assert [view.name for view in VIEWS.values() if view.is_matrix] == [
        "words", "bigrams", "chars", "stems", "stem_bigrams", "hashing", "embeddings",
    ]  # fmt: skip


def test_a_view_can_be_made_by_other_features():
    view = BIGRAMS.with_features("hashing", {"bits": 9, "min_df": 3})
    assert view == View("bigrams", "hashing", {"ngrams": 2, "bits": 9}), "settings that hashing has not are dropped"
    assert BIGRAMS.with_features(None, {"min_df": 3}) == View("bigrams", "tfidf", {"ngrams": 2, "min_df": 3})
    assert BIGRAMS.with_features(None, {"ngrams": 3}).params == {"ngrams": 3}, "the user's setting wins"
    assert TEXT.with_features("hashing", {"bits": 9}) is TEXT, "texts and token ids stay"
    assert SEQUENCES.with_features("hashing", {}) is SEQUENCES
    assert BIGRAMS.params == {"ngrams": 2}


# ---- override


def test_settings_go_to_every_view_whose_features_have_them():
    views = override([WORDS, HASHING, TEXT], None, {"sublinear": False, "bits": 9}, "blend")
    assert [dict(view.params) for view in views] == [
        {"ngrams": 1, "sublinear": False}, {"sublinear": False, "bits": 9}, {},
    ]  # fmt: skip
    assert override([WORDS, TEXT], None, {}, "blend") == [WORDS, TEXT]
    assert override([TEXT], None, {}, "lexical") == [TEXT]


def test_a_setting_that_no_view_has_is_an_error():
    with pytest.raises(ParameterError, match="tfidf has no parameter 'bit'; .*its parameters are: ngrams"):
        override([WORDS, TEXT], None, {"bit": 9}, "blend")
    with pytest.raises(ParameterError, match="features must be one of tfidf, hashing, embeddings, but are 'bm25'"):
        override([WORDS], "bm25", {}, "blend")


@pytest.mark.parametrize(
    ("features", "params", "said"), [("hashing", {}, "features is set"), (None, {"bits": 9}, r"features\.bits is set")]
)
def test_a_method_that_reads_texts_has_no_features_to_choose(features, params, said):
    with pytest.raises(ParameterError, match=f"^lexical reads texts itself, but {said}; leave it out, or choose"):
        override([TEXT, SEQUENCES], features, params, "lexical")


# ---- documents under their views


def test_views_have_the_same_documents_under_each_name():
    X = sp.csr_matrix(np.eye(3, 5, dtype=np.float32))
    views = Views({"words": X, "text": TEXTS[:3], "sequences": np.array([[3], [4], [3]])}, {"sequences": 9})
    assert views.n == 3
    assert views["words"] is X
    assert [views.width(name) for name in ("words", "text", "sequences")] == [5, 0, 9]
    some = views.rows([2, 0])
    assert some.n == 2
    assert some["text"] == ["red car", "red apple"]
    assert same(some["words"], X[[2, 0]])
    assert some["sequences"].tolist() == [[3], [3]]
    assert some.widths == views.widths, "fewer documents have as many token ids"
    assert views.rows(slice(1, None))["text"] == TEXTS[1:3]


@pytest.mark.parametrize("X", [np.eye(3), sp.csr_matrix(np.eye(3))])
def test_a_matrix_of_the_user_is_every_view_that_is_a_matrix(X):
    views = Views({GIVEN: X})
    assert views["words"] is X
    assert views["chars"] is X
    assert views.width("words") == 3
    with pytest.raises(DataError, match="^the method reads texts, but X holds features; give a list of texts"):
        views["text"]


def test_a_view_that_is_not_there_is_an_error():
    with pytest.raises(
        DataError, match=r"reads the view 'words' .* or other views \(text, chars\); use labelspace.Tag"
    ):
        Views({"text": TEXTS, "chars": np.eye(5)})["words"]


def test_no_views_are_no_documents():
    assert Views({}).n == 0


def test_rows_of_every_kind_of_table():
    index = np.array([2, 0])
    assert take_rows(TEXTS, index) == ["red car", "red apple"]
    assert take_rows(tuple(TEXTS), slice(1, 2)) == ("green apple",)
    assert take_rows(np.eye(3), index).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert take_rows(sp.csr_matrix(np.eye(3)), index).toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert take_rows(Views({"text": TEXTS}), index)["text"] == ["red car", "red apple"]
    assert [n_rows(table) for table in (TEXTS, np.eye(3), sp.csr_matrix((4, 2)))] == [5, 3, 4]


def test_what_a_matrix_is():
    assert is_matrix(sp.csr_matrix((2, 2)))
    assert is_matrix(np.zeros((2, 2)))
    assert not is_matrix(np.zeros(2))
    assert not is_matrix(TEXTS)


# ---- from texts to views


def test_views_of_texts_are_those_of_their_features():
    transformer = ViewTransformer([WORDS, SEQUENCES, TEXT])
    views = transformer.fit_transform(TEXTS)
    tfidf, sequences = Tfidf(ngrams=1), Sequences()
    assert same(views["words"], tfidf.fit_transform(TEXTS))
    assert np.array_equal(views["sequences"], sequences.fit_transform(TEXTS))
    assert views["text"] == TEXTS
    assert views.widths == {"words": tfidf.n_features, "sequences": sequences.n_tokens, "text": 0}
    unseen = transformer.transform(["red car", "plum"])
    assert same(unseen["words"], tfidf.transform(["red car", "plum"]))
    assert np.array_equal(unseen["sequences"], sequences.transform(["red car", "plum"]))
    assert unseen.widths == views.widths


def test_views_with_equal_features_are_made_and_saved_once(fits, tmp_path):
    views = [WORDS, View("other", "tfidf", {"ngrams": 1}), BIGRAMS]
    transformer = ViewTransformer(views)
    made = transformer.fit_transform(TEXTS)
    assert fits == ["Tfidf(ngrams=1)", "Tfidf()"]
    assert made["other"] is made["words"]
    assert list(transformer.features_) == ["words", "bigrams"]
    assert transformer.made_by_ == {"words": "words", "other": "words", "bigrams": "bigrams"}
    loaded = saved_and_loaded(transformer, tmp_path, ViewTransformer)
    assert loaded.features_.keys() == transformer.features_.keys()
    unseen = loaded.transform(["a red car"])
    assert unseen["other"] is unseen["words"]
    for view in views:
        assert same(unseen[view.name], transformer.transform(["a red car"])[view.name])
    assert unseen.widths == made.widths


def test_a_cache_fits_equal_features_once_for_all_who_need_them(fits):
    cache, calls = FeatureCache(), []
    one = ViewTransformer([WORDS]).fit_transform(TEXTS, cache=cache, progress=lambda *call: calls.append(call))
    two = ViewTransformer([View("same", "tfidf", {"ngrams": 1}), SEQUENCES])
    made = two.fit_transform(TEXTS, cache=cache)
    assert made["same"] is one["words"]
    assert fits == ["Tfidf(ngrams=1)", "Sequences()"]
    assert calls == [("features", 0, 5), ("features", 5, 5)]
    assert same(two.transform(["red"])["same"], Tfidf(ngrams=1).fit(TEXTS).transform(["red"]))


def test_a_view_for_training_only_is_not_there_for_prediction(tmp_path):
    transformer = ViewTransformer([WORDS, View("labels", "tfidf", {"min_df": 1}, training_only=True)])
    views = transformer.fit_transform(TEXTS)
    assert set(views.tables) == {"words", "labels"}
    assert list(transformer.features_) == ["words"]
    assert set(transformer.transform(TEXTS).tables) == {"words"}
    assert set(saved_and_loaded(transformer, tmp_path, ViewTransformer).transform(TEXTS).tables) == {"words"}


def test_a_view_that_others_need_is_there_though_one_needs_it_for_training_only():
    transformer = ViewTransformer([View("labels", "tfidf", {"ngrams": 1}, training_only=True), WORDS])
    transformer.fit(TEXTS)
    assert transformer.made_by_ == {"words": "words"}
    assert set(transformer.transform(TEXTS).tables) == {"words"}


def test_a_new_fit_replaces_the_old():
    transformer = ViewTransformer([WORDS]).fit(TEXTS)
    transformer.transform(TEXTS)
    transformer.fit(["plum pear", "plum pear"])
    assert transformer.transform(["plum", "apple"])["words"].nnz == 1


def test_views_are_fitted_first():
    with pytest.raises(NotFittedError, match="views must be fitted first"):
        ViewTransformer([WORDS]).transform(TEXTS)


def test_errors_of_features_are_those_of_views():
    with pytest.raises(DataError, match="row 1 is of type NoneType"):
        ViewTransformer([WORDS]).fit(["red", None])
    with pytest.raises(ParameterError, match="ngrams of tfidf must be one of 1, 2, 3, but is 9"):
        ViewTransformer([View("words", "tfidf", {"ngrams": 9})]).fit(TEXTS)


def test_embeddings_are_a_view_without_its_extra():
    assert EMBEDDINGS.create().get_params() == {"encoder": "granite", "batch_size": 64}


# ---- raw texts


def test_raw_texts_are_checked_and_left_as_they_are(tmp_path):
    features = RawText().fit(TEXTS)
    assert features.n_features == 0
    assert features.is_fitted
    assert features.transform(TEXTS) is TEXTS
    assert features.fit_transform(iter(TEXTS)) == TEXTS
    assert saved_and_loaded(features, tmp_path).transform(["red"]) == ["red"]


@pytest.mark.parametrize("call", [RawText().fit, RawText().transform, RawText().fit_transform])
def test_anything_but_texts_is_refused(call):
    with pytest.raises(DataError, match="give a list of texts"):
        call("one text")
    with pytest.raises(DataError, match="row 1 is of type int"):
        call(["red", 1])


def test_unit_rows_are_not_normalized_again_and_rows_of_them_neither():
    views = ViewTransformer([WORDS]).fit_transform(["red apple", "green apple", "red"])
    X = views["words"]
    assert normalize_rows(X) is X
    some = views.rows([0, 2])["words"]
    assert normalize_rows(some) is some
    twice = sp.csr_matrix(2 * X.toarray())
    assert np.allclose(normalize_rows(twice).toarray(), X.toarray())
    assert np.allclose(twice.toarray(), 2 * X.toarray()), "the given matrix is left as it is"


def test_views_that_a_method_did_not_choose_are_dropped():
    texts = ["red apple", "green apple", "red apple pie"]
    transformer = ViewTransformer([WORDS, BIGRAMS, TEXT])
    transformer.fit_transform(texts)
    transformer.keep({"bigrams"})
    assert list(transformer.transform(texts).tables) == list(transformer.features_) == ["bigrams"]
    alike = ViewTransformer(override([WORDS, BIGRAMS], None, {"ngrams": 1}, "any"))
    alike.fit_transform(texts)
    alike.keep({"bigrams"})
    assert list(alike.transform(texts).tables) == ["bigrams"]
    alike.check_state()
