"""Blend on texts of an inflected language: Finnish titles made of nouns that have ten forms each."""

import numpy as np
import pytest

import labelspace
from labelspace.features.views import TEXT
from labelspace.models.blend.members import WIDE_VIEWS, member_view, wide_view, word_view
from labelspace.tagger import Tagger

NOUNS = (
    "matkailu palvelu kilpailu urheilu opiskelu retkeily pyöräily viljely neuvottelu keskustelu esittely käsittely "
    "taistelu ajattelu suunnittelu näyttely koulu laulu museo kirjasto radio studio"
).split()
CASES = ("", "n", "t", "ssa", "sta", "lla", "lle", "issa", "ista", "ksi")
FRAMES = ("{} ja sen historia", "millainen on {} Suomessa", "{} sekä muut", "tutkimus: {} ei ole se mikä oli")


def inflected(noun, case):
    """The noun in a case, by vowel harmony."""
    is_front = not set(noun) & set("aou")
    return noun + (case.replace("a", "ä") if is_front else case)


def documents(cases):
    """Every noun in these cases, each in a sentence; the label is a number, so that names do not help."""
    pairs = [(i, inflected(noun, case)) for i, noun in enumerate(NOUNS) for case in cases]
    texts = [FRAMES[at % len(FRAMES)].format(form) for at, (_, form) in enumerate(pairs)]
    return texts, [[f"label {i}"] for i, _ in pairs]


def share_right(tagger, texts, labels):
    return np.mean([tagger.tag(text, k=1)[0][0] == names[0] for text, names in zip(texts, labels, strict=True)])


@pytest.fixture(scope="module")
def train():
    return documents(CASES[:5])


def test_the_right_stemmer_is_better_than_the_english_one(train):
    unseen = documents(CASES[5:])
    finnish, english = (
        Tagger(members="neighbors:stems,label_tree:stems", language=language).fit(*train)
        for language in ("auto", "english")
    )
    assert finnish.model.report()["language"] == "finnish (detected)"
    assert english.model.report()["language"] == "english (given)"
    assert share_right(finnish, *unseen) > 0.9
    assert share_right(english, *unseen) < 0.5


def test_members_read_stems_where_the_language_has_some(train, tmp_path):
    tagger = Tagger(effort="fast").fit(*train)
    assert tagger.model.member_views_ == ["stems", "stems", TEXT.name]
    assert [member.language for member in tagger.model.members_ if member.name == "lexical"] == ["finnish"]
    tagger.save(tmp_path / "model")
    loaded = labelspace.load(tmp_path / "model")
    assert loaded.tag(train[0][0]) == tagger.tag(train[0][0])
    assert loaded.model.report() == tagger.model.report()


def test_texts_are_not_kept_as_a_view_where_they_only_tell_the_language(train):
    tagger = Tagger(members="neighbors:stems").fit(*train)
    assert tagger.model.language_ == "finnish"
    assert set(tagger.model.widths_) == {"stems"}


def test_english_and_unknown_texts_have_the_views_of_words():
    for texts in (["How to bake the bread of the house"] * 9, ["qwrt plmk bvcx"] * 9):
        tagger = Tagger(members=None, effort="fast").fit(texts, [["a"], ["b"], ["c"]] * 3)
        assert tagger.model.member_views_[0] == "words"
    assert word_view("japanese") == "words"


def test_views_of_stems_are_as_those_of_words():
    assert wide_view(["short"], "stems") == "stems+chars"
    assert wide_view(["long " * 100], "stems") == "stem_bigrams"
    assert wide_view([""] * 100_001, "stems") == "stems"
    assert WIDE_VIEWS.keys() == {"words", "stems"}
    finnish, italian = member_view("stems", 10, "finnish"), member_view("stem_bigrams", 20_000, "italian")
    assert repr(finnish.create()) == "Tfidf(ngrams=1, min_df=1, stemming='finnish')"
    assert repr(italian.create()) == "Tfidf(min_df=5, stemming='italian', strip_accents='unicode')"
    assert member_view("stems", 100, "thai").create().get_params()["stemming"] == "none"
