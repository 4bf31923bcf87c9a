"""Label vectors as the paper has them, and from a file that may come from anyone."""

import io
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError, ParameterError
from labelspace.labels.codes import make_codes
from labelspace.models.secseq.label_embeddings import embed_labels, read_label_vectors
from labelspace.models.secseq.model import SeCSeq

Y = sp.csr_matrix((np.random.default_rng(0).random((30, 6)) < 0.3).astype(np.float32))


def test_instances_are_the_documents_that_have_the_label():
    vectors = embed_labels("instances", None, Y, None, dim=None, center=False)
    assert np.array_equal(vectors.toarray(), Y.toarray().T)
    reduced = embed_labels("instances", None, Y, None, dim=6, center=False)
    assert np.allclose(reduced @ reduced.T, Y.toarray().T @ Y.toarray(), atol=1e-4)


@pytest.mark.parametrize("quantizer", ["ordinal", "uniform"])
def test_codes_of_instances_are_quantized_projections(quantizer):
    """Eq. 4 of SeCSeq: z = v R, each column of which is cut into K parts, by rank or by value."""
    vectors = embed_labels("instances", None, Y, None, dim=None, center=False)
    codes = make_codes(vectors, 3, 4, "projection", quantizer, seed=8)
    R = [np.random.default_rng(8)]
    for d in range(4):
        z = Y.toarray().T @ R[0].standard_normal((1, 30), np.float32)[0]
        if quantizer == "ordinal":
            expected = np.argsort(np.argsort(z)) * 3 // 6
        else:
            expected = np.minimum((z - z.min()) / (z.max() - z.min()) * 3, 2).astype(int)
        assert codes.digits[:, d].tolist() == expected.tolist()
    dense = make_codes(vectors.toarray(), 3, 4, "projection", quantizer, seed=8)
    assert np.array_equal(codes.digits, dense.digits), "sparse or not"


def test_sparse_vectors_are_projected_only():
    with pytest.raises(ParameterError, match="sparse vectors need scheme projection, but it is 'tree'; give dense"):
        make_codes(Y.T.tocsr(), 3, 4, "tree", "ordinal", seed=0)
    with pytest.raises(ParameterError, match="embedding_dim=none with label_vectors=instances needs"):
        SeCSeq(label_vectors="instances", embedding_dim=None, coding="projection").check_params()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8", ">f8"])
def test_vectors_of_a_file_are_used_as_they_are_but_for_one_scale(tmp_path, dtype):
    table = np.random.default_rng(1).integers(0, 9, (6, 4)).astype(dtype)
    np.save(tmp_path / "v.npy", table)
    vectors = embed_labels(str(tmp_path / "v.npy"), None, Y, None, dim=None, center=False)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors * table.max(), table)
    reduced = embed_labels(str(tmp_path / "v.npy"), None, Y, None, dim=4)
    assert reduced.shape == (6, 4)
    assert np.allclose(np.linalg.norm(reduced, axis=1), 1)


def test_large_values_and_zeros_are_accepted(tmp_path):
    table = np.array([[1e300, 0], [-1e300, 1]])
    np.save(tmp_path / "v.npy", np.asfortranarray(table))
    assert read_label_vectors(str(tmp_path / "v.npy"), 2).tolist() == [[1, 0], [-1, 0]]
    np.save(tmp_path / "v.npy", np.zeros((2, 3)))
    assert not read_label_vectors(str(tmp_path / "v.npy"), 2).any()


class Harmful:
    """Unpickling it would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def saved(array):
    out = io.BytesIO()
    np.save(out, array, allow_pickle=True)
    return out.getvalue()


def zipped():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.npy", saved(np.zeros((6, 4))))
    return out.getvalue()


VALID = saved(np.ones((6, 4)))
HOSTILE = {
    "empty": b"",
    "text": b"label vectors",
    "cut": VALID[:-8],
    "cut header": VALID[:40],
    "other header": VALID.replace(b"'shape': (6, 4)", b"'shape': (6, 4, "),
    "huge shape": VALID.replace(b"(6, 4)", b"(6, 2**60)"),
    "too large": VALID.replace(b"(6, 4), }    ", b"(6, 999999999), }"),
    "negative shape": VALID.replace(b"(6, 4), ", b"(6, -4),"),
    "dtype": VALID.replace(b"'<f8'", b"'|O8'"),
    "version": VALID[:6] + b"\x09" + VALID[7:],
    "archive": zipped(),
    "other labels": saved(np.ones((5, 4))),
    "one dimension": saved(np.ones(6)),
    "no columns": saved(np.ones((6, 0))),
    "text values": saved(np.full((6, 4), "a")),
    "booleans": saved(np.ones((6, 4), bool)),
    "complex": saved(np.ones((6, 4), complex)),
    "record": saved(np.ones((6, 4), [("a", "f4")])),
    "nan": saved(np.full((6, 4), np.nan)),
    "infinite": saved(np.array([[1.0] * 4] * 5 + [[-np.inf] * 4])),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(tmp_path, name):
    path = tmp_path / "v.npy"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(DataError, match=r"v\.npy must hold .*; ") as refused:
        read_label_vectors(str(path), 6)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


def test_nothing_of_a_file_is_executed(tmp_path):
    (tmp_path / "v.npy").write_bytes(saved(np.array([[Harmful(tmp_path / "made")]], object)))
    with pytest.raises(DataError, match="must hold an array of numbers"):
        read_label_vectors(str(tmp_path / "v.npy"), 1)
    assert not (tmp_path / "made").exists()


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    (tmp_path / "folder.npy").mkdir()
    os.mkfifo(tmp_path / "pipe.npy")
    for name in ("missing.npy", "folder.npy", "pipe.npy"):
        with pytest.raises(DataError, match="label_vectors must be a file, but there is none at .*; give the path"):
            read_label_vectors(str(tmp_path / name), 6)
