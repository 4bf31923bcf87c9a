"""A new edition of a vocabulary in a model: what is added, renamed, merged, retired, moved and kept."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace import Tagger
from labelspace.data.vocabularies import LabelsBefore, plan_update, read_vocabulary
from labelspace.labels import edits
from labelspace.models.capabilities import PartialFit
from labelspace.tagger.vocabulary_update import plan_vocabulary_update, update_saved, update_vocabulary
from labelspace.types import Concept, Dataset, Hierarchy, LabelSpace

A = "http://example.org/"
SKOS = "http://www.w3.org/2004/02/skos/core#"
NAMED = {
    "type": "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
    "deprecated": "http://www.w3.org/2002/07/owl#deprecated",
    "replaced": "http://purl.org/dc/terms/isReplacedBy",
}


def statements(*rows):
    """Lines of N-Triples: a concept, a property, and a value, which is a concept if it is a number."""
    lines = []
    for row in rows:
        subject, relation, value = row.split(" ", 2)
        if relation == "is":
            lines.append(f"<{A}{subject}> <{NAMED['type']}> <{SKOS}Concept> .")
            relation = "prefLabel"
        wanted = f"<{A}{value}>" if value.isdigit() else f'"{value}"'
        if "@" in value:
            text, language = value.split("@")
            wanted = f'"{text}"@{language}'
        lines.append(f"<{A}{subject}> <{NAMED.get(relation, SKOS + relation)}> {wanted} .")
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture
def edition(tmp_path):
    def read(*rows):
        path = tmp_path / "v.nt"
        path.write_text(statements(*rows))
        return read_vocabulary(path)

    return read


FIRST = (
    *("1 is animals@en", "2 is cats@en", "2 broader 1", "3 is dogs@en", "3 broader 1", "4 is pugs@en", "4 broader 3"),
    *("4 altLabel mops@en", "5 is dragons@en", "5 broader 1", "6 is wyverns@en", "6 broader 5"),
)


@pytest.fixture
def before(edition, tmp_path):
    """The labels that a model has of the first edition."""
    return plan_update(edition(*FIRST), LabelsBefore.of(tmp_path / "none")).after


def counts(found):
    return {kind: len(labels) for kind, labels in found.changes.items() if labels}


def parents(labels):
    edges = [] if labels.hierarchy is None else labels.hierarchy.edges.tolist()
    return {labels.names[child]: labels.names[parent] for child, parent in edges}


def without(*starts, also=()):
    return [row for row in FIRST if not row.startswith(starts)] + list(also)


def test_the_same_edition_changes_nothing(edition, before):
    found = plan_vocabulary_update(edition(*FIRST), before)
    assert found.is_empty
    assert counts(found) == {}
    assert list(found.after.names) == list(before.names)
    assert parents(found.after) == parents(before)
    assert found.after.current is None


def test_every_kind_of_change(edition, before):
    also = ["2 is house cats@en", "2 prefLabel kissat@fi", "4 broader 1", "4 altLabel doguillo@en", "7 is lizards@en"]
    also += ["7 broader 1", "5 deprecated true", "5 replaced 7", "6 deprecated true"]
    rows = without("2 is", "4 broader", "5", "6", also=also)
    found = plan_vocabulary_update(edition(*rows), before)
    after = found.after
    assert counts(found) == {"added": 1, "renamed": 1, "described": 1, "merged": 1, "retired": 1, "moved": 1}
    assert list(after.names) == ["animals", "house cats", "dogs", "pugs", "dragons", "wyverns", "lizards"]
    assert [list(some) for some in after.synonyms] == [[], ["cats"], [], ["doguillo", "mops"], [], [], ["dragons"]]
    assert after.current.tolist() == [0, 1, 2, 3, 6, -1, 6]
    assert parents(after) == {"house cats": "animals", "dogs": "animals", "pugs": "animals", "lizards": "animals"}
    assert after.concept(1).names == {"en": "house cats", "fi": "kissat"}
    assert found.examples("merged", 3) == ["dragons -> lizards"]
    assert found.examples("renamed", 3) == ["cats -> house cats"]
    assert found.examples("moved", 3) == ["pugs (below animals)"]
    again = plan_vocabulary_update(edition(*rows), after)
    assert again.is_empty
    assert counts(again) == {}


def test_a_changed_definition_is_listed_and_applied_and_one_of_a_person_stays(edition, before):
    first = plan_vocabulary_update(edition(*FIRST, "2 definition Small carnivores.@en"), before)
    assert (counts(first), first.after.concept(1).description) == ({"described": 1}, "Small carnivores.")
    own = edits.described(first.after, 2, [], "Our best friends.")
    found = plan_vocabulary_update(edition(*FIRST, "2 definition Carnivores that purr.@en"), own)
    assert (found.changes["described"], found.examples("described", 3)) == ([1], ["cats"])
    assert [found.after.concept(label).description for label in (1, 2)] == [
        "Carnivores that purr.",
        "Our best friends.",
    ]


def test_what_the_file_does_not_have_stays(edition, before):
    found = plan_vocabulary_update(edition(*without("3", "4")), before)
    assert counts(found) == {"gone": 2}
    assert found.is_empty
    assert found.after.current is None
    assert parents(found.after)["pugs"] == "dogs"
    own, _ = edits.added(before, "unicorns")  # by hand: it never was of the vocabulary
    assert counts(plan_vocabulary_update(edition(*FIRST), own)) == {}


def test_replacements_over_several_steps_circles_and_several_of_them(edition, before):
    steps = ["4 deprecated true", "4 replaced 8", "8 deprecated true", "8 replaced 3"]
    circle = ["5 deprecated true", "5 replaced 6", "6 deprecated true", "6 replaced 5"]
    rows = without("4", "5", "6", also=[*steps, *circle])
    found = plan_vocabulary_update(edition(*rows), before)
    assert found.after.current.tolist() == [0, 1, 2, 2, -1, -1]
    assert list(found.after.synonyms[2]) == ["pugs", "mops"]
    rows = without("5", also=["5 deprecated true", "5 replaced 9", "5 replaced 2", "5 replaced 3"])
    found = plan_vocabulary_update(edition(*rows), before)
    assert found.examples("merged", 1) == ["dragons -> cats"]
    assert {note.key for note in found.notes} >= {"several_replacements"}
    assert "wyverns" not in parents(found.after)  # the file has no concept in use above it


def test_replaced_but_not_deprecated(edition, before):
    rows = (*FIRST, "5 replaced 2", "7 is griffins@en", "7 replaced 2", "6 replaced 99")
    found = plan_vocabulary_update(edition(*rows), before)
    assert counts(found) == {"merged": 1, "moved": 1}  # what was never in the model is not added; 99 is not there
    assert "griffins" not in found.after.names


def test_a_concept_takes_the_name_of_the_one_that_it_replaces(edition, before):
    rows = without("2", also=["2 deprecated true", "2 replaced 7", "7 is cats@en", "7 broader 1"])
    after = plan_vocabulary_update(edition(*rows), before).after
    assert (after.names[1], after.names[6]) == ("cats (2)", "cats")
    assert after.current.tolist()[1] == 6
    assert list(after.synonyms[6]) == []


def test_names_may_change_places_and_synonyms_move(edition, before):
    rows = without("2 is", "3 is", "4 altLabel", also=["2 is dogs@en", "3 is cats@en", "2 altLabel mops@en"])
    after = plan_vocabulary_update(edition(*rows), before).after
    assert list(after.names[1:4]) == ["dogs", "cats", "pugs"]
    assert [list(some) for some in after.synonyms[1:4]] == [["mops"], [], []]


def test_edits_by_hand_stay(edition, before):
    by_hand = edits.retired(edits.merged(edits.renamed(before, 1, "felines"), 3, into=2), 4)
    by_hand = edits.described(by_hand, 1, ["moggies"])
    found = plan_vocabulary_update(edition(*FIRST), by_hand)
    assert found.is_empty
    assert found.after.names[1] == "felines"
    assert list(found.after.synonyms[1]) == ["cats", "moggies"]
    assert list(found.after.synonyms[2]) == ["pugs", "mops"]
    assert found.after.current.tolist() == [0, 1, 2, 2, -1, 5]
    assert parents(found.after)["wyverns"] == "animals"
    assert {note.key: note.count for note in found.notes}["still_out"] == 2
    rows = without("2", also=["2 deprecated true", "2 replaced 4"])  # which was merged into 3
    assert plan_vocabulary_update(edition(*rows), by_hand).after.current.tolist() == [0, 2, 2, 2, -1, 5]
    rows = without("3", also=["3 deprecated true", "3 replaced 4"])
    assert plan_vocabulary_update(edition(*rows), by_hand).after.current.tolist() == [0, 1, 3, 3, -1, 5]


def test_labels_without_uris_get_them(edition):
    labels = LabelSpace(["cats", "birds"])
    found = plan_vocabulary_update(edition(*FIRST), labels)
    assert found.after.concept(0).uri == f"{A}2"
    assert counts(found) == {"added": 5, "described": 1, "moved": 1, "gone": 1}


def test_hidden_names_stay_hidden(edition):
    labels = LabelSpace(["cats"], [["kat", "tom"]], concepts=[Concept(f"{A}2", None, {"en": "cats"}, ("kat", "tom"))])
    found = plan_vocabulary_update(edition("2 is cats@en", "2 hiddenLabel catz@en", "2 altLabel tom@en"), labels)
    assert found.after.concept(0).hidden == ("catz", "kat")
    assert list(found.after.synonyms[0]) == ["tom", "catz", "kat"]


def test_a_table_says_what_is_not_in_use(tmp_path, before):
    path = tmp_path / "v.csv"
    path.write_text(f"uri,label_en\n{A}1,animals\n{A}2,cats\n{A}3,\n")
    found = plan_vocabulary_update(read_vocabulary(path), before)
    assert counts(found) == {"retired": 1, "moved": 1, "gone": 3}
    above = parents(found.after)
    assert above == {"cats": "animals", "pugs": "animals", "dragons": "animals", "wyverns": "dragons"}


def test_random_editions_give_labels_that_hold_together(edition, before):
    rng = np.random.default_rng(0)
    labels = before
    for _ in range(30):
        rows = []
        for at in range(1, 12):
            if rng.random() < 0.7:
                rows.append(f"{at} is {rng.choice(['a', 'b', 'c', 'd'])}{at // 2}@en")
            else:
                rows.append(f"{at} deprecated true")
            rows += [f"{at} broader {rng.integers(1, 12)}"] * (rng.random() < 0.7)
            rows += [f"{at} replaced {rng.integers(1, 14)}"] * (rng.random() < 0.2)
        if not any(" is " in row for row in rows):
            continue
        found = plan_vocabulary_update(edition(*rows), labels)
        labels = found.after
        assert len(set(labels.names)) == len(labels)
        current = np.arange(len(labels)) if labels.current is None else labels.current
        final = current[current >= 0]
        assert (current[final] == final).all()
        if labels.hierarchy is not None:
            assert labels.in_use[labels.hierarchy.edges].all()
        again = plan_vocabulary_update(edition(*rows), labels)
        assert again.is_empty, (rows, counts(again))


@pytest.mark.parametrize("method", ["lexical", "neighbors", "fastxml"])
def test_models_answer_the_new_edition(edition, before, tmp_path, method):
    texts = [f"{name} and so on {i}" for i in range(4) for name in before.names]
    ids = np.tile(np.arange(len(before)), 4)
    Y = sp.csr_matrix((np.ones(len(ids), np.float32), (np.arange(len(ids)), ids)), shape=(len(ids), len(before)))
    tagger = Tagger(method).fit_dataset(Dataset(Y, before, texts=texts))
    tagger.save(tmp_path / "m")
    rows = without("2 is", "5", also=["2 is house cats@en", "7 is lizards@en", "5 deprecated true", "5 replaced 7"])
    dry = update_saved(tmp_path / "m", edition(*rows), dry_run=True)
    assert dry.number is None
    assert not (tmp_path / "m.versions").exists()
    made = update_saved(tmp_path / "m", edition(*rows))
    assert made.number == 2
    assert made.update.changes == dry.update.changes
    loaded = labelspace.load(tmp_path / "m")
    assert loaded.lineage_[-1].made_by == "labels"
    assert loaded.tag("cats and so on", k=1)[0][0] == "house cats"
    if isinstance(loaded.model, PartialFit):
        assert loaded.tag("dragons and so on", k=1)[0][0] == "lizards"
    else:
        assert [note.count for note in made.update.notes if note.key in ("not_added", "kept")] == [1, 1]
        assert loaded.tag("dragons and so on", k=1)[0][0] == "dragons"
    if method == "lexical":
        assert loaded.tag("a lizard", k=1)[0][0] == "lizards"
    assert update_saved(tmp_path / "m", edition(*rows)).number is None
    assert update_vocabulary(loaded, edition(*rows)).is_empty


def test_a_hierarchy_may_go():
    assert edits.retired(LabelSpace(["a", "b"], hierarchy=Hierarchy.from_edges([[1, 0]], 2)), 1).hierarchy is None
