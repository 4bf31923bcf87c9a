"""Every format to every other and back."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.label_files import write_hierarchy, write_labels
from labelspace.data.source import read_dataset, write_dataset
from labelspace.data.synthetic import planted
from labelspace.types import Dataset, LabelSpace

NAMES = ["plain", "a|b", "[x]", "日本 語", 'q"uote', "new\nline", "comma, semi;", "Ünï"]
TEXTS = [
    "",
    " ",
    "one, two",
    'say "hi"',
    "line\nfeed\r\nand\rreturn",
    "tab\t\x00\x1f",
    "\u2028\ufeff😀 e\u0301",
    "'",
    "=1+2",
]
TEXT_ENDINGS = [ending + packed for ending in (".jsonl", ".csv", ".tsv", ".parquet") for packed in ("", ".gz", ".zst")]
FEATURE_ENDINGS = [*TEXT_ENDINGS, ".txt", ".txt.gz"]


def marks(n, n_labels, seed):
    Y = np.random.default_rng(seed).random((n, n_labels)) < 0.3
    Y[0], Y[1] = False, True  # a document without labels, and every label in use
    return sp.csr_matrix(Y, dtype=np.float32)


@pytest.fixture
def texts():
    ids = [f"id {i}" for i in range(len(TEXTS))]
    return Dataset(marks(len(TEXTS), len(NAMES), 0), LabelSpace(sorted(NAMES)), texts=TEXTS, ids=ids)


@pytest.fixture
def features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 15)) * 10.0 ** rng.integers(-30, 30, (20, 15)) * (rng.random((20, 15)) < 0.3)
    X[3], X[19, 14] = 0, 1  # an empty row; the last column is in use, so that its number survives
    return Dataset(marks(20, 12, 1), LabelSpace.numbered(12), X=sp.csr_matrix(X, dtype=np.float32))


def assert_same(one, other):
    assert list(one.labels.names) == list(other.labels.names)
    assert (one.Y != other.Y).nnz == 0
    assert one.Y.dtype == other.Y.dtype
    assert (one.texts is None) == (other.texts is None)
    assert one.texts is None or list(one.texts) == list(other.texts)
    assert (one.X is None) == (other.X is None)
    assert one.X is None or (one.X != other.X).nnz == 0


@pytest.mark.parametrize(("first", "second"), list(itertools.pairwise([*TEXT_ENDINGS, TEXT_ENDINGS[0]])))
def test_texts(tmp_path, texts, first, second):
    write_dataset(texts, tmp_path / f"a{first}")
    there = read_dataset(tmp_path / f"a{first}")
    write_dataset(there, tmp_path / f"b{second}")
    back = read_dataset(tmp_path / f"b{second}")
    assert_same(back, texts)
    assert list(back.ids) == list(texts.ids)


@pytest.mark.parametrize(("first", "second"), list(itertools.pairwise([*FEATURE_ENDINGS, FEATURE_ENDINGS[0]])))
def test_features_and_numbered_labels(tmp_path, features, first, second):
    write_dataset(features, tmp_path / f"a{first}")
    write_dataset(read_dataset(tmp_path / f"a{first}"), tmp_path / f"b{second}")
    assert_same(read_dataset(tmp_path / f"b{second}"), features)


@pytest.mark.parametrize("ending", TEXT_ENDINGS)
def test_texts_and_features_together_with_label_files(tmp_path, ending):
    dataset = planted(n=60, d=80, l=12, texts=True, seed=2)
    write_dataset(dataset, tmp_path / f"a{ending}")
    write_labels(tmp_path / "a.labels.jsonl", dataset.labels)
    write_hierarchy(tmp_path / "a.hierarchy.tsv", dataset.labels)
    back = read_dataset(tmp_path / f"a{ending}", None)
    assert back.X.shape[1] <= dataset.X.shape[1]
    back.X.resize(dataset.X.shape)
    assert_same(back, dataset)
    assert back.labels.hierarchy.edges.tolist() == dataset.labels.hierarchy.edges.tolist()


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet", ".txt"])
def test_writing_changes_nothing(tmp_path, features, ending):
    before = features.X.copy(), features.Y.copy()
    write_dataset(features, tmp_path / f"a{ending}")
    assert (features.X != before[0]).nnz == (features.Y != before[1]).nnz == 0


def test_a_batch_is_not_the_whole(tmp_path):
    n = 9000  # more than two batches of the Parquet writer and of the feature parser
    X = sp.csr_matrix((np.arange(1, n + 1, dtype=np.float32), np.arange(n) % 7, np.arange(n + 1)), shape=(n, 7))
    dataset = Dataset(sp.csr_matrix((n, 1), dtype=np.float32), LabelSpace.numbered(1), X=X)
    write_dataset(dataset, tmp_path / "a.parquet")
    back = read_dataset(tmp_path / "a.parquet", dataset.labels)
    assert_same(back, dataset)
    assert list(back.ids) == [str(i) for i in range(n)]
