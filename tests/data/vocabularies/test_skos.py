import numpy as np
import pytest

from labelspace.data.label_files import read_hierarchy, read_labels
from labelspace.data.vocabularies import LabelsBefore, plan_update, read_vocabulary
from labelspace.errors import DataError

A = "http://example.org/animals/"


def imported(path, folder, language=None):
    update = plan_update(read_vocabulary(path), LabelsBefore.of(folder), language)
    update.write(folder)
    return update


@pytest.mark.parametrize("ending", [".nt", ".rdf", ".jsonld"])
def test_all_syntaxes_give_the_same_labels(animals, tmp_path, ending):
    pytest.importorskip("rdflib", reason="the extra skos is not installed")
    folders = tmp_path / "a", tmp_path / "b"
    imported(animals[".ttl"], folders[0])
    imported(animals[ending], folders[1])
    for name in ("labels.jsonl", "hierarchy.tsv"):
        assert (folders[1] / name).read_bytes() == (folders[0] / name).read_bytes()


def test_labels_and_hierarchy(animals, tmp_path):
    update = imported(animals[".nt"], tmp_path / "out")
    labels = read_hierarchy(tmp_path / "out/hierarchy.tsv", read_labels(tmp_path / "out/labels.jsonl"))
    assert labels.names == ["animals", "cats", 'birds "of" prey', "bank (B1)", "bank (p5)", "hevoset", "p7"]
    assert [labels.find(f"{A}p{at}") for at in (1, 2, 9)] == [0, 1, None]
    cats = labels.concept(1)
    assert (cats.notation, cats.names, cats.hidden) == ("007", {"en": "cats", "fi": "kissat"}, ("catz",))
    assert labels.synonyms[1] == ["felines", "kitties", "catz"]
    assert labels.synonyms[3] == ["bank"]  # the name without what makes it unique
    assert labels.hierarchy.edges.tolist() == [[1, 0], [2, 0], [3, 4]]
    assert {note.key: note.count for note in update.notes} == {
        "deprecated": 1, "broader_outside": 1, "other_language": 1, "unnamed": 1, "synonyms_left_out": 1,
        "homonyms": 2, "cycles": 1, "descriptions_left_out": 3,
    }  # fmt: skip


def test_another_language(animals, tmp_path):
    labels = imported(animals[".nt"], tmp_path / "out", "FI").after
    assert labels.names[:3] == ["eläimet", "kissat", 'birds "of" prey']
    assert labels.synonyms[1] == ["mirrit"]
    assert [each.description for each in labels.concepts][:2] == ["Eläviä olentoja.", "Kissaeläimet."]


def test_descriptions(animals, tmp_path):
    imported(animals[".nt"], tmp_path / "out")
    labels = read_labels(tmp_path / "out/labels.jsonl")
    found = [concept.description for concept in labels.concepts]
    # A definition before a note, the language of the name before both, another language before none.
    assert found == ["Living beings that move.", "Domestic cats only.", "Birds that hunt.", None, None, "Pferde.", None]


@pytest.mark.parametrize(
    ("text", "rule"),
    [("a" * 10_001, "at most 10,000 characters .set LABELSPACE_MAX_DESCRIPTION_"), ("a\\u0007", "without control")],
)
def test_descriptions_that_no_label_can_have_are_refused(tmp_path, text, rule):
    with pytest.raises(DataError, match=f"a concept must have a description .*{rule}.*, but '{A}x' has 'a"):
        read(tmp_path, f'<A:x> <skos:definition> "{text}"@en .')


NT = """
<{a}x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2004/02/skos/core#Concept> .
{more}
"""


def read(tmp_path, more):
    path = tmp_path / "x.nt"
    path.write_text(NT.format(a=A, more=more.replace("skos:", "http://www.w3.org/2004/02/skos/core#").replace("A:", A)))
    return plan_update(read_vocabulary(path), LabelsBefore.of(tmp_path / "none"))


def test_labels_of_skos_xl(tmp_path):
    xl = "http://www.w3.org/2008/05/skos-xl#"
    update = read(
        tmp_path,
        f'<A:x> <{xl}prefLabel> _:l1 .\n_:l1 <{xl}literalForm> "rye"@en .\n'
        f'<A:x> <{xl}altLabel> <A:l2> .\n<A:l2> <{xl}literalForm> "rye grain"@en .',
    )
    assert (update.after.names, update.after.synonyms[0]) == (["rye"], ["rye grain"])


