import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data import document_sketch
from labelspace.data.document_sketch import DocumentSketch, document_hashes
from labelspace.estimator.state_constraints import StateError

TEXT_HASHES = ["983c707d7703a9e4", "e2d015620279cae6"]
ROW_HASHES = ["8e926a9664e48788", "ba63ac8030457e1c"]


def test_hashes_are_the_same_everywhere():
    assert [f"{value:016x}" for value in document_hashes(["bake bread", "Ünï \ud800"])] == TEXT_HASHES
    X = sp.csr_matrix([[0, 1.5, 0, 2], [0, 0, 0, 0], [1, 0, 0, 0]], dtype=np.float32)
    assert [f"{value:016x}" for value in document_hashes(X)] == ROW_HASHES


def test_empty_documents_are_left_out():
    assert len(document_hashes(["", " \n", "a"])) == len(document_hashes(np.array(["", "a"]))) == 1
    assert DocumentSketch.of(["", "a"]).share(["", " "]) is None
    assert DocumentSketch.of([""]).share(["a"]) == 0


def test_the_same_row_however_it_is_stored():
    X = sp.random(20, 50, 0.2, "csr", np.float32, rng=0)
    shuffled = sp.csr_matrix((X.data[::-1], X.indices[::-1], X.nnz - X.indptr[::-1]), shape=X.shape)
    assert not shuffled.has_sorted_indices
    sketch = DocumentSketch.of(X)
    assert sketch.share(shuffled) == 1
    wide = sp.csr_matrix((X.data.astype(np.float64), X.indices.astype(np.int64), X.indptr), shape=(20, 99))
    assert sketch.share(wide) == 1
    assert sketch.share(2 * X) == 0


def test_a_full_sketch_estimates_the_share(monkeypatch):
    monkeypatch.setattr(document_sketch, "SIZE", 1000)
    texts = [f"text {i}" for i in range(20_000)]
    sketch = DocumentSketch.of(texts)
    assert len(sketch.hashes_) == 1000
    assert not sketch.complete_
    assert sketch.share(texts[:10_000]) == 1
    assert sketch.share([f"other {i}" for i in range(10_000)]) == 0
    mixed = texts[:2_000] + [f"other {i}" for i in range(8_000)]
    assert sketch.share(mixed) == pytest.approx(0.2, abs=0.05)


def test_a_damaged_sketch_is_refused():
    sketch = DocumentSketch.of(["a"])
    sketch.check_state()
    sketch.hashes_, sketch.complete_ = np.zeros(0, np.uint64), False
    with pytest.raises(StateError, match="must have hashes of documents"):
        sketch.check_state()


def test_duplicates_take_one_place(monkeypatch):
    monkeypatch.setattr(document_sketch, "SIZE", 2)
    sketch = DocumentSketch.of(["a", "b"] * 10)
    assert sketch.complete_
    assert sketch.share(["a", "a", "a", "c"]) == 0.75
