"""Where columns come from in the raw text."""

import numpy as np
import pytest

from labelspace.features import Hashing, Tfidf
from labelspace.features.base import Features
from labelspace.features.tokenizer import Analyzer
from tests.features.word_twin import normalize

TEXTS = [
    "Red apple, red APPLE!",
    "İstanbul'da \t  güzel\nçaylar  İİ",
    "日本 の 寿司 straße ΑΣ ΑΣ\u0301 𐐀𐐀 x_1",
    "  tabs\tand   runs \n of  spaces ",
    "running runs run ran; the runner ran",
    "図書館の歴史とPython入門 हिन्दी cafe\u0301",
    "a",
    "é",
    "",
]
FEATURES = {
    "words": Tfidf(min_df=1),
    "trigrams": Tfidf(ngrams=3, min_df=1),
    "stems": Tfidf(ngrams=2, min_df=1, stemming="english"),
    "accents": Tfidf(ngrams=2, min_df=1, strip_accents="unicode"),
    "char": Tfidf(analyzer="char", min_n=2, max_n=4, min_df=1),
    "char_wb": Tfidf(analyzer="char_wb", min_n=2, max_n=5, min_df=1),
    "hashing": Hashing(ngrams=2, bits=16),
    "hashed words": Hashing(ngrams=1, bits=16, idf=False),
}


@pytest.fixture(params=FEATURES)
def features(request) -> Features:
    return FEATURES[request.param].fit(TEXTS)


def is_of_characters(features):
    return getattr(features, "analyzer", "word") != "word"


@pytest.mark.parametrize("text", [*TEXTS, "green apple  and İstanbul çay", "\u0130", "𐐀𐐀 straße\u2003x"])
def test_occurrences_are_all_columns_of_the_text(features, text):
    found = features.occurrences(text)
    assert sorted(set(found.columns.tolist())) == features.transform([text]).indices.tolist()
    assert ((found.starts >= 0) & (found.starts < found.stops) & (found.stops <= len(text))).all()


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_of_an_occurrence_has_its_column(features, text):
    found = features.occurrences(text)
    for column, start, stop in zip(*map(np.ndarray.tolist, found), strict=True):
        part = text[start:stop]
        if is_of_characters(features) and "Σ" in part:
            continue  # lowered by its place in the word, which is not in the part
        assert column in features.transform([part]).indices, (part, start, stop)


def test_a_word_occurs_as_often_as_the_text_has_it():
    features = Tfidf(ngrams=2, min_df=1).fit(TEXTS)
    text = "Red apple; APPLE red apple"
    found, names = features.occurrences(text), features.feature_names()
    spans = sorted((names[c], text[a:b]) for c, a, b in zip(*found, strict=True))
    assert spans == [
        ("apple", "APPLE"), ("apple", "apple"), ("apple", "apple"), ("apple red", "APPLE red"), ("red", "Red"),
        ("red", "red"), ("red apple", "Red apple"), ("red apple", "red apple"),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["word", "char", "char_wb"])
@pytest.mark.parametrize(
    "text", [*TEXTS, "\t\t", " \u0130 ", "e\u0301e \u1100\u1161\u11a8 ÅO\u0304\u0302 \u2adc\u2000"]
)
def test_each_place_has_the_characters_that_its_span_encodes(kind, text):
    analyzer = Analyzer(kind, 1, 3, min_word_length=1)
    spans = analyzer.find([text])
    starts, stops = analyzer.character_spans(text, spans)
    for i, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        encoded = spans.text[spans.starts[i] : spans.stops[i]].tobytes().decode("utf-8", "surrogatepass")
        raw = normalize(text[start:stop])
        # an n-gram of characters may have a part of what is composed to one, or the space before the first word
        same = encoded == raw if kind == "word" else " ".join(encoded.split()) in " ".join(raw.split())
        assert same or "Σ" in text[start:stop], (encoded, raw)


def test_a_word_in_pieces_is_found_whole():
    text = "Un cafe\u0301, 図書館の"
    features = Tfidf(ngrams=1, min_df=1, strip_accents="unicode").fit(["café 図書館"])
    found, names = features.occurrences(text), features.feature_names()
    shown = [(names[column], text[start:stop]) for column, start, stop in zip(*found, strict=True)]
    assert shown == [("cafe", "cafe\u0301"), ("図書", "図書"), ("書館", "書館")]