def test_regions_several_names_and_whitespace(tmp_path):
    update = read(
        tmp_path,
        '<A:x> <skos:prefLabel> "labour\\t market"@en-GB .\n<A:x> <skos:prefLabel> "Arbeit"@de .\n'
        '<A:x> <skos:prefLabel> "Arbeiten"@de .',
    )
    assert (update.language, update.after.names, update.after.synonyms[0]) == ("de", ["Arbeit"], ["Arbeiten"])
    again = plan_update(read_vocabulary(tmp_path / "x.nt"), LabelsBefore.of(tmp_path / "none"), "en")
    assert (again.after.names, [note.key for note in again.notes]) == (["labour market"], [])


def test_blank_untyped_and_unfit_are_counted(tmp_path):
    update = read(
        tmp_path,
        '_:b <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <skos:Concept> .\n<A:y> <skos:prefLabel> "y"@en .\n'
        '<A:x> <skos:prefLabel> <A:y> .\n<A:x> <skos:broader> "y" .\n<A:x> <skos:prefLabel> "#x"@en .',
    )
    assert {note.key: note.count for note in update.notes} == {"blank": 1, "untyped": 1, "unfit": 2, "quoted": 1}
    assert update.after.names == ['"#x"']


def test_a_file_without_concepts(tmp_path):
    path = tmp_path / "x.nt"
    path.write_text("<s> <p> <o> .\n")
    with pytest.raises(DataError, match=r"must have concepts .* but .*x\.nt has none"):
        read_vocabulary(path)


REPLACED = f"""
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix a: <{A}> .
a:p1 a skos:Concept ; skos:prefLabel "animals"@en ; skos:broader a:p3 .
a:p2 a skos:Concept ; owl:deprecated true ; dct:isReplacedBy a:p3, a:p1 .
a:p3 a skos:Concept ; skos:prefLabel "beings"@en ; dct:isReplacedBy a:p1 .
a:p4 owl:deprecated true ; dct:isReplacedBy "{A}p1" .
a:p5 a skos:Concept ; owl:deprecated true .
"""
REPLACED_NT = """
<A:p2> <dct:isReplacedBy> <A:p3> .
<A:p1> <rdf:type> <skos:Concept> .
<A:p3> <dct:isReplacedBy> <A:p1> .
<A:p1> <skos:prefLabel> "animals"@en .
<A:p2> <rdf:type> <skos:Concept> .
<A:p2> <owl:deprecated> "true" .
<A:p2> <dct:isReplacedBy> <A:p1> .
<A:p4> <owl:deprecated> "1" .
<A:p1> <skos:broader> <A:p3> .
<A:p4> <dct:isReplacedBy> "A:p1" .
<A:p5> <owl:deprecated> "true" .
<A:p3> <rdf:type> <skos:Concept> .
<A:p3> <skos:prefLabel> "beings"@en .
<A:p5> <rdf:type> <skos:Concept> .
"""
SPACES = {
    "A:": A,
    "skos:": "http://www.w3.org/2004/02/skos/core#",
    "dct:": "http://purl.org/dc/terms/",
    "owl:": "http://www.w3.org/2002/07/owl#",
    "rdf:": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}


@pytest.mark.parametrize("ending", [".nt", ".ttl"])
def test_what_is_replaced_by_what(tmp_path, ending):
    if ending == ".ttl":
        pytest.importorskip("rdflib", reason="the extra skos is not installed")
    content = REPLACED_NT
    for short, space in SPACES.items():
        content = content.replace(short, space)
    path = tmp_path / f"v{ending}"
    path.write_text(content if ending == ".nt" else REPLACED)
    vocabulary = read_vocabulary(path)
    assert vocabulary.uris == [f"{A}p1", f"{A}p3"]  # an import takes what is replaced, unless it is deprecated
    assert vocabulary.replaced == {
        f"{A}p2": (f"{A}p1", f"{A}p3"),
        f"{A}p3": (f"{A}p1",),
        f"{A}p4": (f"{A}p1",),
        f"{A}p5": (),
    }
    assert {note.key: note.count for note in vocabulary.notes if note.count} == {"deprecated": 2}
    some = vocabulary.only(np.array([1]))
    assert (some.uris, some.names.of(0), some.broader.tolist()) == ([f"{A}p3"], [("en", "beings")], [])
    both = vocabulary.only(np.array([1, 0]))
    assert (both.uris, both.broader.tolist()) == ([f"{A}p3", f"{A}p1"], [[1, 0]])
