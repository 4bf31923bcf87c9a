"""The language of texts, by sentences written for this."""

import pytest

from labelspace.errors import ParameterError
from labelspace.features.language import AUTO, LANGUAGE, NAMES, UNKNOWN, detect_language, language_name, language_of
from labelspace.features.stems import LANGUAGES

SENTENCES = {
    "english": ["A short history of bread", "How to repair the roof of an old house", "Rivers and lakes in winter"],
    "finnish": ["Vanhan talon katon korjaaminen ja huolto", "Leipä on ollut tärkeä ruoka", "Joet sekä järvet talvella"],
    "italian": [
        "Breve storia del pane",
        "Come riparare il tetto di una vecchia casa",
        "I fiumi e i laghi nell'inverno",
    ],
    "french": [
        "Une courte histoire du pain",
        "Comment réparer le toit d'une vieille maison",
        "Les lacs et les rivières",
    ],
    "german": [
        "Eine kurze Geschichte des Brotes",
        "Wie man das Dach eines Hauses repariert",
        "Flüsse und Seen im Winter",
    ],
    "spanish": [
        "Breve historia del pan",
        "Cómo reparar el techo de una casa vieja",
        "Los ríos y los lagos en invierno",
    ],
    "portuguese": [
        "Uma breve história do pão",
        "Como consertar o telhado de uma casa",
        "Os rios e os lagos no inverno",
    ],
    "swedish": ["Brödets historia och framtid", "Att laga taket på ett gammalt hus", "Sjöar och floder är frusna"],
    "dutch": ["Een korte geschiedenis van het brood", "Hoe men het dak van een huis herstelt", "Meren en rivieren"],
    "polish": ["Krótka historia chleba oraz piekarzy", "Jak naprawić dach na starym domu", "Rzeki i jeziora są zimą"],
    "hungarian": ["A kenyér rövid története", "Hogyan kell egy régi ház tetejét javítani", "Folyók és tavak télen"],
    "turkish": ["Ekmeğin kısa bir tarihi", "Eski bir evin çatısı için onarım", "Kışın göller ve nehirler"],
    "russian": ["Краткая история хлеба", "Как чинить крышу старого дома", "Реки и озёра в зимнее время"],
    "ukrainian": ["Коротка історія хліба", "Як лагодити дах і стіни", "Річки та озера є взимку"],
    "greek": ["Σύντομη ιστορία του ψωμιού", "Πώς να επισκευάσετε τη στέγη"],
    "arabic": ["تاريخ الخبز في العالم", "كيفية إصلاح سقف البيت القديم من الداخل"],
    "hindi": ["रोटी का इतिहास", "पुराने घर की छत के लिए मरम्मत"],
    "japanese": ["パンの歴史", "古い家の屋根を直す方法"],
    "chinese": ["面包的历史", "如何修理老房子的屋顶"],
    "korean": ["빵의 역사", "오래된 집의 지붕을 고치는 방법"],
    "thai": ["ประวัติศาสตร์ของขนมปัง", "วิธีซ่อมหลังคาบ้านเก่า"],
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_few_titles_tell_their_language(language):
    found = detect_language(SENTENCES[language])
    assert found.name == language
    assert 0 < found.confidence <= 1
    assert 0.5 < found.share <= 1


def test_names_of_labels_tell_it_by_their_endings_and_letters():
    finnish = ["kirjastot", "lukeminen", "ympäristö", "lääketiede", "tutkimus", "kielitiede", "kasvatustiede"]
    italian = ["biblioteche", "università", "conservazione", "insegnamento", "psicologia", "turismo"]
    assert [detect_language(names).name for names in (finnish, italian)] == ["finnish", "italian"]
    assert detect_language(["библиотека"]).name == "russian"


@pytest.mark.parametrize("texts", [[], [""], ["x9 abc12 zzz"], ["12", "34 56"], ["qwrt plmk bvcx"] * 50])
def test_what_does_not_tell_is_unknown(texts):
    assert detect_language(texts).name == UNKNOWN


def test_mixed_texts_say_the_share():
    mixed = SENTENCES["italian"] * 30 + SENTENCES["russian"] * 20
    found = detect_language(mixed)
    assert found.name == "italian"
    assert found.share == pytest.approx(0.6, abs=0.05)
    assert found.described(AUTO) == f"italian (detected, in {found.share:.0%} of the texts)".replace("%", " %")


def test_many_texts_are_sampled_evenly():
    texts = SENTENCES["english"] * 2000 + SENTENCES["finnish"] * 4000
    assert detect_language(texts).name == "finnish"
    assert detect_language(texts).share == pytest.approx(2 / 3, abs=0.05)


def test_names_and_codes():
    assert language_of("FI", ["the"]).name == language_of("Finnish", []).name == "finnish"
    assert language_name("hr") == "serbian", "whose stems are the same"
    assert set(LANGUAGES) <= set(NAMES), "every language that has stems can be given"
    LANGUAGE.check("language", "sv")
    with pytest.raises(ParameterError, match="ISO 639-1 code"):
        LANGUAGE.check("language", "klingon")
    with pytest.raises(ParameterError):
        LANGUAGE.check("language", None)
