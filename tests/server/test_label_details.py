"""What is shown of labels: names, paths, synonyms, URIs, and how many are below."""

import numpy as np
import pytest

from labelspace.labels import edits
from labelspace.server.served_model import MAX_PATH, LabelDetails
from labelspace.types import Concept, Hierarchy, LabelSpace

BREAD, RYE, LOAF = "http://example.org/bread", "http://example.org/rye", "urn:loaf"


@pytest.fixture
def thesaurus():
    """Labels that are URIs with names as synonyms; loaf has two parents."""
    edges = [[1, 0], [2, 0], [2, 1]]  # child, parent
    hierarchy = Hierarchy.from_edges(edges, n_labels=3)
    synonyms = [["Bread", "Brot"], ["http://example.org/other", "Rye bread"], []]
    return LabelDetails(LabelSpace([BREAD, RYE, LOAF], synonyms, hierarchy=hierarchy, counts=np.array([2, 9, 5])))


def test_a_uri_is_shown_by_its_first_synonym_that_is_a_name(thesaurus):
    assert [thesaurus[at]["name"] for at in range(3)] == ["Bread", "Rye bread", LOAF]
    assert [thesaurus[at]["uri"] for at in range(3)] == [BREAD, RYE, LOAF]
    assert [thesaurus[at]["label"] for at in range(3)] == [BREAD, RYE, LOAF]


def test_the_synonym_says_more_than_the_name(thesaurus):
    assert [thesaurus[at]["synonym"] for at in range(3)] == ["Brot", None, None]
    plain = LabelDetails(LabelSpace(["Rye bread"], [["rye", "RYE BREAD", "Roggenbrot"]]))
    assert plain[0]["synonym"] == "Roggenbrot"


def test_a_uri_among_the_synonyms():
    details = LabelDetails(LabelSpace(["bread"], [["loaf", BREAD]]))
    assert (details[0]["name"], details[0]["uri"], details[0]["synonym"]) == ("bread", BREAD, "loaf")


def test_the_path_is_of_shown_names_from_the_root(thesaurus):
    assert [thesaurus[at]["path"] for at in range(3)] == [[], ["Bread"], ["Bread"]]


def test_broader_narrower_and_below(thesaurus):
    assert [sorted(thesaurus.broader(at)) for at in range(3)] == [[], [0], [0, 1]]
    assert thesaurus.narrower(0) == [1, 2]  # the most frequent first
    assert [thesaurus.n_below(at) for at in range(3)] == [2, 1, 0]  # loaf once, though by two ways
    assert thesaurus.roots() == [0]


def test_without_a_hierarchy_every_label_is_a_root():
    details = LabelDetails(LabelSpace(["a > b", "c"], counts=np.array([1, 2])))
    assert details.roots() == [1, 0]
    assert (details[0]["name"], details[0]["path"]) == ("a > b", [])
    assert (details.narrower(0), details.broader(0), details.n_below(0), details.labels.shown_synonyms(0)) == (
        [],
        [],
        0,
        [],
    )


def test_without_counts_and_synonyms():
    details = LabelDetails(LabelSpace(["b", "a"]))
    assert details[1] == {
        "id": 1, "label": "a", "name": "a", "path": [], "synonym": None, "uri": None, "notation": None, "count": 0,
    }  # fmt: skip
    assert details.roots() == [0, 1]


def test_a_name_wins_over_an_id():
    details = LabelDetails(LabelSpace(["1", "0", "x"]))
    assert [details.find(text) for text in ("1", "0", "x", "2", "3", "-1", "٢", "", "1.0")] == [
        0, 1, 2, 2, None, None, None, None, None,
    ]  # fmt: skip


def test_a_deep_hierarchy_is_cut_where_it_is_shown():
    n = 3 * MAX_PATH
    hierarchy = Hierarchy.from_edges([[at, at - 1] for at in range(1, n)], n_labels=n)
    details = LabelDetails(LabelSpace([f"n{at}" for at in range(n)], hierarchy=hierarchy))
    assert details[n - 1]["path"] == [f"n{at}" for at in range(n - 1 - MAX_PATH, n - 1)]
    assert details.n_below(0) == n - 1


def test_concepts_of_a_vocabulary():
    concepts = [Concept(BREAD, "02.1", {"fi": "leipä"}, ("braed",), "Of dough."), Concept()]
    details = LabelDetails(LabelSpace(["bread", "tea"], [["loaf", "braed"], []], concepts=concepts))
    shown = details[0]
    assert (shown["name"], shown["synonym"], shown["uri"], shown["notation"]) == ("bread", "loaf", BREAD, "02.1")
    assert details.labels.shown_synonyms(0) == ["loaf"]  # hidden ones are never shown
    assert [details.named(0, language)["name"] for language in ("fi", "sv", None)] == ["leipä", "bread", "bread"]
    assert [details.find(text) for text in (BREAD, f"<{BREAD}>", "bread", "1", RYE)] == [0, 0, 0, 1, None]
    assert details.languages == ["fi"]
    assert [details.description(label) for label in (0, 1)] == ["Of dough.", None]


def test_a_retired_label_is_no_root(thesaurus):
    assert LabelDetails(edits.retired(thesaurus.labels, 0)).roots() == [1]
    flat = LabelSpace(["bread", "fish", "tea"], counts=np.array([1, 2, 3]))
    assert LabelDetails(edits.merged(edits.retired(flat, 2), 0, into=1)).roots() == [1]
