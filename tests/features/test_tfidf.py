"""Tfidf against scikit-learn in all settings, and the contract: one by one, saved and loaded, on several threads."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from labelspace.errors import DataError, NotFittedError, ParameterError
from labelspace.features import Tfidf, tokenizer
from labelspace.features import vocabulary as vocabulary_module
from labelspace.features.vocabulary import TokenStream, count_ngrams
from tests.features.saving import saved_and_loaded
from tests.features.word_twin import normalize, words

# Lower case that depends on neighbors (Σ), digits of other scripts, spaces, controls, surrogates.
SPACED = "abAB_1é ßΣσ٣я𐐀𝒳\u200d\x00\x1c\t\n\u2003-.,\ud800"
LETTERS = SPACED + "İ日本のไทยि\u0301\u0e34"  # and what scikit-learn reads in other ways
TEXT = st.text(LETTERS, max_size=60) | st.text(st.characters(exclude_categories=()), max_size=30)


def corpus(n=150, seed=0, letters=LETTERS):
    rng = random.Random(seed)
    texts = ["".join(rng.choice(letters) for _ in range(rng.randrange(90))) for _ in range(n)]
    return ["", *texts, " \n", "Red apple, RED Apple; red_apple", "ab ab ab ba ba ab"]


def pair(plain=False, **params):
    """Our features and scikit-learn's of the same settings; unless ``plain``, with our normalization and words."""
    ours = Tfidf(**params)
    word = ours.analyzer == "word"
    twin = {"tokenizer": words, "token_pattern": None} if word else {}
    theirs = TfidfVectorizer(
        **({} if plain else {"preprocessor": normalize, "lowercase": False, **twin}),
        analyzer=ours.analyzer,
        ngram_range=(1, ours.ngrams) if word else (ours.min_n, ours.max_n),
        sublinear_tf=ours.sublinear,
        min_df=ours.min_df,
        dtype=np.float64,
    )
    return ours, theirs


def assert_equal(ours, theirs):
    assert ours.shape == theirs.shape
    assert ours.dtype == np.float32
    np.testing.assert_array_equal(ours.indptr, theirs.indptr)
    theirs.sort_indices()
    np.testing.assert_array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.data, theirs.data, rtol=5e-7)


def assert_same_bytes(a, b):
    assert a.shape == b.shape
    for part in ("data", "indices", "indptr"):
        assert getattr(a, part).tobytes() == getattr(b, part).tobytes()


