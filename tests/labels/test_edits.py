"""Edits of labels: what stays, what is refused, and how labels of documents and answers follow."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError, ParameterError
from labelspace.labels import edits
from labelspace.labels.selection import select_labels
from labelspace.types import Concept, Hierarchy, LabelSpace, TopK


@pytest.fixture
def pets():
    """The tree animal > (cat > kitten, dog > pug), and fish apart."""
    names = ["animal", "cat", "dog", "kitten", "pug", "fish"]
    tree = Hierarchy.from_edges([[1, 0], [2, 0], [3, 1], [4, 2]], len(names))
    counts = np.array([0, 5, 4, 2, 1, 3])
    return LabelSpace(names, [[], ["tom"], [], ["kitty"], [], []], counts, 9, tree)


def edges(labels):
    return [] if labels.hierarchy is None else labels.hierarchy.edges.tolist()


def test_a_retired_label_leaves_the_hierarchy_and_its_children_move_up(pets):
    retired = edits.retired(pets, 1)
    assert edges(retired) == [[2, 0], [3, 0], [4, 2]]
    assert edges(pets) == [[1, 0], [2, 0], [3, 1], [4, 2]]  # nothing is changed in place
    assert retired.in_use.tolist() == [True, False, True, True, True, True]
    assert retired.answered_counts.tolist() == [0, 0, 4, 2, 1, 3]


def test_a_merged_label_gives_its_names_children_and_documents(pets):
    merged = edits.merged(pets, 1, into=2)
    assert edges(merged) == [[2, 0], [3, 2], [4, 2]]
    assert merged.synonyms[2] == ["cat", "tom"]
    assert merged.answered_counts.tolist() == [0, 0, 9, 2, 1, 3]
    into_child = edits.merged(pets, 0, into=3)  # of its children, cat is above kitten: it must not go below it
    assert edges(into_child) == [[2, 3], [3, 1], [4, 2]]
    into_root = edits.merged(pets, 1, into=0)
    assert edges(into_root) == [[2, 0], [3, 0], [4, 2]]


def test_merges_of_merges_lead_to_one_label(pets):
    twice = edits.merged(edits.merged(pets, 3, into=1), 1, into=5)
    assert twice.current.tolist() == [0, 5, 2, 5, 4, 5]
    assert twice.synonyms[5] == ["cat", "tom", "kitten", "kitty"]
    gone = edits.retired(twice, 5)
    assert gone.current.tolist() == [0, -1, 2, -1, 4, -1]
    back = edits.restored(gone, 5)
    assert back.current.tolist() == [0, -1, 2, -1, 4, 5]


def test_a_restored_label_takes_its_names_back(pets):
    back = edits.restored(edits.merged(pets, 3, into=1), 3)
    assert back.current is None
    assert back.synonyms[1] == ["tom"]
    assert edges(edits.restored(edits.retired(pets, 1), 1)) == [[2, 0], [3, 0], [4, 2]]  # it has no place any more


def test_a_description_stays_is_replaced_and_removed(pets):
    space, label = edits.added(pets, "parrot", description="A bird\n that talks.")
    space = edits.described(space, label, ["polly"])
    assert space.concept(label).description == "A bird that talks."
    assert edits.renamed(space, label, "talker").concept(label).description == "A bird that talks."
    assert edits.described(space, label, [], " ").concept(label).description is None
    for wrong, said in (("\x1b[2J", "without control characters"), ("a" * 10_001, "at most 10,000 characters")):
        with pytest.raises(DataError, match=f"a label must have a description .*{said}.*; correct it"):
            edits.described(space, label, [], wrong)


def test_hidden_names_stay_hidden():
    concepts = [Concept("x:1", hidden=("kat",)), Concept("x:2", hidden=("dgo", "tom"))]
    labels = LabelSpace(["cat", "dog"], [["tom", "kat"], ["dgo", "tom"]], concepts=concepts)
    merged = edits.merged(labels, 1, into=0)
    assert merged.synonyms[0] == ["tom", "kat", "dog", "dgo"]
    assert merged.concepts[0].hidden == ("kat", "dgo")
    assert merged.find("x:2") == 1


def test_new_paths_hang_below_labels_in_use_only():
    labels = LabelSpace(["food", "food > bread", "food > fish"]).with_paths()
    labels = edits.retired(labels, 1)
    space, label = edits.added(labels, "food > bread > rye")
    assert edges(space) == [[2, 0], [label, 0]]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda pets: edits.label_in_use(pets, "cta"), "'cta' is none of 6 labels; did you mean 'cat'?"),
        (lambda pets: edits.label_in_use(pets, "zzz"), "see: labelspace labels list MODEL"),
        (lambda pets: edits.label_in_use(edits.retired(pets, 1), "cat"), "'cat' is retired; name another one, or add"),
        (lambda pets: edits.label_in_use(edits.merged(pets, 1, 2), "cat"), "'cat' is merged into 'dog'"),
        (lambda pets: edits.renamed(pets, 1, "dog"), "'dog' is a label already"),
        (lambda pets: edits.renamed(edits.retired(pets, 2), 1, "dog"), "'dog' is a label that is retired"),
        (lambda pets: edits.renamed(pets, 1, " "), "one line of text, but it is ' '"),
        (lambda pets: edits.renamed(pets, 1, "a\nb"), "one line of text"),
        (lambda pets: edits.described(pets, 1, ["ok", ""]), "a synonym must be one line of text"),
        (lambda pets: edits.merged(pets, 1, into=1), "'cat' is given twice"),
        (lambda pets: edits.retired(LabelSpace(["cat"]), 0), "'cat' is the last one; add another label first"),
        (lambda pets: edits.ids_in_use(edits.retired(pets, 1), np.array([0, 1])), "'cat' is retired"),
    ],
)
def test_what_is_refused(pets, edit, said):
    with pytest.raises(DataError) as error:
        edit(pets)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_labels_of_documents_follow(pets):
    space = edits.retired(edits.merged(pets, 3, into=1), 5)
    table = sp.csr_matrix(np.array([[0, 1, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1]], np.float32))  # the last is unknown
    assert edits.labels_in_use(table, space).toarray().tolist() == [[0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1]]
    assert edits.n_replaced(table, space) == (1, 1)
    assert edits.labels_in_use(table, pets) is table


def chosen(labels, **options):
    selection = select_labels(labels, **options)
    return [labels.names[label] for label in np.flatnonzero(selection.allowed)], selection.notes


def test_selections_follow(pets):
    space = edits.retired(edits.merged(pets, 1, into=2), 5)  # cat is a dog, fish is retired
    assert chosen(space, include="cat")[0] == ["dog"]
    assert chosen(space, exclude="cat")[0] == ["animal", "kitten", "pug"]
    assert chosen(space, exclude="dog")[0] == ["animal", "kitten", "pug"]
    assert chosen(space, under="cat")[0] == ["dog", "kitten", "pug"]
    assert chosen(space, include=["fish", "pug"]) == (["pug"], ["'fish' is retired, and is never answered"])
    assert select_labels(space, exclude="pug").summary == "3 of 4 labels are allowed: all, without 'pug'"
    with pytest.raises(ParameterError, match="at least one label must be allowed"):
        select_labels(space, include="fish")
    with pytest.raises(ParameterError, match="did you mean 'pug'"):
        select_labels(space, include="puug")
    with pytest.raises(ParameterError, match="see labels.jsonl"):  # fish is not offered
        select_labels(space, include="fishh")


def test_joined_answers_against_a_loop(pets):
    rng = np.random.default_rng(0)
    space = edits.merged(edits.merged(edits.merged(pets, 3, into=1), 4, into=2), 5, into=1)
    scores = rng.random((50, 6), np.float32) * (rng.random((50, 6)) < 0.7)
    top = TopK.from_scores(scores, k=6)
    joined = edits.answered(space, top, 3, are_probabilities=True)
    for row in range(50):
        right = np.zeros(6)
        for label in range(6):
            now = space.current[label]
            right[now] = 1 - (1 - right[now]) * (1 - np.float64(scores[row, label]))
        best = np.sort(right)[::-1][:3]
        found = joined.scores[row][joined.labels[row] >= 0]
        np.testing.assert_allclose(found, best[: len(found)], rtol=1e-5)
        assert len(set(joined.labels[row].tolist())) == 3


def test_retired_labels_are_left_out_of_rankings(pets):
    top = TopK.from_scores([[0.1, 0.9, 0.5, 0.0, 0.2, 0.8]], k=4)
    found = edits.without_retired(edits.retired(pets, 1), top)
    assert found.labels.tolist() == [[5, 2, 4, -1]]
    assert found.scores[0, 3] == -np.inf
