"""Features and labels in .npy and .npz."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.formats import matrices
from labelspace.data.formats.matrices import labels_file
from labelspace.data.label_files import write_labels
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace

X = np.array([[0.5, 0, 1], [0, 2, 0]], np.float32)
Y = np.array([[1, 0], [1, 1]], np.float32)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("train.X.npz", "train.Y.npz"),
        ("X_train.npy", "Y_train.npy"),
        ("X_train.npy", "y_train.npy"),
        ("X.npz", "Y.npy"),
        ("a-x-1.npy", "a-y-1.npz"),
    ],
)
def test_the_labels_are_beside_the_features(tmp_path, x, y):
    for name, values in ((x, X), (y, Y)):
        if name.endswith(".npy"):
            np.save(tmp_path / name, values)
        else:
            sp.save_npz(tmp_path / name, sp.csr_matrix(values))
    found = matrices.read(tmp_path / x)
    assert found.X.toarray().tolist() == X.tolist()
    assert found.Y.toarray().tolist() == Y.tolist()
    assert found.labels.names == ["0", "1"]
    assert [record.features for record in matrices.documents(tmp_path / x)] == ["0:0.5 2:1", "1:2"]


def test_the_file_of_labels_must_be_one(tmp_path):
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(DataError, match=r"one file of labels next to it, Y\.npy or Y\.npz, but there is none; add it"):
        matrices.read(tmp_path / "X.npy")
    for name in ("Y.npy", "y.npy"):
        np.save(tmp_path / name, Y)
    with pytest.raises(DataError, match=r"but there is Y\.npy and y\.npy"):
        matrices.read(tmp_path / "X.npy")
    with pytest.raises(DataError, match=r"name them train\.X\.npy and train\.Y\.npy"):
        labels_file(tmp_path / "train.npy")
    with pytest.raises(DataError, match="must have X in its name"):
        labels_file(tmp_path / "maXi.npy")


def test_one_file_with_both(tmp_path):
    path = tmp_path / "train.npz"
    np.savez(path, X=X, Y=Y, ids=np.array([7, 8]), label_names=np.array(["tea", "cup"]))
    found = matrices.read(path)
    assert (found.labels.names, found.ids) == (["tea", "cup"], ["7", "8"])
    assert [record.id for record in matrices.documents(path)] == ["7", "8"]
    np.savez(path, X=X, y=np.array([3, 0]))
    assert matrices.read(path).Y.toarray().tolist() == [[0, 0, 0, 1], [1, 0, 0, 0]]
    for arrays, message in (
        ({"X": X}, "must hold the arrays X and Y"),
        ({"X": X, "Y": Y, "y": Y}, "must hold the arrays X and Y"),
        ({"X": X, "Y": Y, "Z": Y}, "but there is 'Z' too"),
        ({"X": X, "Y": Y[:1]}, "X has 2, Y has 1"),
        ({"X": X, "Y": Y - 1}, "must hold 1 where a document has a label, but holds -1"),
        ({"X": X, "y": np.array([-1, 0])}, "but has -1 to 0"),
        ({"X": X, "y": np.array([0.5, 0])}, "but has type float64"),
        ({"X": X, "y": np.array(["a", "b"]), "label_names": np.array(["c"])}, "must name its labels once"),
        ({"X": X, "Y": Y, "label_names": np.array(["c"])}, "2 columns for 1 names"),
        ({"X": X[0], "Y": Y}, "must be a 2-d array of numbers"),
    ):
        np.savez(path, **arrays)
        with pytest.raises(DataError, match=message):
            matrices.read(path)


def test_names_are_those_of_the_label_file_and_splits_share_them(tmp_path):
    space = LabelSpace(["tea", "cup"])
    for split in ("train", "test"):
        matrices.write(tmp_path / f"{split}.X.npz", Dataset(sp.csr_matrix(Y), space, X=sp.csr_matrix(X)))
    write_labels(tmp_path / "labels.jsonl", space)
    train = matrices.read(tmp_path / "train.X.npz")
    assert list(train.labels.names) == ["tea", "cup"]
    assert (train.X != sp.csr_matrix(X)).nnz == (train.Y != sp.csr_matrix(Y)).nnz == 0
    other = matrices.read(tmp_path / "test.X.npz", LabelSpace(["pot", "cup"]))
    assert list(other.labels.names) == ["pot", "cup", "tea"]
    assert other.Y.toarray().tolist() == [[0, 0, 1], [0, 1, 1]]


def test_what_cannot_be_written(tmp_path):
    texts = Dataset(sp.csr_matrix(Y), LabelSpace.numbered(2), texts=["a", "b"])
    with pytest.raises(DataError, match="has texts only"):
        matrices.write(tmp_path / "a.X.npz", texts)
    with pytest.raises(DataError, match=r"such as train\.X\.npz, but it is a\.npz"):
        matrices.write(tmp_path / "a.npz", Dataset(sp.csr_matrix(Y), LabelSpace.numbered(2), X=sp.csr_matrix(X)))