@pytest.mark.parametrize("sublinear", [True, False])
@pytest.mark.parametrize("min_df", [1, 2, 5])
@pytest.mark.parametrize("ngrams", [1, 2, 3])
def test_word_ngrams_equal_scikit_learn(ngrams, min_df, sublinear):
    texts, unseen = corpus(), corpus(seed=1)
    ours, theirs = pair(ngrams=ngrams, min_df=min_df, sublinear=sublinear)
    assert_equal(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert ours.feature_names() == theirs.get_feature_names_out().tolist()
    assert_equal(ours.transform(unseen), theirs.transform(unseen))


@pytest.mark.parametrize("params", [{"ngrams": 2}, {"analyzer": "char"}, {"analyzer": "char_wb"}])
def test_texts_of_scripts_with_spaces_and_without_marks_are_read_as_by_scikit_learn(params):
    texts, unseen = corpus(letters=SPACED), corpus(seed=1, letters=SPACED)
    ours, theirs = pair(plain=True, min_df=1, **params)
    assert_equal(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert_equal(ours.transform(unseen), theirs.transform(unseen))


def test_accents_are_stripped_as_by_scikit_learn():
    texts = ["Perché la città è così", "perche la citta e cosi", "Ñandú ø ß straße"]
    ours = Tfidf(ngrams=1, min_df=1, strip_accents="unicode")
    theirs = TfidfVectorizer(strip_accents="unicode", sublinear_tf=True, dtype=np.float64)
    assert_equal(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert ours.feature_names() == theirs.get_feature_names_out().tolist()


@pytest.mark.parametrize("analyzer", ["char", "char_wb"])
@pytest.mark.parametrize(("min_n", "max_n"), [(1, 1), (1, 3), (3, 5), (6, 9)])
def test_character_ngrams_equal_scikit_learn(analyzer, min_n, max_n):
    texts, unseen = corpus(), corpus(seed=1)
    ours, theirs = pair(analyzer=analyzer, min_n=min_n, max_n=max_n, min_df=1)
    assert_equal(ours.fit_transform(texts), theirs.fit_transform(texts))
    assert ours.feature_names() == theirs.get_feature_names_out().tolist()
    assert_equal(ours.transform(unseen), theirs.transform(unseen))


@settings(deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=6), st.lists(TEXT, max_size=3), st.sampled_from(["word", "char", "char_wb"]))
def test_any_text_equals_scikit_learn(texts, unseen, analyzer):
    ours, theirs = pair(analyzer=analyzer, min_df=1)
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:
        with pytest.raises(DataError, match="lower min_df"):
            ours.fit(texts)
        return
    assert_equal(ours.fit_transform(texts), expected)
    assert ours.feature_names() == theirs.get_feature_names_out().tolist()
    if unseen:
        assert_equal(ours.transform(unseen), theirs.transform(unseen))


@pytest.mark.parametrize("ngrams", [1, 2, 3])
def test_max_features_keeps_what_occurs_most(ngrams):
    texts = corpus(letters="abc ")
    full = TfidfVectorizer(ngram_range=(1, ngrams), min_df=2, sublinear_tf=True)
    counts = TfidfVectorizer(ngram_range=(1, ngrams), min_df=2, use_idf=False, norm=None).fit_transform(texts).sum(0).A1
    names = full.fit(texts).get_feature_names_out()
    for limit in (1, 7, 40, len(names), len(names) + 1):
        kept = sorted(sorted(range(len(names)), key=lambda i: (-counts[i], names[i]))[:limit])
        ours = Tfidf(ngrams=ngrams, max_features=limit)
        X = ours.fit_transform(texts)
        assert ours.feature_names() == names[kept].tolist()
        theirs = TfidfVectorizer(vocabulary=names[kept], ngram_range=(1, ngrams), sublinear_tf=True)
        assert_equal(X, theirs.fit_transform(texts))
        assert_same_bytes(X, ours.transform(texts))


def test_a_bigram_with_a_column_may_have_a_word_without_one():
    texts = ["zz yy", "zz yy", "zz xx", "zz xx", "aa aa aa"]
    features = Tfidf(max_features=3, min_df=1).fit(texts)
    assert features.feature_names() == ["aa", "aa aa", "zz"]
    features = Tfidf(max_features=3, min_df=2).fit(texts)
    assert features.feature_names() == ["xx", "yy", "zz"]
    features = Tfidf(max_features=2, min_df=1).fit(["aa zz", "aa zz"])
    assert features.feature_names() == ["aa", "aa zz"]
    assert features.transform(["aa zz", "zz"]).toarray().tolist() == pytest.approx(
        np.array([[0.5**0.5, 0.5**0.5], [0, 0]])
    )


@pytest.mark.parametrize("params", [{}, {"ngrams": 1}, {"ngrams": 3, "max_features": 50}, {"analyzer": "char_wb"}])
class TestContract:
    def test_fit_then_transform_is_fit_transform(self, params):
        texts = corpus()
        X = Tfidf(**params).fit_transform(texts)
        assert_same_bytes(Tfidf(**params).fit(texts).transform(texts), X)
        assert X.indices.dtype == np.int32
        assert X.has_canonical_format

    def test_one_by_one_is_all_at_once(self, params):
        texts = corpus()
        features = Tfidf(**params).fit(texts)
        X = features.transform(texts)
        for row, text in enumerate(texts):
            assert_same_bytes(features.transform([text]), X[row])

    def test_blocks_and_threads_change_nothing(self, params, monkeypatch):
        texts = corpus()
        X = Tfidf(**params).fit_transform(texts)
        monkeypatch.setattr(tokenizer, "BLOCK", 300)
        monkeypatch.setattr(vocabulary_module, "_PART_SIZE", 100)
        for threads in "12":
            monkeypatch.setenv("LABELSPACE_THREADS", threads)
            features = Tfidf(**params)
            assert_same_bytes(features.fit_transform(texts), X)
            assert_same_bytes(features.transform(texts), X)

    def test_saved_and_loaded(self, params, tmp_path):
        texts = corpus()
        features = Tfidf(**params).fit(texts)
        loaded = saved_and_loaded(features, tmp_path)
        assert_same_bytes(loaded.transform(texts), features.transform(texts))
        assert loaded.feature_names() == features.feature_names()
        assert loaded.n_features == features.n_features

    def test_a_new_fit_forgets_the_old(self, params):
        texts, others = corpus(), corpus(seed=1)
        features = Tfidf(**params).fit(others)
        features.transform(others)
        assert_same_bytes(features.fit(texts).transform(texts), Tfidf(**params).fit_transform(texts))


def test_texts_without_known_words_are_empty_rows():
    features = Tfidf(min_df=1).fit(["red apple"])
    assert features.transform(["", "!", "green pear"]).nnz == 0
    assert features.transform([]).shape == (0, 3)
    assert features.transform(iter(["red", "apple"])).shape == (2, 3)
    assert features.transform(np.array(["red", "apple"])).nnz == 2


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ("one text", "give a list of texts"),
        ([], "at least one text, but there are 0"),
        (["fine", None], "row 1 is of type NoneType"),
        (["fine", "fine", b"bytes"], "row 2 is of type bytes"),
        (["", "a b c"], "at least min_df=2 texts, but of these 2 none does; lower min_df"),
    ],
)
def test_a_fit_that_fails_gives_the_reason(texts, words):
    with pytest.raises(DataError, match=words):
        Tfidf().fit(texts)
    with pytest.raises(DataError, match=words):
        Tfidf().fit_transform(texts)


@pytest.mark.parametrize("texts", ["one text", [1]])
def test_a_transform_that_fails_gives_the_reason(texts):
    with pytest.raises(DataError, match=r"a list of texts|row 0 is of type int"):
        Tfidf(min_df=1).fit(["red apple"]).transform(texts)


@pytest.mark.parametrize(
    "params",
    [
        {"ngrams": 4},
        {"ngrams": 0},
        {"analyzer": "words"},
        {"min_df": 0},
        {"max_features": 0},
        {"min_n": 0},
        {"min_n": 6},
    ],
)
def test_parameters_are_checked(params):
    with pytest.raises(ParameterError, match=next(iter(params))):
        Tfidf(**params).fit(["red apple"])


def test_fit_comes_first():
    with pytest.raises(NotFittedError):
        Tfidf().transform(["red apple"])
    with pytest.raises(NotFittedError):
        Tfidf().n_features  # noqa: B018 - the property itself raises


def test_too_many_words_for_trigrams_are_refused():
    ones, empty = np.ones(2_100_000, np.int64), np.empty(0, np.int32)
    with pytest.raises(DataError, match="raise min_df, or lower ngrams"):
        count_ngrams(TokenStream(empty, empty, np.empty(0, np.int64)), ones, ones, 3, 1)
