"""Folders of PECOS."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.formats import pecos
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace

X = sp.csr_matrix(np.array([[0.5, 0, 1], [0, 2, 0]], np.float32))
Y = sp.csr_matrix(np.array([[1, 0], [1, 1]], np.float32))
TEXTS = ["red tea", "a cup"]


@pytest.fixture
def folder(tmp_path):
    """A folder as those that PECOS offers."""
    (tmp_path / "tfidf-attnxml").mkdir()
    for split in ("trn", "tst"):
        sp.save_npz(tmp_path / f"Y.{split}.npz", Y)
        sp.save_npz(tmp_path / "tfidf-attnxml" / f"X.{split}.npz", X)
        (tmp_path / f"X.{split}.txt").write_text("red tea\na cup\n")
    (tmp_path / "output-items.txt").write_text("drinks\ncrockery\n")
    return tmp_path


def test_the_file_says_whether_features_are_read(folder):
    features = pecos.read(folder / "tfidf-attnxml" / "X.trn.npz")
    assert (features.X != X).nnz == (features.Y != Y).nnz == 0
    assert (features.texts, list(features.labels.names)) == (TEXTS, ["drinks", "crockery"])
    for name in ("X.tst.txt", "Y.tst.npz"):
        texts = pecos.read(folder / name)
        assert (texts.texts, texts.X) == (TEXTS, None)
    assert pecos.split_files(folder) == {"train": folder / "X.trn.txt", "test": folder / "X.tst.txt"}
    (folder / "X.trn.txt").unlink()
    assert pecos.split_files(folder)["train"] == folder / "tfidf-attnxml" / "X.trn.npz"
    assert pecos.read(folder / "tfidf-attnxml" / "X.trn.npz").texts is None


def test_documents_for_predictions(folder):
    assert [record.text for record in pecos.documents(folder / "X.tst.txt")] == TEXTS
    records = list(pecos.documents(folder / "tfidf-attnxml" / "X.tst.npz"))
    assert [(record.id, record.features) for record in records] == [("0", "0:0.5 2:1"), ("1", "1:2")]


def test_dense_features(folder):
    np.save(folder / "X.trn.npy", X.toarray())
    assert (pecos.read(folder / "X.trn.npy").X != X).nnz == 0


def test_the_label_space_of_training_is_kept(folder):
    found = pecos.read(folder / "X.tst.txt", LabelSpace(["crockery", "food"]))
    assert list(found.labels.names) == ["crockery", "food", "drinks"]
    assert found.Y.toarray().tolist() == [[0, 0, 1], [1, 0, 1]]


def test_names_that_are_not_unique_get_their_number(folder):
    (folder / "output-items.txt").write_text("tea\ntea\n")
    assert list(pecos.read(folder / "X.trn.txt").labels.names) == ["tea <0>", "tea <1>"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("X.trn.txt", "one line\n", r"Y\.trn\.npz has 2, X\.trn\.txt has 1"),
        ("output-items.txt", "drinks\n", "2 columns for 1 names"),
        ("Y.trn.npz", "nothing", r"must be a file of numpy\.savez"),
    ],
)
def test_files_that_do_not_match(folder, name, text, message):
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=message):
        pecos.read(folder / "X.trn.txt")


def test_other_names_and_missing_labels(folder):
    with pytest.raises(DataError, match=r"must be called X\.trn\.npz.*, but is train\.npz"):
        pecos.read(folder / "train.npz")
    with pytest.raises(DataError, match=r"must have its labels in Y\.val\.npz next to it"):
        pecos.read(folder / "X.val.txt")


def test_what_is_written_is_read_by_scipy_and_by_us(tmp_path):
    dataset = Dataset(Y, LabelSpace(["drinks", "crockery"]), ["red\r\ntea", "a cup"], X)
    path = tmp_path / "tfidf-attnxml" / "X.trn.npz"
    pecos.write(path, dataset)
    assert (sp.load_npz(path) != X).nnz == (sp.load_npz(tmp_path / "Y.trn.npz") != Y).nnz == 0
    back = pecos.read(path)
    assert (back.texts, list(back.labels.names)) == (TEXTS, ["drinks", "crockery"])
    with pytest.raises(DataError, match=r"that is features; write X\.trn\.npz"):
        pecos.write(tmp_path / "X.trn.txt", replace(dataset, texts=None))
    with pytest.raises(DataError, match="must be on one line"):
        pecos.write(path, replace(dataset, labels=LabelSpace(["a\nb", "c"])))
    with pytest.raises(DataError, match=r"it is Y\.trn\.npz"):
        pecos.write(tmp_path / "Y.trn.npz", dataset)
