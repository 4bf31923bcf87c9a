import numpy as np
import pytest

from labelspace.explain.explainer import ColumnSpans, TextWords
from labelspace.features import Tfidf
from labelspace.features.base import Occurrences
from labelspace.models.evidence import ColumnShares, PhraseShare

TEXTS = ["Bake a rye bread; the rye dough", "İstanbul'da çay — 日本 x", "one", "", "…"]


def spans(*rows):
    return ColumnSpans.of(Occurrences(*(np.array(values, np.int64) for values in zip(*rows, strict=True))))


def shares_of(text, parts, phrases=()):
    words = TextWords.of(text)
    found = words.shares(parts, phrases)
    return {text[a:b]: s for a, b, s in zip(words.starts, words.stops, found, strict=True)}


@pytest.mark.parametrize("text", TEXTS)
def test_words_and_letters(text):
    words = TextWords.of(text)
    is_letter = [any(a <= i < b for a, b in zip(words.starts, words.stops, strict=True)) for i in range(len(text))]
    assert words.letters.tolist() == [sum(is_letter[:i]) for i in range(len(text) + 1)]
    assert all(c.isalnum() or c == "_" for c, own in zip(text, is_letter, strict=True) if own)


def test_an_n_gram_is_shared_by_its_letters():
    text = "rye bread, dough"
    found = spans((0, 0, 9), (1, 8, 13), (2, 11, 16))  # "rye bread", "d, do", "dough"
    shares = shares_of(text, [(found, ColumnShares(np.array([0, 1, 2, 9]), np.array([8.0, 3.0, -5.0, 7.0])))])
    assert shares == pytest.approx({"rye": 3.0, "bread": 5.0 + 1.0, "dough": 2.0 - 5.0})  # column 9 is nowhere


def test_occurrences_of_a_column_have_equal_parts_and_columns_add_up():
    found = spans((4, 0, 3), (4, 8, 11), (2, 4, 7))
    columns = ColumnShares(np.array([4, 2, 4]), np.array([1.0, 5.0, 2.0]))
    assert found.shares(columns).tolist() == [1.5, 1.5, 5.0]
    assert spans((4, 0, 3)).shares(ColumnShares(np.zeros(0, np.int32), np.zeros(0))).tolist() == [0.0]


def test_views_and_phrases_add_up():
    text = "rye bread"
    one = (spans((0, 0, 3)), ColumnShares(np.array([0]), np.array([1.0])))
    other = (spans((0, 4, 9)), ColumnShares(np.array([0]), np.array([2.0])))
    phrase = PhraseShare(0, 9, "name", 16.0)
    assert shares_of(text, [one, other], [phrase]) == pytest.approx({"rye": 1.0 + 6.0, "bread": 2.0 + 10.0})
    assert shares_of("…", [], []) == {}


@pytest.mark.parametrize("analyzer", ["word", "char", "char_wb"])
@pytest.mark.parametrize("text", TEXTS[:3])
def test_nothing_is_lost_but_what_has_no_letters(analyzer, text):
    features = Tfidf(analyzer=analyzer, ngrams=2 if analyzer == "word" else 1, min_n=2, max_n=4, min_df=1)
    features.fit([text, "two words"])
    row = features.transform([text])
    shares = np.random.default_rng(0).standard_normal(row.nnz)
    words, found = TextWords.of(text), ColumnSpans.of(features.occurrences(text))
    by_word = words.shares([(found, ColumnShares(row.indices, shares))], [])
    lettered = words.letters[found.stops] > words.letters[found.starts]
    kept = found.shares(ColumnShares(row.indices, shares))[lettered].sum()
    assert by_word.sum() == pytest.approx(kept)
    if analyzer == "word":
        assert kept == pytest.approx(shares.sum())


def test_the_span_of_a_column_is_where_it_occurs_first():
    found = spans((4, 0, 3), (4, 8, 11), (2, 4, 7))
    assert [found.first(column) for column in (4, 2, 3, 9)] == [(0, 3), (4, 7), None, None]
