import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.errors import DataError, ParameterError
from labelspace.index import Exact
from labelspace.index.choice import recall
from labelspace.index.exact import STORAGES
from labelspace.kernels import threads
from labelspace.types import TopK
from tests.checks import same_topk


def twin(queries, vectors, k):
    return TopK.from_scores(queries.astype(np.float64) @ vectors.astype(np.float64).T, k)


@given(st.integers(1, 200), st.integers(1, 8), st.integers(1, 9), st.sampled_from(["float32", "int8+float32"]))
def test_it_equals_sorting_all_products(n, d, k, storage):
    rng = np.random.default_rng(n * d * k)
    vectors, queries = rng.standard_normal((n, d)), rng.standard_normal((40, d))
    top, expected = Exact(vectors, np.arange(n), storage).search(queries, k), twin(queries, vectors, k)
    assert recall(top, expected) > (0.999 if storage == "float32" else 0.99)
    assert np.allclose(top.scores, expected.scores, atol=1e-4)


def test_equal_scores_go_to_the_smaller_id_in_any_order():
    ids = np.random.default_rng(0).permutation(200)
    for storage in STORAGES:
        assert Exact(np.ones((200, 3)), ids, storage).search(np.ones((1, 3)), 4).labels.tolist() == [[0, 1, 2, 3]]


@pytest.mark.parametrize("storage", STORAGES)
def test_missing_labels_are_padded(storage):
    top = Exact([[1.0, 0.0], [0.0, 2.0]], [7, 3], storage).search([[1.0, 1.0], [-1.0, 0.5]], k=4)
    assert top.labels.tolist() == [[3, 7, -1, -1], [3, 7, -1, -1]]
    assert np.allclose(top.scores[:, :2], [[2, 1], [1, -1]], atol=0.02)
    assert np.isneginf(top.scores[:, 2:]).all()
    empty = Exact(np.empty((0, 2)), [], storage)
    assert empty.search([[1.0, 1.0]], 2).labels.tolist() == [[-1, -1]]
    assert len(empty.search(np.empty((0, 2)), 2)) == 0


@pytest.mark.parametrize("storage", STORAGES)
def test_results_do_not_depend_on_batch_or_threads(clustered, storage, monkeypatch):
    vectors, ids, queries = clustered
    index = Exact(vectors, ids, storage)
    monkeypatch.setenv(threads.THREADS_VARIABLE, "1")
    together = index.search(queries, 5)
    monkeypatch.setenv(threads.THREADS_VARIABLE, "3")
    assert same_topk(index.search(queries, 5), together)
    for row in (0, 31, 99):
        assert same_topk(
            index.search(queries[row : row + 1], 5), TopK(*(a[row : row + 1] for a in vars(together).values()))
        )


@pytest.mark.parametrize(("storage", "min_recall"), [("int8", 0.9), ("int8+float32", 1.0)])
def test_int8_has_nearly_the_recall_of_float32(clustered, storage, min_recall):
    vectors, ids, queries = clustered
    truth = Exact(vectors, ids).search(queries, 5)
    top = Exact(vectors, ids, storage).search(queries, 5)
    assert recall(top, truth) >= min_recall
    assert np.allclose(top.scores, truth.scores, rtol=0.02)


@pytest.mark.parametrize("storage", STORAGES)
def test_adding_and_removing_equals_a_rebuild(clustered, storage):
    vectors, ids, queries = clustered
    index = Exact(vectors[:2000], ids[:2000], storage)
    index.add(ids[2000:], vectors[2000:])
    index.remove(ids[500:900])
    keep = np.r_[0:500, 900:3000]
    assert same_topk(index.search(queries, 5), Exact(vectors[keep], ids[keep], storage).search(queries, 5))
    assert sorted(index.ids) == sorted(ids[keep])
    assert len(index) == 2600
    index.remove(index.ids)
    assert (index.search(queries, 5).labels == -1).all()


def test_the_caller_s_vectors_are_not_modified(clustered):
    vectors, ids, queries = (array.copy() for array in clustered)
    index = Exact(vectors, ids)
    index.remove(ids[:5])
    index.search(queries)
    assert all(np.array_equal(mine, given) for mine, given in zip((vectors, ids, queries), clustered, strict=True))


def test_invalid_input_is_rejected(clustered):
    vectors, ids, queries = clustered
    index = Exact(vectors, ids)
    with pytest.raises(DataError, match="one id per vector, but there are 2 ids for 3000 vectors; pass one each"):
        Exact(vectors, [0, 1])
    with pytest.raises(DataError, match="ids must be unique, but 4 occurs twice"):
        Exact(np.eye(2), [4, 4])
    with pytest.raises(DataError, match="at least 0 and below 2.31, but one is -1"):
        Exact(np.eye(2), [4, -1])
    with pytest.raises(DataError, match="integers, but have shape .* and type float64"):
        Exact(np.eye(2), [0.5, 1.0])
    with pytest.raises(DataError, match="vectors must have two dimensions, but have shape .3,."):
        Exact(np.ones(3), [0, 1, 2])
    with pytest.raises(DataError, match=r"queries must have rows of 16 numbers, but have shape \(1, 15\)"):
        index.search(queries[:1, :15])
    for wrong in (np.nan, np.inf, -np.inf):
        with pytest.raises(DataError, match="queries must hold finite numbers"):
            index.search(np.full((1, 16), wrong))
        with pytest.raises(DataError, match="vectors must hold finite numbers"):
            index.add([9999], np.full((1, 16), wrong))
    with pytest.raises(DataError, match=f"must be new, but {ids[0]} is in the index; remove it first"):
        index.add(ids[:1], vectors[:1])
    with pytest.raises(DataError, match="must be in the index, but 9999 is not; leave it out"):
        index.remove([9999])
    with pytest.raises(ParameterError, match="k must be at least 1, but is 0"):
        index.search(queries, 0)
    with pytest.raises(ParameterError, match="storage must be one of .*, but is 'int4'"):
        Exact(vectors, ids, "int4")


@pytest.mark.parametrize("storage", STORAGES)
def test_a_part_of_an_index_has_the_same_scores(storage):
    rng = np.random.default_rng(8)
    vectors, queries = rng.standard_normal((60, 8)).astype(np.float32), rng.standard_normal((5, 8)).astype(np.float32)
    index, allowed = Exact(vectors, np.arange(60), storage), rng.random(60) < 0.3
    everything = index.search(queries, 60)
    assert same_topk(index.among(allowed).search(queries, 7), everything.among(allowed, 7))
    assert same_topk(index.search(queries, 60), everything), "the index stays as it was"
