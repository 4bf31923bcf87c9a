import sys

import numpy as np
import pytest

from labelspace.errors import DataError, MissingExtraError, ParameterError
from labelspace.index import Approximate, Exact, choose
from labelspace.index.choice import recall
from labelspace.kernels import threads

faiss = pytest.importorskip("faiss", reason="needs faiss, which the extra ann installs")

ALL = [("ivf", "float32"), ("ivf", "fp16"), ("ivf", "int8"), ("hnsw", "float32"), ("hnsw", "fp16"), ("hnsw", "int8")]


def faiss_bytes(index):
    return faiss.serialize_index(index._faiss).tobytes()


@pytest.mark.parametrize(("kind", "storage"), ALL)
def test_it_agrees_with_exact_search(clustered, kind, storage):
    vectors, ids, queries = clustered
    truth = Exact(vectors, ids).search(queries, 5)
    top = Approximate(vectors, ids, kind, storage, effort=64).search(queries, 5)
    assert recall(top, truth) > (0.9 if storage == "int8" else 0.97)
    assert (np.diff(top.scores, axis=1) <= 0).all()
    agree = top.labels[:, 0] == truth.labels[:, 0]
    assert np.allclose(top.scores[agree, 0], truth.scores[agree, 0], rtol=0.02)


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_removed_ids_are_never_returned_and_added_ones_are(clustered, kind):
    vectors, ids, queries = clustered
    index = Approximate(vectors[:2000], ids[:2000], kind, effort=64)
    gone = index.search(queries, 1).labels[:, 0]
    index.remove(np.unique(gone))
    assert not np.isin(index.search(queries, 50).labels, gone).any()
    index.add(ids[2000:], vectors[2000:])
    keep = np.r_[0:2000, 2000:3000][~np.isin(ids, gone)]
    truth = Exact(vectors[keep], ids[keep]).search(queries, 5)
    top = index.search(queries, 5)
    assert recall(top, truth) > 0.97
    assert np.isin(top.labels, ids[2000:]).any()
    assert len(index) == len(keep)


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_an_id_can_come_back_with_another_vector(clustered, kind):
    vectors, ids, _ = clustered
    index = Approximate(vectors, ids, kind, effort=64)
    index.remove(ids[:1])
    index.add(ids[:1], -5 * vectors[:1])
    top = index.search(np.stack([vectors[0], -vectors[0]]), 3)
    assert ids[0] not in top.labels[0]
    assert top.labels[1, 0] == ids[0]


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_results_do_not_depend_on_batch_or_threads_and_the_index_not_on_the_run(clustered, kind, monkeypatch):
    vectors, ids, queries = clustered
    index = Approximate(vectors, ids, kind, effort=8)
    monkeypatch.setenv(threads.THREADS_VARIABLE, "1")
    together = index.search(queries, 5)
    monkeypatch.setenv(threads.THREADS_VARIABLE, "3")
    again = index.search(queries, 5)
    assert np.array_equal(again.labels, together.labels)
    assert np.array_equal(again.scores, together.scores)
    for row in range(0, 100, 9):
        alone = index.search(queries[row : row + 1], 5)
        assert np.array_equal(alone.labels[0], together.labels[row])
        assert np.array_equal(alone.scores[0], together.scores[row])
    assert faiss_bytes(Approximate(vectors, ids, kind, effort=8)) == faiss_bytes(index)


def test_another_seed_is_another_index(clustered):
    vectors, ids, _ = clustered
    assert faiss_bytes(Approximate(vectors, ids, seed=1)) != faiss_bytes(Approximate(vectors, ids, seed=0))


def test_faiss_keeps_the_threads_it_had(clustered):
    vectors, ids, queries = clustered
    before = faiss.omp_get_max_threads()
    Approximate(vectors, ids).search(queries, 5)
    assert faiss.omp_get_max_threads() == before


def test_equal_scores_go_to_the_smaller_id():
    ids = np.random.default_rng(0).permutation(20)
    top = Approximate(np.ones((20, 4)), ids, effort=20).search(np.ones((1, 4)), 30)
    assert top.labels[0, :20].tolist() == list(range(20))
    assert (top.labels[0, 20:] == -1).all()
    assert np.isneginf(top.scores[0, 20:]).all()


def test_everything_may_be_removed(clustered):
    vectors, ids, queries = clustered
    for kind in ("ivf", "hnsw"):
        index = Approximate(vectors[:300], ids[:300], kind)
        index.remove(ids[:300])
        assert (index.search(queries, 3).labels == -1).all()
        assert len(index.search(queries[:0], 3)) == 0


def test_progress_is_reported(clustered):
    calls = []
    Approximate(*clustered[:2], progress=lambda done, total: calls.append((done, total)))
    assert calls == [(3000, 3000)]


def test_invalid_input_is_rejected(clustered):
    vectors, ids, _ = clustered
    with pytest.raises(ParameterError, match="kind must be one of ivf, hnsw, but is 'lsh'"):
        Approximate(vectors, ids, "lsh")
    with pytest.raises(ParameterError, match="storage must be one of float32, fp16, int8, but is 'pq'"):
        Approximate(vectors, ids, storage="pq")
    with pytest.raises(ParameterError, match="effort must be at least 1, but is 0"):
        Approximate(vectors, ids, effort=0)
    with pytest.raises(DataError, match=r"must have vectors, but they have shape \(0, 4\); use Exact"):
        Approximate(np.empty((0, 4)), [])


@pytest.mark.parametrize("kind", ["ivf", "hnsw"])
def test_without_faiss_the_extra_is_named(clustered, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "faiss", None)
    words = rf"an index of kind '{kind}' needs the package 'faiss', .*; run: pip install 'labelspace\[ann\]'$"
    with pytest.raises(MissingExtraError, match=words):
        Approximate(*clustered[:2], kind)
    with pytest.raises(MissingExtraError, match=words):
        choose(*clustered, kind=kind)
