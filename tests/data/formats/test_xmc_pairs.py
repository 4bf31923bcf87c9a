"""Folders of the Extreme Classification Repository with a file per matrix."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data import sparse_rows
from labelspace.data.formats import xmc_pairs
from labelspace.data.sparse_rows import pair_lines, read_pairs, write_pairs
from labelspace.errors import DataError
from labelspace.types import Concept, Dataset, LabelSpace

DOCUMENTS = [
    {"uid": "B1", "title": "Tea", "content": "green\nloose", "target_ind": [0, 2], "target_rel": [1.0, 1.0]},
    {"uid": "B2", "title": "Cup", "content": "", "target_ind": [1, 2], "target_rel": [1.0, 0.0]},
]
NAMES = [{"uid": "L1", "title": "Pot"}, {"uid": "L2", "title": "Saucer"}, {"uid": "L3", "title": "Pot"}]


def json_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path):
    """A folder as those of LF-Amazon."""
    for split in ("trn", "tst"):
        (tmp_path / f"{split}.json.gz").write_bytes(gzip.compress(json_lines(DOCUMENTS).encode()))
        (tmp_path / f"{split}_X_Xf.txt").write_text("2 4\n0:0.5 3:1\n\n")
        (tmp_path / f"{split}_X_Y.txt").write_text("2 3\n0:1 2:1\n1:1.0\n")
    (tmp_path / "lbl.json.gz").write_bytes(gzip.compress(json_lines(NAMES).encode()))
    (tmp_path / "filter_labels_test.txt").write_text("0 2\n1 0\n")
    return tmp_path


def test_a_folder_by_hand(folder):
    train, test = (xmc_pairs.read(folder / f"{split}.json.gz") for split in ("trn", "tst"))
    assert (train.texts, train.ids) == (["Tea\ngreen\nloose", "Cup"], ["B1", "B2"])
    assert (train.X, train.filtered) == (None, None)
    assert list(train.labels.names) == ["Pot <L1>", "Saucer", "Pot <L3>"]
    assert train.Y.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]
    assert test.filtered.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    features = xmc_pairs.read(folder / "trn_X_Xf.txt")
    assert features.X.toarray().tolist() == [[0.5, 0, 0, 1], [0, 0, 0, 0]]
    assert features.texts == train.texts
    assert xmc_pairs.split_files(folder) == {"train": folder / "trn.json.gz", "test": folder / "tst.json.gz"}
    assert [record.text for record in xmc_pairs.documents(folder / "tst.json.gz")] == train.texts
    assert [record.features for record in xmc_pairs.documents(folder / "tst_X_Xf.txt")] == ["0:0.5 3:1", ""]


def test_labels_of_the_texts_where_there_is_no_matrix(folder):
    (folder / "trn_X_Y.txt").unlink()
    assert xmc_pairs.read(folder / "trn.json.gz").Y.toarray().tolist() == [[1, 0, 1], [0, 1, 0]]


def test_features_alone_with_names_in_a_text_file(folder):
    for name in ("trn.json.gz", "lbl.json.gz"):
        (folder / name).unlink()
    (folder / "Y.txt").write_text("pot\nsaucer\nspoon\n")
    found = xmc_pairs.read(folder / "trn_X_Xf.txt")
    assert (found.texts, found.ids, list(found.labels.names)) == (None, None, ["pot", "saucer", "spoon"])
    (folder / "Y.txt").unlink()
    assert list(xmc_pairs.read(folder / "trn_X_Xf.txt").labels.names) == ["0", "1", "2"]
    with pytest.raises(DataError, match="must have texts or features next to it"):
        xmc_pairs.read(folder / "trn_X_Y.txt")


def test_filters_follow_the_label_space_of_training(folder):
    found = xmc_pairs.read(folder / "tst.json.gz", LabelSpace(["Saucer", "Pot <L3>"]))
    assert list(found.labels.names) == ["Saucer", "Pot <L3>", "Pot <L1>"]
    assert found.Y.toarray().tolist() == [[0, 1, 1], [1, 0, 0]]
    assert found.filtered.toarray().tolist() == [[0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "trn_X_Y.txt",
            "2 3\n0:1\n1:1\n2:1\n",
            r"expected the end of the file after 2 rows as the header says, but found '2:1'",
        ),
        ("trn_X_Y.txt", "2 3\n0:1\n", "there are 1; the file is truncated"),
        ("trn_X_Y.txt", "2 3\n0:1\n3:1\n", r"trn_X_Y\.txt:3: expected index:value with an index from 0 to 2"),
        ("trn_X_Y.txt", "2 3\n0\n1:1\n", r"trn_X_Y\.txt:2: expected index:value"),
        ("trn_X_Y.txt", "2 3\n0:x\n1:1\n", r"trn_X_Y\.txt:2: expected a finite number"),
        ("trn_X_Y.txt", "2 3 4\n", "expected a header of two integers"),
        ("trn_X_Y.txt", "2 3000000000\n", "expected at most 2147483647"),
        ("trn_X_Y.txt", "2 3\n0:-1\n\n", "must hold 1 where a document has a label, but holds -1"),
        ("trn_X_Y.txt", "3 3\n\n\n\n", "labels has 3, texts has 2"),
        ("trn_X_Y.txt", "2 9\n\n\n", "9 columns for 3 names"),
        ("trn.json", '{"uid": "B1", "title": 7}\n', "'title' or 'content' to be texts, but one is '7'"),
        ("trn.json", '{"uid": "B1"}\n', "but there is neither"),
        ("trn.json", "[]\n", "expected a JSON object"),
        ("filter_labels_train.txt", "0 1\n0 3\n", r"filter_labels_train\.txt:2: expected a document below 2"),
        ("filter_labels_train.txt", "0\n", "a label below 3, but found '0'"),
    ],
)
def test_malformed_files(folder, name, text, message):
    (folder / "trn.json.gz").rename(folder / "renamed.gz")
    (folder / "trn.json").write_text(json_lines(DOCUMENTS))
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=message):
        xmc_pairs.read(folder / "trn.json")


@pytest.mark.parametrize("changed", [{"target_ind": ["0"]}, {"target_ind": [-1]}, {"target_ind": None}])
def test_malformed_targets(folder, changed):
    (folder / "trn_X_Y.txt").unlink()
    (folder / "trn.json").write_text(json_lines([{**DOCUMENTS[0], **changed}]))
    with pytest.raises(DataError, match=r"trn\.json:1: expected 'target_ind' to be a list of label ids"):
        xmc_pairs.read(folder / "trn.json")
    (folder / "trn.json").write_text(json_lines([{**DOCUMENTS[0], "target_rel": [1.0]}]))
    with pytest.raises(DataError, match="expected 'target_rel' to have a number for each"):
        xmc_pairs.read(folder / "trn.json")


def test_what_is_written_is_read(tmp_path):
    Y = sp.csr_matrix(np.array([[1, 0, 1], [0, 0, 0]], np.float32))
    X = sp.csr_matrix(np.array([[0.1, 0], [0, -3e-9]], np.float32))
    filtered = sp.csr_matrix(np.array([[0, 1, 0], [0, 0, 1]], np.float32))
    space = LabelSpace(["pot", "cup", "tea"], concepts=[Concept("ex:1"), Concept(), Concept()])
    dataset = Dataset(Y, space, ["Tea\ngreen", "Cup"], X, ["a", "b"], filtered=filtered)
    xmc_pairs.write(tmp_path / "tst_X_Xf.txt", dataset)
    back = xmc_pairs.read(tmp_path / "tst_X_Xf.txt")
    assert (back.X != X).nnz == (back.Y != Y).nnz == (back.filtered != filtered).nnz == 0
    assert (back.texts, back.ids, list(back.labels.names)) == (dataset.texts, dataset.ids, space.names)
    assert '"uid": "ex:1"' in gzip.decompress((tmp_path / "lbl.json.gz").read_bytes()).decode()
    bare = Dataset(Y, LabelSpace.numbered(3), X=X)
    xmc_pairs.write(tmp_path / "bare" / "trn_X_Xf.txt", bare)
    assert sorted(path.name for path in (tmp_path / "bare").iterdir()) == ["trn_X_Xf.txt", "trn_X_Y.txt"]
    assert (xmc_pairs.read(tmp_path / "bare" / "trn_X_Xf.txt").X != X).nnz == 0
    with pytest.raises(DataError, match=r"must be called trn\.json\.gz"):
        xmc_pairs.write(tmp_path / "train.txt", replace(bare, ids=None))


@pytest.mark.parametrize("size", [1, 7, 100])
def test_blocks_may_cut_anywhere(tmp_path, monkeypatch, size):
    monkeypatch.setattr(sparse_rows, "BLOCK_BYTES", size)
    some = sp.random(19, 30, 0.05, dtype=np.float32, random_state=0)
    matrix = sp.vstack([some, np.ones((1, 30), np.float32)], format="csr")
    assert np.diff(matrix.indptr).min() == 0  # some rows are empty
    write_pairs(tmp_path / "a.txt.gz", matrix)
    assert (read_pairs(tmp_path / "a.txt.gz") != matrix).nnz == 0
    assert [number for number, _ in pair_lines(tmp_path / "a.txt.gz")] == list(range(2, 22))
    text = gzip.decompress((tmp_path / "a.txt.gz").read_bytes())
    assert b"\n " not in text
    for other in (text.replace(b"\n", b"\r\n").rstrip(), text + b"\n \n"):
        (tmp_path / "b.txt").write_bytes(other)
        assert (read_pairs(tmp_path / "b.txt") != matrix).nnz == 0


@pytest.mark.parametrize(("text", "line"), [("1 30\n" + "1:1 " * 10 + "\n", 2), ("1 30\n1:1\n" + "\n" * 20, 3)])
def test_a_line_may_be_too_long_and_so_may_a_blank_end(tmp_path, monkeypatch, text, line):
    monkeypatch.setenv("LABELSPACE_MAX_LINE_BYTES", "10")
    monkeypatch.setattr(sparse_rows, "BLOCK_BYTES", 8)
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(DataError, match=rf"a\.txt:{line}: expected at most 10 bytes per line"):
        read_pairs(tmp_path / "a.txt")
