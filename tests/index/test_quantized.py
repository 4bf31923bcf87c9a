import numpy as np
import pytest

from labelspace import store
from labelspace.errors import DataError, ModelError, ParameterError
from labelspace.index import Exact, Quantized
from labelspace.index.choice import recall
from labelspace.kernels import threads
from tests.checks import same_topk


def save_and_load(index, folder):
    store.save(folder, {}, {"index": index}, None)
    return store.load_part(folder, store.read_manifest(folder), "index", Quantized)


def twin_estimates(index, vectors, queries):
    """Step 4 without bit planes: every estimate from the levels of x, with queries that are not rounded."""
    x = (vectors - index.center_) @ index.label_map_
    step = np.sqrt((x**2).mean(axis=1, keepdims=True)) * {1: 1.596, 2: 0.9957, 4: 0.3352}[index.bits]
    half = 2 ** (index.bits - 1)
    levels = 2 * np.clip(np.floor(x / step), -half, half - 1) + 1
    return (queries @ index.query_map_) @ (levels * ((x * x).sum(axis=1) / (x * levels).sum(axis=1))[:, None]).T


@pytest.mark.parametrize(("bits", "least"), [(1, 0.8), (2, 0.95), (4, 0.99)])
@pytest.mark.parametrize("fitted", [True, False])
def test_it_agrees_with_exact_search(clustered, bits, least, fitted):
    vectors, ids, queries = clustered
    truth = Exact(vectors, ids).search(queries, 5)
    index = Quantized(vectors, ids, bits, shortlist=64, queries=queries if fitted else None)
    top = index.search(queries, 5)
    assert recall(top, truth) > least
    assert (np.diff(top.scores, axis=1) <= 0).all()
    agree = top.labels == truth.labels
    assert np.allclose(top.scores[agree], truth.scores[agree], rtol=1e-3)


@pytest.mark.parametrize("d", [5, 64, 70, 200])
def test_the_maps_keep_inner_products_of_centered_vectors(d):
    rng = np.random.default_rng(0)
    vectors, queries = rng.standard_normal((300, d)) + 1, rng.standard_normal((200, d)) @ rng.standard_normal((d, d))
    index = Quantized(vectors, range(300), queries=queries)
    width = index.query_map_.shape[1]
    assert width == {5: 64, 64: 64, 70: 64, 200: 256 - 64}[d]
    wanted = queries @ (vectors - vectors.mean(axis=0)).T
    found = (queries @ index.query_map_) @ ((vectors - index.center_) @ index.label_map_).T
    error = ((found - wanted) ** 2).sum() / (wanted**2).sum()
    assert error < (1e-8 if d <= width else 0.05)


def test_the_shortlist_is_that_of_the_estimates(clustered):
    vectors, ids, queries = clustered
    index = Quantized(vectors, np.arange(3000), bits=4, shortlist=40, queries=queries)
    estimates = twin_estimates(index, vectors, queries)
    first = np.argsort(-estimates, axis=1)[:, :20]
    found = index.search(queries, 40).labels
    assert np.mean([np.isin(mine, theirs).mean() for mine, theirs in zip(first, found, strict=True)]) > 0.95


def test_labels_far_from_the_origin_are_told_apart():
    rng = np.random.default_rng(0)
    vectors = (rng.standard_normal((400, 64)) + 100).astype(np.float32)
    queries = rng.standard_normal((50, 64)).astype(np.float32)
    truth = Exact(vectors, range(400)).search(queries, 5)
    assert recall(Quantized(vectors, range(400), 4, shortlist=40).search(queries, 5), truth) > 0.95


def test_results_do_not_depend_on_batch_or_threads_and_the_index_not_on_the_run(clustered, monkeypatch):
    vectors, ids, queries = clustered
    monkeypatch.setenv(threads.THREADS_VARIABLE, "1")
    index = Quantized(vectors, ids, queries=queries)
    together = index.search(queries, 5)
    monkeypatch.setenv(threads.THREADS_VARIABLE, "3")
    again = Quantized(vectors, ids, queries=queries)
    assert np.array_equal(again.planes_, index.planes_)
    assert np.array_equal(again.scales_, index.scales_)
    assert same_topk(again.search(queries, 5), together)
    for row in range(0, 100, 9):
        alone = index.search(queries[row : row + 1], 5)
        assert np.array_equal(alone.labels[0], together.labels[row])
        assert np.array_equal(alone.scores[0], together.scores[row])


