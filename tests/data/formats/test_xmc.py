"""The Extreme Classification Repository's format."""

import gzip

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data import sparse_rows
from labelspace.data.formats import xmc
from labelspace.data.source import read_dataset, write_dataset
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace


def written(tmp_path, text, name="a.txt"):
    path = tmp_path / name
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("name", ["a.txt", "a.TXT.gz"])
def test_a_file_by_hand(tmp_path, end, last, name):
    rows = ["\ufeff5 6 4", "3,1 5:.5 0:1e0", " 2:-1.5", "", "0", "2,2 1:1 1:2 4:0"]
    dataset = read_dataset(written(tmp_path, end.join(rows) + (end if last else ""), name))
    X, Y = dataset.X, dataset.Y
    expected = np.zeros((5, 6))
    expected[0, [0, 5]], expected[1, 2], expected[4, 1] = [1, 0.5], -1.5, 3
    assert X.toarray().tolist() == expected.tolist()
    assert Y.toarray().tolist() == [[0, 1, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
    assert {X.dtype, Y.dtype} == {np.dtype(np.float32)}
    assert {part.dtype for part in (X.indices, X.indptr, Y.indices, Y.indptr)} == {np.dtype(np.int32)}
    assert (dataset.labels.names, dataset.texts, dataset.ids) == (["0", "1", "2", "3"], None, None)
    assert dataset.name == "a"


def test_blocks_may_cut_anywhere(tmp_path, monkeypatch):
    X = sp.random(30, 40, 0.3, format="csr", dtype=np.float32, random_state=0)
    Y = sp.random(30, 7, 0.3, format="csr", dtype=np.float32, random_state=0)
    Y.data[:] = 1
    write_dataset(Dataset(Y, LabelSpace.numbered(7), X=X), tmp_path / "a.txt")
    for size in (1, 7, 100, 1000):
        monkeypatch.setattr(sparse_rows, "BLOCK_BYTES", size)
        back = read_dataset(tmp_path / "a.txt")
        assert (back.X != X).nnz == 0
        assert (back.Y != Y).nnz == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"a\.txt:1: expected a header of three integers \(documents, features, labels\), but found ''; write"),
        (
            "just a text\nof lines",
            r"a\.txt:1: expected a header of .*, but found 'just a text'; .*\.txt is the format of the Extreme",
        ),
        ("3 4\n", r"a\.txt:1: expected a header of three .* found '3 4'"),
        ("1 -4 3\n", r"a\.txt:1: expected a header of three .* found '1 -4 3'"),
        ("0 4 3\n", r"a\.txt:1: expected at least one document, but the header says 0; give another file"),
        (
            "1 2147483648 3\n\n",
            r"a\.txt:1: expected at most 2147483647 features and labels, but the header says 2147483648 and 3",
        ),
        ("1 2 2000000000\n\n", r"a\.txt:1: expected at most 5000000 labels without names, but the ids need 2000000000"),
        (
            "2 9 9\n1 1:1\n1 9:1\n",
            r"a\.txt:3: expected index:value with an index from 0 to 8, but found '9:1'; .* count from 0",
        ),
        (
            "2 9 9\n1 1:1\n9 1:1\n",
            r"a\.txt:3: expected label ids from 0 to 8 separated by commas, but found '9'; correct",
        ),
        (
            "2 9 9\n1 1:1\n2:1 3:1\n",
            r"a\.txt:3: expected label ids .* found '2:1'; .* without labels starts with a space",
        ),
        (
            "2 9 9\n1 1:1\n1 2:x\n",
            r"a\.txt:3: expected a finite number after the colon, but found '2:x'; write it like",
        ),
        ("2 9 9\n1 1:1\n1 2:\n", r"a\.txt:3: expected a finite number after the colon, but found '2:'"),
        (b"1 9 9\n1 \xff\xfe:1\n", r"a\.txt:2: expected index:value .*, but found '\ufffd\ufffd:1'"),
        (
            "3 9 9\n1 1:1\n1 2:1\n",
            r"a\.txt: expected 3 rows as the header says, but there are 2; the file is truncated: download",
        ),
        (
            "1 9 9\n1 1:1\n1 2:1\n",
            r"a\.txt:3: expected the end of the file after 1 rows as the header says, but found '1 2:1'",
        ),
    ],
)
def test_malformed_files(tmp_path, text, message):
    with pytest.raises(DataError, match=message) as error:
        read_dataset(written(tmp_path, text))
    assert "\n" not in str(error.value)


