import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import ParameterError
from labelspace.models.text2text.targets import build_targets, table_columns, target_names
from labelspace.types import Hierarchy, LabelSpace

NAMES = ["brand: A", "brand: B", "L0: Food", "L0: Care", "L1: Tea", "L1: Soap"]
TABLE = LabelSpace(NAMES, hierarchy=Hierarchy.from_edges([[4, 2], [5, 3], [4, 3]], len(NAMES)))


def to_csr(*rows, labels=TABLE):
    Y = sp.lil_matrix((len(rows), len(labels)), dtype=np.float32)
    for i, row in enumerate(rows):
        Y[i, [labels.index[name] for name in row]] = 1
    return Y.tocsr()


def as_text(targets, Y_targets, row, labels=TABLE):
    """The targets of a document as text, group by group."""
    names = target_names(labels)
    return [" ".join(names[i] for i in targets.label_ids[target] if i >= 0) for target in Y_targets[row].indices]


def test_linked_columns_are_one_group_and_others_are_alone():
    Y = to_csr(["brand: A", "L0: Food", "L1: Tea"], ["brand: B", "L0: Care", "L1: Tea"])
    targets, Y_targets = build_targets(Y, TABLE)
    assert targets.n_groups == 2
    assert as_text(targets, Y_targets, 0) == ["brand: A", "L0: Food L1: Tea"]
    assert as_text(targets, Y_targets, 1) == ["brand: B", "L0: Care L1: Tea"]
    assert [label_ids.shape for label_ids, _ in targets.by_group()] == [(2, 1), (2, 2)]


def test_levels_are_ordered_by_the_hierarchy_whatever_the_order_of_names():
    labels = LabelSpace(NAMES[::-1], hierarchy=Hierarchy.from_edges([[1, 3], [0, 2]], len(NAMES)))
    targets, Y_targets = build_targets(to_csr(["brand: A", "L0: Food", "L1: Tea"], labels=labels), labels)
    assert sorted(as_text(targets, Y_targets, 0, labels)) == ["L0: Food L1: Tea", "brand: A"]


def test_a_missing_value_is_na_and_carries_no_label():
    Y = to_csr(["brand: A", "L0: Food"], ["L0: Care", "L1: Soap"], [])
    targets, Y_targets = build_targets(Y, TABLE)
    assert as_text(targets, Y_targets, 0) == ["brand: A", "L0: Food L1: NA"]
    assert as_text(targets, Y_targets, 1) == ["brand: NA", "L0: Care L1: Soap"]
    assert as_text(targets, Y_targets, 2) == [], "nothing is known of a row without labels"
    assert ((Y_targets @ targets.label_shares) != Y).nnz == 0


def test_several_values_of_a_column_are_several_targets():
    Y = to_csr(["brand: A", "brand: B", "L0: Food", "L0: Care", "L1: Soap"])
    assert as_text(*build_targets(Y, TABLE), 0) == ["brand: A", "brand: B", "L0: Food L1: NA", "L0: Care L1: Soap"]


@pytest.mark.parametrize("names", [["cat", "brand: dog"], ["a: b"], [f"{i}: x" for i in range(40)]])
def test_other_names_are_no_columns(names):
    assert table_columns(LabelSpace(names)) == []


def test_of_other_data_each_label_is_a_target():
    labels = LabelSpace.numbered(4)
    Y = sp.csr_matrix(np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]], np.float32))
    targets, Y_targets = build_targets(Y, labels)
    assert targets.label_ids.tolist() == [[0], [2]], "a label without documents is none"
    assert Y_targets.toarray().tolist() == [[1, 1], [0, 0], [0, 1]]
    assert targets.counts.tolist() == [1, 2]
    assert targets.label_shares.toarray().tolist() == [[1, 0, 0, 0], [0, 0, 1, 0]]


def test_ancestors_get_the_share_of_documents_that_carry_both():
    labels = LabelSpace(["top", "one", "two"], hierarchy=Hierarchy.from_edges([[1, 0], [2, 0]], 3))
    Y = sp.csr_matrix(np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1], [1, 0, 0]], np.float32))
    targets, Y_targets = build_targets(Y, labels)
    assert targets.label_ids.ravel().tolist() == [0, 1, 2]
    assert Y_targets.toarray().tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert targets.label_shares.toarray().tolist() == [[1, 0, 0], [0.5, 1, 0], [1, 0, 1]]


def test_one_sequence_has_all_columns_in_the_order_of_the_table():
    Y = to_csr(["brand: A", "L0: Food", "L1: Tea"], ["L0: Care"], [], ["brand: B", "L0: Food", "L1: Tea"])
    targets, Y_targets = build_targets(Y, TABLE, one_sequence=True)
    assert targets.n_groups == 1
    assert [as_text(targets, Y_targets, row) for row in range(4)] == [
        ["brand: A L0: Food L1: Tea"],
        ["brand: NA L0: Care L1: NA"],
        [],
        ["brand: B L0: Food L1: Tea"],
    ]
    assert (targets.label_shares.sum(axis=0) == [[1, 1, 2, 1, 2, 0]]).all(), "NA is no label"


def test_several_values_give_several_sequences():
    Y = to_csr(["brand: A", "L0: Food", "L1: Tea", "L0: Care", "L1: Soap"])
    targets, Y_targets = build_targets(Y, TABLE, one_sequence=True)
    texts = as_text(targets, Y_targets, 0)
    assert "brand: A L0: Care L1: Soap" in texts
    assert all(text.startswith("brand: A ") for text in texts)


def test_one_sequence_is_for_tables():
    with pytest.raises(ParameterError, match="one_sequence of text2text must be false where labels are not"):
        build_targets(sp.csr_matrix(np.eye(2)), LabelSpace(["cat", "dog"]), one_sequence=True)
