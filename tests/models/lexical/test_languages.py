"""Label names in texts of many languages, without training documents and with some."""

import json

import numpy as np
import pytest

import labelspace
from labelspace.errors import ParameterError
from labelspace.models.lexical.model import Lexical
from labelspace.models.lexical.phrases import WordStems
from labelspace.store.model_folder import sealed
from labelspace.tagger import Tagger
from labelspace.types import LabelSpace


def tagger_of(names, **params):
    return Tagger("lexical", **params).fit_labels(LabelSpace(names))


def found(names, text, **params):
    return {name for name, _ in tagger_of(names, **params).tag(text)}


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        ("kirjastot|Suomi|museot", "suomen kirjastoissa", "kirjastot|Suomi"),
        ("библиотека|музей", "в библиотеке", "библиотека"),
        ("библиотеки|музеи", "в библиотеке", "библиотеки"),
        ("図書館|歴史|文学", "図書館の歴史", "図書館|歴史"),
        ("图书馆|历史", "图书馆历史研究", "图书馆|历史"),
        ("ห้องสมุด|ประวัติศาสตร์", "ประวัติศาสตร์ห้องสมุดไทย", "ห้องสมุด|ประวัติศาสตร์"),
        ("पुस्तकालय|इतिहास", "पुस्तकालयों का इतिहास", "पुस्तकालय|इतिहास"),
        ("βιβλιοθήκες|μουσεία", "ΙΣΤΟΡΙΑ ΤΗΣ ΒΙΒΛΙΟΘΗΚΗΣ", "βιβλιοθήκες"),
        ("βιβλιοθήκη（δημόσια）|μουσείο", "των βιβλιοθηκών", "βιβλιοθήκη（δημόσια）"),
    ],
)
def test_names_are_found_in_their_forms(names, text, expected):
    assert found(names.split("|"), text) == set(expected.split("|"))


@pytest.mark.parametrize(
    ("language", "name", "texts"),
    [
        ("fi", "kaupungit", ["Kaupungissa", "kaupunkien", "kaupunki"]),
        ("fi", "nainen", ["naiset", "naisen", "naisia"]),
        ("fi", "tutkimus", ["tutkimukset", "tutkimuksen", "tutkimuksia"]),
        ("fi", "lehti", ["lehden", "lehdet", "lehtiä"]),
        ("it", "biblioteche", ["la biblioteca"]),
        ("it", "città", ["le citta", "LA CITTÀ", "cittá"]),
        ("es", "educación", ["las educaciones", "EDUCACIÓN"]),
        ("fr", "bibliothèques", ["la bibliotheque", "une bibliothèque"]),
        ("de", "Bücher", ["bücher", "Büchern"]),
        ("sv", "böcker", ["böckerna"]),
    ],
)
def test_every_form_of_a_name_is_found(language, name, texts):
    for text in texts:
        assert found([name, "x"], text, language=language) == {name}, text


def test_letters_are_no_accents_where_they_are_other_letters():
    assert found(["sää", "saa"], "sää", language="finnish") == {"sää"}
    assert found(["sää", "saa"], "sää", language="finnish", strip_accents="unicode") == {"sää", "saa"}
    assert found(["città"], "citta", language="italian", strip_accents="none", stemming="none") == set()
    assert found(["crème"], "creme", language="english", strip_accents="unicode") == {"crème"}


def test_stems_can_be_left_out_and_forms_rank_first():
    names = ["kirjasto", "kirjastot"]
    assert found(names, "kirjastot", language="fi", stemming="none") == {"kirjastot"}
    ranked = tagger_of(names, language="fi").tag("kirjastot")
    assert ranked[0][0] == "kirjastot"
    assert ranked[0][1] > ranked[1][1]


def test_the_language_is_that_of_the_training_texts_and_is_told(tmp_path):
    texts = ["Kirjastojen historia ja nykypäivä", "Koulu on lähellä", "Museot sekä kirjastot", "Museoissa on tauluja"]
    labels = [["kirjastot"], ["koulut"], ["museot", "kirjastot"], ["museot"]]
    tagger = Tagger("lexical").fit(texts, labels)
    assert tagger.model.language_ == "finnish"
    assert tagger.model.report() == {"language": "finnish (detected)"}
    assert {name for name, _ in tagger.tag("kouluissa ja museossa")} == {"koulut", "museot"}
    tagger.save(tmp_path / "model")
    loaded = labelspace.load(tmp_path / "model")
    assert loaded.model.report() == tagger.model.report()
    assert loaded.tag("kouluissa ja museossa") == tagger.tag("kouluissa ja museossa")
    given = Tagger("lexical", language="sv").fit(texts, labels)
    assert given.model.report() == {"language": "swedish (given)"}


def test_a_model_saved_before_there_were_languages_has_its_english_stems(tmp_path):
    tagger = tagger_of(["baking", "bread"], stemming="english")
    tagger.save(tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    manifest = json.loads(path.read_text())
    for key in ("language", "strip_accents"):
        del manifest["model"]["params"][key]
    for key in ("language_", "language_share_"):
        del manifest["model"]["state"][key]
    path.write_text(json.dumps(sealed(manifest)))
    assert labelspace.load(tmp_path / "model").tag("baked breads") == tagger.tag("baked breads")


@pytest.mark.parametrize(
    ("names", "text", "label", "parts"),
    [
        (["図書館", "歴史"], "日本の図書館。", "図書館", ["図書館"]),
        (["Suomi", "kirjastot"], "Suomen kirjastoissa", "kirjastot", ["kirjastoissa"]),
        (["università"], "L'universita\u0300 e la universita", "università", ["universita\u0300", "universita"]),
        (["हिन्दी साहित्य", "कविता"], "यह हिन्दी साहित्य है", "हिन्दी साहित्य", ["हिन्दी साहित्य"]),
    ],
)
def test_explanations_show_the_text_as_it_is_written(names, text, label, parts):
    model = tagger_of(names, language="it" if "università" in names else "auto").model
    evidence = model.explain([text], np.array([names.index(label)], np.int32))
    assert [text[phrase.start : phrase.stop] for phrase in evidence[0].phrases] == parts


def test_unknown_languages_are_refused():
    with pytest.raises(ParameterError, match="language of lexical must be auto"):
        Lexical(language="klingon").fit_labels(LabelSpace(["a"]))


@pytest.mark.parametrize("stems", [WordStems("finnish"), WordStems("english", "unicode"), WordStems("none", "unicode")])
def test_each_word_has_the_stem_that_it_has_alone(stems):
    texts = ["Kirjastot, kirjastoissa", "", "crème CRÈME baking x" + "y" * 80, "\ud800 図書館"]
    hashes, forms, ends = stems.read(texts)
    words = [word for text in texts for word in text.replace(",", "").replace("図書館", "図書 書館").split()]
    assert ends.tolist() == [2, 2, 6, 8]
    alone = [stems.read([word]) for word in words if word != "\ud800"]
    assert hashes.tolist() == [int(stem[0]) for stem, _, _ in alone]
    assert forms.tolist() == [int(form[0]) for _, form, _ in alone]