def test_the_order_of_the_vectors_does_not_matter_much_and_the_seed_rotates(clustered):
    vectors, ids, queries = clustered
    assert not np.array_equal(Quantized(vectors, ids, seed=1).planes_, Quantized(vectors, ids).planes_)
    order = np.argsort(ids)
    one, other = Quantized(vectors, ids).search(queries, 3), Quantized(vectors[order], ids[order]).search(queries, 3)
    assert (one.labels == other.labels).mean() > 0.99


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_other_bits_share_the_rest(clustered, bits):
    vectors, ids, queries = clustered
    order = np.argsort(ids)
    index = Quantized(vectors[order], ids[order], 2, 64)
    other = index.with_bits(bits, vectors[order])
    assert other.vectors_ is index.vectors_
    expected = Quantized(vectors[order], ids[order], bits, 64)
    assert same_topk(other.search(queries, 5), expected.search(queries, 5))
    assert other.report == expected.report
    assert index.report["storage"] == "2bit+int16"


def test_adding_and_removing_keeps_every_other_label(clustered):
    vectors, ids, queries = clustered
    index = Quantized(vectors[:2000], ids[:2000])
    index.remove(ids[:100])
    index.add(ids[2000:], vectors[2000:])
    assert sorted(index.ids) == sorted(ids[100:])
    truth = Exact(vectors[100:], ids[100:]).search(queries, 5)
    assert recall(index.search(queries, 5), truth) > 0.95
    index.remove(ids[2000:])
    index.add(ids[:100], vectors[:100])
    assert same_topk(index.search(queries, 5), Quantized(vectors[:2000], ids[:2000]).search(queries, 5))
    index.remove(index.ids)
    assert (index.search(queries, 5).labels == -1).all()
    index.add(ids[:1], vectors[:1])
    assert index.search(queries[:1], 2).labels.tolist() == [[ids[0], -1]]


def test_equal_scores_go_to_the_smaller_id_and_missing_ones_are_padded():
    ids = np.random.default_rng(0).permutation(200)
    top = Quantized(np.ones((200, 4)), ids, shortlist=5).search(np.ones((1, 4)), 203)
    assert top.labels[0].tolist() == [*range(200), -1, -1, -1]
    assert np.isneginf(top.scores[0, 200:]).all()


def test_more_labels_than_the_shortlist_are_returned_on_request(clustered):
    vectors, ids, queries = clustered
    top = Quantized(vectors, ids, shortlist=1).search(queries[:2], 700)
    assert (top.labels >= 0).all()
    assert all(len(set(row)) == 700 for row in top.labels)


def test_invalid_input_is_rejected(clustered):
    vectors, ids, _ = clustered
    with pytest.raises(ParameterError, match="bits must be one of 1, 2, 4, but is 3; set it so"):
        Quantized(vectors, ids, bits=3)
    with pytest.raises(ParameterError, match="shortlist must be .*, but is 0"):
        Quantized(vectors, ids, shortlist=0)
    with pytest.raises(DataError, match=r"must have vectors, but they have shape \(0, 4\); use Exact"):
        Quantized(np.empty((0, 4)), [])
    with pytest.raises(DataError, match="queries must have rows of 16 numbers"):
        Quantized(vectors, ids, queries=np.ones((3, 4)))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda index: setattr(index, "planes_", index.planes_[:-1]), "blocks of its labels"),
        (lambda index: setattr(index, "planes_", index.planes_[:, :-1]), "planes of its bits and width"),
        (lambda index: setattr(index, "bits", 4), "planes of its bits and width"),
        (lambda index: setattr(index, "ids_", index.ids_[::-1].copy()), "ids in order"),
        (lambda index: setattr(index, "query_map_", index.query_map_[:, :-1].copy()), "shape"),
        (lambda index: setattr(index, "shortlist", 10**6), "shortlist"),
        (lambda index: setattr(index, "scales_", index.scales_ * np.float32(np.inf)), "finite"),
    ],
)
def test_a_state_that_would_be_read_beyond_its_end_is_rejected(clustered, tmp_path, change, rule):
    vectors, ids, _ = clustered
    index = Quantized(vectors, ids)
    change(index)
    with pytest.raises(ModelError, match=rule):
        save_and_load(index, tmp_path / "model")


def test_a_part_of_an_index_has_the_same_scores():
    rng = np.random.default_rng(8)
    vectors, queries = (
        rng.standard_normal((300, 32)).astype(np.float32),
        rng.standard_normal((5, 32)).astype(np.float32),
    )
    index, allowed = Quantized(vectors, np.arange(300), shortlist=300), rng.random(300) < 0.2
    everything = index.search(queries, 300)
    assert same_topk(index.among(allowed).search(queries, 7), everything.among(allowed, 7))
    assert same_topk(index.search(queries, 300), everything), "the index stays as it was"
