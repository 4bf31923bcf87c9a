import pytest

from labelspace.data.read_options import ReadOptions
from labelspace.data.vocabularies import LabelsBefore, plan_update, read_vocabulary, vocabulary_format
from labelspace.errors import DataError, ParameterError

A = "http://example.org/"


def labels(tmp_path, name, text, language=None):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    update = plan_update(read_vocabulary(path, language=language), LabelsBefore.of(tmp_path / "none"), language)
    return update.after, {note.key: note.count for note in update.notes}


def test_csv_as_annif_has_it(tmp_path):
    text = f"\ufeffuri,label_fi,label_en,notation\n<{A}b>,kissat,cats,02\n{A}a,koirat,,\n{A}gone,,,\n"
    space, notes = labels(tmp_path, "v.csv", text, "en")
    assert space.names == ["cats", "koirat"]  # in the order of the file
    assert [space.concept(at).uri for at in range(2)] == [f"{A}b", f"{A}a"]
    assert (space.concept(0).names, space.concept(0).notation) == ({"en": "cats", "fi": "kissat"}, "02")
    assert notes == {"deprecated": 1, "other_language": 1}


def test_csv_with_synonyms_and_hierarchy(tmp_path):
    text = 'label;alt;broader;color\n"cats";"felines|kitties";animals\n'.replace("animals\n", "animals;red\n")
    space, notes = labels(tmp_path, "v.csv", text + "animals;;;\ndogs;;pets|animals;\n")
    assert (space.names, space.synonyms[0]) == (["cats", "animals", "dogs"], ["felines", "kitties"])
    assert space.hierarchy.edges.tolist() == [[0, 1], [2, 1]]
    assert notes == {"broader_outside": 1, "columns_left_out": 1}


def test_descriptions_by_language_and_as_definitions(tmp_path):
    text = "label;description;definition;description_fi\ncats;;A small carnivore.;Kissa.\ndogs;A pet.;A carnivore.;\n"
    space, notes = labels(tmp_path, "v.csv", text)
    assert [concept.description for concept in space.concepts] == ["A small carnivore.", "A pet."]
    assert notes == {"descriptions_left_out": 2}
    assert labels(tmp_path, "v.csv", text, "fi")[0].concept(0).description == "Kissa."


def test_tsv_as_annif_has_it(tmp_path):
    space, notes = labels(tmp_path, "v.tsv", f"<{A}a>\tcats\t02\n{A}b\tdogs\n<{A}c>\n", "en")
    assert (space.names, space.concept(0).notation, space.concept(1).uri) == (["cats", "dogs"], "02", f"{A}b")
    assert (space.concept(0).names, notes) == ({"en": "cats"}, {"deprecated": 1})


def test_tsv_with_a_header(tmp_path):
    space, _ = labels(tmp_path, "v.tsv", f"uri\tlabel_en\talt\n{A}a\tcats\tfelines\n")
    assert (space.names, space.synonyms[0]) == (["cats"], ["felines"])


def test_a_list(tmp_path):
    space, notes = labels(tmp_path, "v.txt", "dogs\n\n  cats \r\n")
    assert (space.names, notes) == (["dogs", "cats"], {})
    assert space.concept(0).to_json() == {}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("v.csv", "uri,name\na,b\n", r"v\.csv:1: expected a header with a column 'label'"),
        ("v.csv", "label,label\na,b\n", r"v\.csv:1: expected unique columns, but 'label' occurs twice"),
        ("v.csv", "uri,label\na,b,c\n", r"v\.csv:2: expected 2 cells as in the header, but there are 3"),
        ("v.csv", 'uri,label\na,"b', r"v\.csv:.* expected CSV"),
        ("v.csv", "uri,label\na,b\na,c\n", r"v\.csv:3: expected each concept once, but 'a'"),
        ("v.tsv", "a\tb\tc\td\n", r"v\.tsv:1: expected <uri>, name and notation"),
        ("v.txt", "a\tcats\n", r"v\.txt:1: expected one name per line, but there is a tab; .*format='tsv'"),
        ("v.txt", "cats\ncats\n", r"v\.txt:2: expected each concept once, but 'cats'"),
        ("v.txt", "\n", r"must have names of labels, but .*v\.txt has none"),
    ],
)
def test_what_is_refused(tmp_path, name, text, said):
    with pytest.raises(DataError, match=said):
        labels(tmp_path, name, text)


def test_another_encoding(tmp_path):
    path = tmp_path / "v.txt"
    path.write_bytes("Käse\n".encode("windows-1252"))
    with pytest.raises(DataError, match=r"v\.txt:1: expected UTF-8 .*encoding='windows-1252'"):
        read_vocabulary(path)
    assert plan_update(
        read_vocabulary(path, options=ReadOptions(encoding="windows-1252")), LabelsBefore.of(tmp_path / "none")
    ).after.names == ["Käse"]
    with pytest.raises(ParameterError, match="encoding has an effect on ntriples, .* but is 'latin-1' for turtle"):
        read_vocabulary(path, "turtle", options=ReadOptions(encoding="latin-1"))
    with pytest.raises(ParameterError, match="delimiter has an effect on csv only, but is ';' for list"):
        read_vocabulary(path, options=ReadOptions(delimiter=";"))


def test_formats_by_ending_or_as_told(tmp_path):
    endings = {"a.ttl": "turtle", "a.NT.gz": "ntriples", "a.owl.zst": "rdfxml", "a.jsonld": "jsonld", "a.txt": "list"}
    assert {name: vocabulary_format(name) for name in endings} == endings
    assert vocabulary_format("a.dat", "csv") == "csv"
    with pytest.raises(ParameterError, match=r"a vocabulary must end with \.nt, .*, but is 'a\.pdf'"):
        vocabulary_format("a.pdf")
    with pytest.raises(ParameterError, match="format must be one of ntriples, .*, but is 'rdf'"):
        vocabulary_format("a.ttl", "rdf")
