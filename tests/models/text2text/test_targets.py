import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.models.text2text.targets import build_targets, columns_of, target_names
from labelspace.types import Hierarchy, LabelSpace

NAMES = ["brand: A", "brand: B", "L0: Food", "L0: Care", "L1: Tea", "L1: Soap"]
TABLE = LabelSpace(NAMES, hierarchy=Hierarchy.from_edges([[4, 2], [5, 3], [4, 3]], len(NAMES)))


def marked(*rows, labels=TABLE):
    Y = sp.lil_matrix((len(rows), len(labels)), dtype=np.float32)
    for i, row in enumerate(rows):
        Y[i, [labels.index[name] for name in row]] = 1
    return Y.tocsr()


def read(answers, given, row, labels=TABLE):
    """The answers of a document as text, part by part."""
    written = target_names(labels)
    return [" ".join(written[name] for name in answers.names[i] if name >= 0) for i in given[row].indices]


def test_linked_columns_are_one_part_and_others_stand_alone():
    answers, given = build_targets(
        marked(["brand: A", "L0: Food", "L1: Tea"], ["brand: B", "L0: Care", "L1: Tea"]), TABLE
    )
    assert answers.n_parts == 2
    assert read(answers, given, 0) == ["brand: A", "L0: Food L1: Tea"]
    assert read(answers, given, 1) == ["brand: B", "L0: Care L1: Tea"]
    assert [names.shape for names, _ in answers.by_part()] == [(2, 1), (2, 2)]


def test_levels_are_ordered_by_the_hierarchy_whatever_the_order_of_names():
    labels = LabelSpace(NAMES[::-1], hierarchy=Hierarchy.from_edges([[1, 3], [0, 2]], len(NAMES)))
    answers, given = build_targets(marked(["brand: A", "L0: Food", "L1: Tea"], labels=labels), labels)
    assert sorted(read(answers, given, 0, labels)) == ["L0: Food L1: Tea", "brand: A"]


def test_what_is_missing_is_na_and_carries_no_label():
    Y = marked(["brand: A", "L0: Food"], ["L0: Care", "L1: Soap"], [])
    answers, given = build_targets(Y, TABLE)
    assert read(answers, given, 0) == ["brand: A", "L0: Food L1: NA"]
    assert read(answers, given, 1) == ["brand: NA", "L0: Care L1: Soap"]
    assert read(answers, given, 2) == [], "nothing is known of a row without labels"
    assert ((given @ answers.carries) != Y).nnz == 0


def test_several_values_of_a_column_are_several_answers():
    answers, given = build_targets(marked(["brand: A", "brand: B", "L0: Food", "L0: Care", "L1: Soap"]), TABLE)
    assert read(answers, given, 0) == ["brand: A", "brand: B", "L0: Food L1: NA", "L0: Care L1: Soap"]


@pytest.mark.parametrize("names", [["cat", "brand: dog"], ["a: b"], [f"{i}: x" for i in range(40)]])
def test_other_names_are_no_columns(names):
    assert columns_of(LabelSpace(names)) == []


def test_of_other_data_each_label_is_an_answer():
    labels = LabelSpace.numbered(4)
    Y = sp.csr_matrix(np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]], np.float32))
    answers, given = build_targets(Y, labels)
    assert answers.names.tolist() == [[0], [2]], "a label that no document has is none"
    assert given.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]
    assert answers.carries.toarray().tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]


def test_labels_above_come_with_those_below_as_often_as_they_did():
    labels = LabelSpace(["top", "one", "two"], hierarchy=Hierarchy.from_edges([[1, 0], [2, 0]], 3))
    Y = sp.csr_matrix(np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1], [1, 0, 0]], np.float32))
    answers, given = build_targets(Y, labels)
    assert answers.names.ravel().tolist() == [0, 1, 2]
    assert given.toarray().tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert answers.carries.toarray().tolist() == [[1, 0, 0], [0.5, 1, 0], [1, 0, 1]]
