import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning

from labelspace.errors import DataError
from labelspace.sklearn.targets import Targets, are_names


@pytest.mark.parametrize(
    ("y", "kind", "classes"),
    [
        ([1, 0, 1], "classes", [0, 1]),
        (np.array(["b", "a", "c"]), "classes", ["a", "b", "c"]),
        ([True, False, True], "classes", [False, True]),
        ([2.0, 5.0, 2.0], "classes", [2.0, 5.0]),
        ([[0, 1], [1, 0], [1, 1]], "matrix", [0, 1]),
        (sp.csr_matrix([[1], [0], [1]]), "matrix", [0]),
        (np.array([[0, 1], [1, 0], [1, 1]], bool), "matrix", [0, 1]),
        ([["b"], [], {"a", "b"}], "names", ["a", "b"]),
        ((["b"], ("a",), []), "names", ["a", "b"]),
        ([np.array(["b"]), np.array(["a", "b"]), np.array([], str)], "names", ["a", "b"]),
        ([["a > b"], ["a > c"], []], "names", ["a > b", "a > c", "a"]),
    ],
)
def test_what_y_is_is_seen(y, kind, classes):
    targets, Y = Targets.read(y)
    assert (targets.kind, targets.classes.tolist(), Y.shape) == (kind, classes, (3, len(classes)))
    assert targets.is_sparse == sp.issparse(y)
    if kind == "classes":
        assert Y.sum(axis=1).A1.tolist() == [1, 1, 1]
        assert [classes[label] for label in Y.indices] == list(y)


def test_classes_that_are_texts_name_the_labels():
    assert Targets.read(["bread", "fish"])[0].labels.names == ["bread", "fish"]
    assert Targets.read(["", "fish"])[0].labels.names == ["0", "1"]
    assert Targets.read([7, 9])[0].labels.names == ["0", "1"]


def test_a_column_is_read_as_classes_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert Targets.read(np.array([[1], [2]]))[0].classes.tolist() == [1, 2]


@pytest.mark.parametrize("y", [[["a"], "b"], [["a"], None], ["a", "b"], [[0, 1], [1, 0]], 3, [{"a": 1}]])
def test_these_are_no_lists_of_names(y):
    assert not are_names(y)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (None, DataError, "requires y to be passed"),
        ([[], []], DataError, "y must have at least one label, but none of 2 documents has one"),
        ([0.5, 1.5], ValueError, "Unknown label type: continuous"),
        ([[1, 2], [3, 4]], DataError, "is a table of several classes; fit a classifier for each column"),
        (sp.csr_matrix([[2, 0], [0, 1]]), DataError, "Y must hold only 0 and 1, but holds 2.0"),
        ([[0, 3], [1]], ValueError, "MultiLabelBinarizer"),
        ([["a"], [3]], DataError, "labels must be all names or all ids"),
    ],
)
def test_a_y_that_is_nothing_of_this_is_said(y, error, message):
    with pytest.raises(error, match=message):
        Targets.read(y)
