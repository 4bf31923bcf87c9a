"""Stems of words: Tfidf with stemming against Tfidf of texts that were stemmed before."""

import re

import numpy as np
import pytest
import snowballstemmer

from labelspace.errors import ModelError, ParameterError
from labelspace.features import Tfidf
from labelspace.features.stems import LANGUAGES, MAX_BYTES, stem, stemming_language
from labelspace.features.views import STEM_BIGRAMS, STEMS
from tests.features.saving import saved_and_loaded

TEXTS = [
    "Baking bread with baked berries",
    "The berry bakes: cutting, cuts and cut bread",
    "Grilled fish, grilling fishes",
    "bread of the fisher",
    "",
]
UNSEEN = ["bakings of fished berrying", "unknownish words", "", "bread bread breads"]


def stemmed(texts):
    """The texts with stems in place of words."""
    by = snowballstemmer.stemmer("english")
    return [" ".join(by.stemWord(word) for word in re.findall(r"\w\w+", text.lower())) for text in texts]


def same(a, b):
    return a.shape == b.shape and all(
        np.array_equal(getattr(a, part), getattr(b, part)) for part in ("data", "indices", "indptr")
    )


@pytest.mark.parametrize("min_df", [1, 2])
@pytest.mark.parametrize("ngrams", [1, 2])
@pytest.mark.parametrize("max_features", [None, 4])
def test_stemming_is_tfidf_of_stemmed_texts(ngrams, min_df, max_features):
    ours = Tfidf(ngrams=ngrams, min_df=min_df, max_features=max_features, stemming="english")
    theirs = Tfidf(ngrams=ngrams, min_df=min_df, max_features=max_features)
    assert same(ours.fit_transform(TEXTS), theirs.fit_transform(stemmed(TEXTS)))
    assert ours.feature_names() == theirs.feature_names()
    assert same(ours.transform(TEXTS), theirs.transform(stemmed(TEXTS)))
    assert same(ours.transform(UNSEEN), theirs.transform(stemmed(UNSEEN))), "words that training texts do not have"


def test_stems_are_saved_with_the_forms(tmp_path):
    features = Tfidf(ngrams=1, min_df=1, stemming="english").fit(TEXTS)
    loaded = saved_and_loaded(features, tmp_path)
    assert same(loaded.transform(TEXTS + UNSEEN), features.transform(TEXTS + UNSEEN))


def test_forms_and_stemming_go_together(tmp_path):
    features = Tfidf(ngrams=1, min_df=1, stemming="english").fit(TEXTS)
    features.forms_ = None
    with pytest.raises(ModelError, match="forms of words"):
        saved_and_loaded(features, tmp_path)


def test_characters_are_not_stemmed():
    plain, asked = (Tfidf(analyzer="char", stemming=language, min_df=1) for language in ("none", "english"))
    assert same(plain.fit_transform(TEXTS), asked.fit_transform(TEXTS))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_a_stemmer(language):
    assert stem("Straßen".lower().encode(), language)
    assert stem(b"", language) == b""


def test_words_of_many_bytes_stay():
    assert stem(b"x" * MAX_BYTES + b"ing", "english") == b"x" * MAX_BYTES + b"ing"
    assert stem("\ud800ing".encode("utf-8", "surrogatepass"), "english")


def test_an_unknown_language_is_refused():
    with pytest.raises(ParameterError, match="stemming"):
        Tfidf(stemming="klingon").fit(TEXTS)


def test_views_of_stems():
    assert repr(STEMS.create()) == "Tfidf(ngrams=1, stemming='auto')"
    assert repr(STEM_BIGRAMS.create()) == "Tfidf(stemming='auto')"


def test_auto_takes_the_language_of_the_texts(tmp_path):
    texts = ["Kirjastot ja koulut", "Kirjastoissa on kirjoja", "Koulussa sekä kirjastossa"]
    features = Tfidf(ngrams=1, min_df=1, stemming="auto").fit(texts)
    assert features.stemming_ == "finnish"
    given = Tfidf(ngrams=1, min_df=1, stemming="finnish").fit(texts)
    assert features.feature_names() == given.feature_names()
    loaded = saved_and_loaded(features, tmp_path)
    unseen = ["kirjastoista", "kouluihin"]
    assert same(loaded.transform(unseen), given.transform(unseen))
    assert loaded.transform(unseen).getnnz(axis=1).all()


def test_auto_is_english_where_texts_do_not_tell():
    features = Tfidf(ngrams=1, min_df=1, stemming="auto").fit(["xyz baking", "qrs baked"])
    assert features.feature_names() == ["bake", "qrs", "xyz"]


def test_accents_are_stripped_from_stems(tmp_path):
    features = Tfidf(ngrams=1, min_df=1, stemming="spanish", strip_accents="unicode").fit(["educación pública", "más"])
    assert features.feature_names() == ["educ", "mas", "public"]
    assert same(features.transform(["educaciones publicas mas"]), features.transform(["educación pública más"]))
    loaded = saved_and_loaded(features, tmp_path)
    assert same(loaded.transform(["mas público"]), features.transform(["mas público"]))


@pytest.mark.parametrize(
    ("language", "stems"), [("finnish", "finnish"), ("thai", "none"), ("unknown", "english"), ("english", "english")]
)
def test_languages_without_a_stemmer_have_no_stems(language, stems):
    assert stemming_language(language) == stems
