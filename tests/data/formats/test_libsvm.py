"""LIBSVM's multi-label format."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from labelspace.data.formats import libsvm
from labelspace.data.read_options import ReadOptions
from labelspace.errors import DataError
from labelspace.types import Dataset, LabelSpace
from tests.data.formats.text_cases import UTF_8, damaged, few, labeled, refusal

FILE = "0,2 1:0.5 3:-1e-3\n 2:1\n2:7 4:1 # a comment\n1\n"


def read(path, content, labels=None, options=UTF_8):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return libsvm.read(path, labels, options)


def test_a_file_by_hand(tmp_path):
    said = []
    dataset = read(tmp_path / "a.svm", FILE, options=ReadOptions(say=said.append))
    X = [[0.5, 0, -1e-3, 0], [0, 1, 0, 0], [0, 7, 0, 1], [0, 0, 0, 0]]
    assert dataset.X.toarray().tolist() == np.array(X, np.float32).tolist()
    assert dataset.Y.toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert (list(dataset.labels.names), dataset.texts, dataset.name) == (["0", "1", "2"], None, "a")
    assert said == [f"{tmp_path / 'a.svm'}: feature indices count from 1"]


def test_documents_to_tag_have_features_from_0(tmp_path):
    (tmp_path / "a.svm").write_text(FILE)
    found = list(libsvm.documents(tmp_path / "a.svm", UTF_8))
    assert [record.features for record in found] == ["0:0.5 2:-0.001", "1:1", "1:7 3:1", ""]
    assert [(record.id, record.labels) for record in found] == [(str(row), ()) for row in range(4)]


@pytest.mark.parametrize("row", ["0 0:1 2:1", "0:1 2:1", "0\t0:1\t2:1", "0 00:1 2:1", "0 0:0 2:1"])
def test_index_0_means_indices_from_0(tmp_path, row):
    said = []
    dataset = read(tmp_path / "a.svm", f"{row}\n1 1:1\n", options=ReadOptions(say=said.append))
    assert dataset.X.shape == (2, 3)
    assert dataset.X.toarray()[1].tolist() == [0, 1, 0]
    assert said[0].endswith("count from 0")


def test_splits_of_a_folder_count_alike(tmp_path):
    (tmp_path / "train.svm").write_text("0 0:1 2:1\n")
    assert read(tmp_path / "test.svm", "0 2:1\n").X.toarray().tolist() == [[0, 0, 1]]
    assert read(tmp_path / "other.svm", "0 2:1\n").X.toarray().tolist() == [[0, 1]]


def test_names_of_labels(tmp_path):
    dataset = read(tmp_path / "a.svm", "c#,java 1:1\n+1 2:1\n")
    assert list(dataset.labels.names) == ["+1", "c#", "java"]
    known = read(tmp_path / "a.svm", "java,new 1:1\n", LabelSpace(["java", "c"]))
    assert (list(known.labels.names), known.Y.toarray().tolist()) == (["java", "c", "new"], [[1, 0, 1]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,,2 1:1\n", r"a\.svm:1: expected label names, but one is empty"),
        ("1 1:1\n2 x:1\n", r"a\.svm:2: expected index:value with an index from 0 to .*, but found 'x:1'"),
        ("1 1:1\n2 1\n", r"a\.svm:2: expected index:value .*, but found '1'"),
        ("1 1:x\n", r"a\.svm:1: expected a finite number after the colon, but found '1:x'"),
        ("1 1:1e999\n", r"a\.svm:1: expected a finite number"),
        ("1 -3:1\n", r"a\.svm:1: expected index:value .*, but found '-3:1'"),
        ("1 99999999999:1\n", r"a\.svm:1: expected index:value .*, but found '99999999999:1'"),
        ("1 2000000000:1\n", r"a\.svm: expected at most 16777216 features, but there are 2000000001; correct"),
        ("9999999999 1:1\n", r"a\.svm:1: expected a label id from 0 to 2147483646, but one is 9999999999"),
        ("2000000000 1:1\n", r"a\.svm:1: expected at most 5000000 labels without names, but the ids need 2000000001"),
        (
            "1 1:1\nname 1:1\n",
            r"a\.svm:2: expected all labels to be ids, as in other lines, but one is the name 'name'",
        ),
        ("1 1:1\n\n2 1:1\n", r"a\.svm:2: expected a document on every line, but the line is blank"),
        ("# only a comment\n", r"a\.svm must hold at least one document, but has none"),
    ],
)
def test_malformed_files(tmp_path, content, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path / "a.svm", content)


@few
@given(content=damaged(FILE.encode()))
def test_damaged_files_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "damaged.svm"
    message = refusal(read, path, content)
    assert message is None or re.search(r"damaged\.svm(:\d+: expected | must hold |: expected at most)", message)


floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def feature_datasets(draw):
    n = draw(st.integers(1, 4))
    X = draw(arrays.arrays(np.float32, (n, draw(st.integers(1, 5))), elements=floats | st.just(0.0)))
    Y = draw(arrays.arrays(np.bool_, (n, draw(st.integers(1, 12)))))
    return Dataset(sp.csr_matrix(Y, dtype=np.float32), LabelSpace.numbered(Y.shape[1]), X=sp.csr_matrix(X))


@few
@given(dataset=feature_datasets())
def test_round_trip(tmp_path_factory, dataset):
    path = tmp_path_factory.getbasetemp() / "round_trip.svm"
    path.unlink(missing_ok=True)
    message = refusal(libsvm.write, path, dataset)
    if message is not None:
        assert "expected features or labels in every document, but one has neither" in message
        assert not path.exists()
        return
    back = libsvm.read(path, dataset.labels, UTF_8)
    assert (back.Y != dataset.Y).nnz == 0
    back.X.resize(dataset.X.shape)
    assert (back.X != dataset.X).nnz == 0


@few
@given(dataset=feature_datasets())
def test_scikit_learn_reads_the_same(tmp_path_factory, dataset):
    path = tmp_path_factory.getbasetemp() / "for_scikit_learn.svm"
    if refusal(libsvm.write, path, dataset):
        return
    X, labels = load_svmlight_file(str(path), n_features=dataset.X.shape[1], multilabel=True, zero_based=False)
    assert (X.astype(np.float32) != dataset.X).nnz == 0
    assert [list(map(int, row)) for row in labels] == [np.flatnonzero(row).tolist() for row in dataset.Y.toarray()]


@pytest.mark.parametrize("zero_based", [True, False])
@pytest.mark.parametrize("comment", [None, "by hand"])
def test_files_of_scikit_learn_are_read(tmp_path, data, zero_based, comment):
    path, X, Y = tmp_path / "a.svm", data[0].X[:50], data[0].Y[:50]
    dump_svmlight_file(X, Y, str(path), zero_based=zero_based, multilabel=True, comment=comment)
    back = libsvm.read(path, LabelSpace.numbered(Y.shape[1]), UTF_8)
    assert (back.Y != Y).nnz == 0
    back.X.resize(X.shape)
    np.testing.assert_allclose(back.X.toarray(), X.toarray(), rtol=1e-6)


def test_texts_alone_are_not_written(tmp_path):
    with pytest.raises(DataError, match=r"a\.svm must have features, but the data set has texts only; write"):
        libsvm.write(tmp_path / "a.svm", labeled(["a"], "text"))


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (["1,5 3:0.5 7:1", " 1:1", "2:1 3:1e-5", "# comment", ""], True),
        (["red,green 3:.5\t7:-1 # comment"], True),
        (["2 10 5", "1,5 3:0.5"], False),
        (["just a text"], False),
        (["Luke 3:16 says"], False),
        (["1 x:1"], False),
        ([], False),
    ],
)
def test_recognized_by_its_rows(head, expected):
    assert libsvm.recognizes(head) is expected