def test_line_numbers_count_over_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(sparse_rows, "BLOCK_BYTES", 16)
    path = written(tmp_path, "60 9 9\n" + "1 1:1\n" * 50 + "1 1:x\n" + "1 1:1\n" * 9)
    with pytest.raises(DataError, match=r"a\.txt:52: expected a finite"):
        read_dataset(path)


def test_blank_lines_after_the_last_row_are_no_rows(tmp_path):
    assert len(read_dataset(written(tmp_path, "1 9 9\n1 1:1\n\n \n"))) == 1


def test_a_gzip_file_cut_short(tmp_path):
    path = written(tmp_path, "1000 9 9\n" + "1 1:1\n" * 1000, "a.txt.gz")
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"a\.txt\.gz must be readable, but is not .*download or compress it again"):
        read_dataset(path)


def test_labels_beside_give_the_names(tmp_path):
    path = written(tmp_path, "1 3 2\n1 0:1\n")
    (tmp_path / "a.labels.jsonl").write_text('{"label": "cat"}\n{"label": "dog"}\n{"label": "pet"}\n')
    (tmp_path / "a.hierarchy.tsv").write_text("cat\tpet\ndog\tpet\npet\tanimal\n")
    dataset = read_dataset(path)
    assert list(dataset.labels.names) == ["cat", "dog", "pet", "animal"]
    assert dataset.Y.toarray().tolist() == [[0, 1, 0, 0]]
    assert dataset.labels.hierarchy.levels.tolist() == [2, 2, 1, 0]


def test_too_few_labels_beside(tmp_path):
    path = written(tmp_path, "1 3 2\n1 0:1\n")
    (tmp_path / "a.labels.jsonl").write_text('{"label": "cat"}\n')
    with pytest.raises(DataError, match=r"a\.txt:1: .* the header says 2 and its labels file has 1; give the label"):
        read_dataset(path)


def test_given_labels_may_be_more_but_not_fewer(tmp_path):
    path = written(tmp_path, "1 3 2\n1 0:1\n")
    wider = read_dataset(path, LabelSpace(["a", "b", "c"]))
    assert (wider.Y.shape, list(wider.labels.names)) == ((1, 3), ["a", "b", "c"])
    with pytest.raises(DataError, match=r"a\.txt:1: .* the header says 2 and the label space has 1; give"):
        xmc.read(path, LabelSpace(["a"]))


def test_written_as_the_format_says(tmp_path):
    Y = sp.csr_matrix((np.array([1, 1, 0, 1], np.float32), [0, 2, 1, 1], [0, 2, 3, 4]), shape=(3, 3))
    X = sp.csr_matrix(np.array([[0, 0.1], [2, 0], [0, 0]], np.float32))
    write_dataset(Dataset(Y, LabelSpace.numbered(3), X=X), tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == "3 2 3\n0,2 1:0.1\n 0:2\n1\n"
    assert Y.nnz == 4  # the explicit zero is left out of the file, not of the caller's matrix


def test_texts_cannot_be_written(tmp_path):
    dataset = Dataset(sp.csr_matrix((1, 1), dtype="f4"), LabelSpace(["a"]), texts=["b"])
    with pytest.raises(DataError, match=r"a\.txt must have features, but the data set has texts only; write .jsonl"):
        write_dataset(dataset, tmp_path / "a.txt")
