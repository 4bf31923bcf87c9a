import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.errors import DataError, ParameterError
from labelspace.index import PointIndex
from labelspace.index.choice import recall
from labelspace.index.poincare import GEOMETRIES
from labelspace.kernels import threads
from labelspace.types import TopK
from tests.checks import same_topk


def brute(queries, points, ids, k, geometry="poincare"):
    """All keys in float64, sorted; the distance as the textbook has it."""
    x, y, ids = queries.astype(np.float64), points.astype(np.float64), np.asarray(ids)
    gap_x, gap_y = (np.array([math.fsum([1.0, *-(row**2)]) for row in rows]) for rows in (x, y))
    between = np.zeros((len(x), len(y)))
    for j in range(x.shape[1]):
        between += (x[:, j, None] - y[:, j]) ** 2
    keys = between if geometry == "euclidean" else between * (1 / gap_y)
    if geometry == "euclidean":
        distances = np.sqrt(between)
    else:
        excess = 2 * between / gap_x[:, None] / gap_y
        distances = np.where(excess < 1e-3, 2 * np.arcsinh(np.sqrt(excess / 2)), np.arccosh(1 + excess))
    labels, scores = np.full((len(x), k), -1), np.full((len(x), k), -np.inf)
    for i in range(len(x)):
        order = np.lexsort([ids, keys[i]])[:k]
        labels[i, : len(order)], scores[i, : len(order)] = ids[order], -distances[i, order]
    return TopK(labels, scores)


def directions(n, d, rng):
    rows = rng.standard_normal((n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def inside(rows):
    """Float32 rows, scaled down until their norms are below 1."""
    rows = np.asarray(rows, np.float32)
    while len(out := np.flatnonzero((rows.astype(np.float64) ** 2).sum(axis=1) >= 1 - 1e-15)):
        rows[out] = np.nextafter(rows[out], np.float32(0))
    return rows


def ball(n, d, rng):
    return inside(directions(n, d, rng) * rng.uniform(0, 1, (n, 1)) ** (1 / d))


def shell(gap):
    return lambda n, d, rng: inside(directions(n, d, rng) * (1 - gap))


def near_duplicates(n, d, rng):
    """Clusters on the boundary whose members are 1e-6 apart."""
    centers = directions(max(n // 30, 1), d, rng) * (1 - 1e-6)
    return inside(centers[rng.integers(0, len(centers), n)] + 1e-6 * rng.standard_normal((n, d)) / d**0.5)


def duplicates(n, d, rng):
    return inside(shell(1e-5)(max(n // 5, 1), d, rng)[rng.integers(0, max(n // 5, 1), n)])


def mixture(n, d, rng):
    parts = [make(n, d, rng) for make in (ball, near_duplicates, duplicates, shell(1e-3), shell(6e-8))]
    parts.append(np.zeros((n, d), np.float32))
    parts.append(parts[0] * np.float32(1e-22))
    return np.stack(parts)[rng.integers(0, len(parts), n), np.arange(n)]


KINDS = {
    "ball": ball, "near duplicates": near_duplicates, "duplicates": duplicates, "mixture": mixture,
    **{f"gap {gap:g}": shell(gap) for gap in (1e-3, 1e-5, 1e-7, 6e-8)},
}  # fmt: skip


@pytest.fixture(scope="module")
def topics():
    """Points around centers of several depths, ids, and queries near some of them."""
    rng = np.random.default_rng(4)
    centers = directions(80, 12, rng) * rng.uniform(0.5, 0.95, (80, 1))
    points = centers[rng.integers(0, 80, 4000)] + 0.04 * rng.standard_normal((4000, 12))
    points = points * np.minimum(1, 0.995 / np.linalg.norm(points, axis=1, keepdims=True))
    queries = points[rng.permutation(4000)[:100]] * 0.97
    return points.astype(np.float32), rng.permutation(9000)[:4000].astype(np.int32), queries.astype(np.float32)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(st.integers(1, 400), st.sampled_from([1, 2, 3, 10, 50]), st.integers(1, 12), st.integers(0, 999))
def test_it_equals_brute_force_in_float64(kind, geometry, n, d, k, seed):
    rng = np.random.default_rng(seed)
    points, ids = KINDS[kind](n, d, rng), rng.permutation(2 * n)[:n]
    queries = inside(np.concatenate([points[rng.integers(0, n, 6)] * np.float32(1 - 1e-7), KINDS[kind](6, d, rng)]))
    top, expected = PointIndex(points, ids, geometry).search(queries, k), brute(queries, points, ids, k, geometry)
    assert np.array_equal(top.labels, expected.labels)
    assert np.allclose(top.scores, expected.scores, rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize("kind", ["near duplicates", "gap 1e-07", "mixture"])
def test_many_points_too_close_for_float32_are_distinguished(kind):
    rng = np.random.default_rng(8)
    points, ids = KINDS[kind](6000, 50, rng), rng.permutation(6000)
    queries = inside(points[:40] * np.float32(1 - 1e-6))
    assert np.array_equal(PointIndex(points, ids).search(queries, 10).labels, brute(queries, points, ids, 10).labels)


def test_the_distance_is_that_of_a_case_worked_by_hand():
    top = PointIndex([[0.0, 0.0], [0.5, 0.0]], [0, 1]).search([[0.0, 0.0]], 2)
    assert top.labels.tolist() == [[0, 1]]
    assert top.scores.tolist() == [[0.0, pytest.approx(-math.log(3))]]  # artanh(1/2) twice
    assert PointIndex([[3.0, 4.0]], [0], "euclidean").search([[0.0, 0.0]], 1).scores.tolist() == [[-5.0]]


def test_nothing_overflows_at_the_boundary():
    edge = np.nextafter(np.float32(1), np.float32(0))
    points = np.array([[edge, 0], [-edge, 0], [0, edge], [0, -edge], [0.6, 0.8 - 1e-7]], np.float32)
    top = PointIndex(points, range(5)).search(points, 5)
    assert np.isfinite(top.scores).all()
    assert top.labels[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert top.scores[:, 0].tolist() == [0.0] * 5
    far = PointIndex([[1e18, 0.0], [1e-30, 0.0]], [0, 1], "euclidean").search([[-1e17, 0.0], [0.0, 0.0]], 2)
    assert far.labels.tolist() == [[1, 0], [1, 0]]
    assert np.allclose(far.scores, [[-1e17, -1.1e18], [-1e-30, -1e18]], rtol=1e-6, atol=0)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("clusters", [None, 7])
def test_equal_distances_go_to_the_smaller_id_and_missing_ones_are_padded(geometry, clusters):
    ids = np.random.default_rng(0).permutation(200)
    top = PointIndex(np.full((200, 3), 0.5), ids, geometry, clusters, probes=7).search(np.full((1, 3), 0.1), 203)
    assert top.labels[0].tolist() == [*range(200), -1, -1, -1]
    assert np.isneginf(top.scores[0, 200:]).all()
    empty = PointIndex(np.empty((0, 3)), [], geometry, clusters)
    assert empty.search(np.zeros((1, 3)), 2).labels.tolist() == [[-1, -1]]
    assert len(empty.search(np.empty((0, 3)), 2)) == 0
    empty.add([4, 3], np.zeros((2, 3)))
    assert empty.search(np.zeros((1, 3)), 2).labels.tolist() == [[3, 4]]


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("clusters", [None, "auto", 20])
def test_results_do_not_depend_on_batch_or_threads(topics, geometry, clusters, monkeypatch):
    points, ids, queries = topics
    monkeypatch.setenv(threads.THREADS_VARIABLE, "1")
    index = PointIndex(points, ids, geometry, clusters)
    together = index.search(queries, 5)
    monkeypatch.setenv(threads.THREADS_VARIABLE, "2")
    assert same_topk(PointIndex(points, ids, geometry, clusters).search(queries, 5), together)
    for row in (0, 31, 99):
        alone = index.search(queries[row : row + 1], 5)
        assert same_topk(alone, TopK(together.labels[row : row + 1], together.scores[row : row + 1]))


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_all_clusters_equal_exact_search_and_a_few_have_high_recall(topics, geometry):
    points, ids, queries = topics
    truth = PointIndex(points, ids, geometry).search(queries, 5)
    assert same_topk(PointIndex(points, ids, geometry, clusters=30, probes=30).search(queries, 5), truth)
    few = PointIndex(points, ids, geometry, clusters=30)
    assert few.probes == 6
    assert recall(few.search(queries, 5), truth) > 0.9
    one = PointIndex(points, ids, geometry, clusters=30, probes=1)
    assert 0.3 < one.report["recall"] < few.report["recall"] <= 1
    assert 0 < one.report["share_read"] < few.report["share_read"] < 0.6
    assert {key: few.report[key] for key in ("clusters", "probes", "recall_at")} == {
        "clusters": 30, "probes": 6, "recall_at": 10,
    }  # fmt: skip


def test_the_number_of_clusters_is_the_paper_s_and_at_most_that_of_points(topics):
    points, ids, _ = topics
    assert PointIndex(points, ids, clusters="auto").n_clusters == 1
    assert PointIndex(np.tile(points, (2, 1)), np.arange(8000), clusters="auto").n_clusters == 3
    assert PointIndex(points[:5], ids[:5], clusters=9).n_clusters == 5
    assert PointIndex(points, ids).n_clusters == 0


def test_the_seed_draws_the_centers_and_the_order_of_the_points_does_not(topics):
    points, ids, queries = topics
    index, order = PointIndex(points, ids, clusters=30, probes=1), np.random.default_rng(0).permutation(4000)
    assert same_topk(
        PointIndex(points[order], ids[order], clusters=30, probes=1).search(queries, 5), index.search(queries, 5)
    )
    assert not same_topk(
        PointIndex(points, ids, clusters=30, probes=1, seed=1).search(queries, 5), index.search(queries, 5)
    )


@pytest.mark.parametrize("clusters", [None, 20])
def test_adding_and_removing_equals_a_rebuild(topics, clusters):
    points, ids, queries = topics
    index = PointIndex(points[:3000], ids[:3000], clusters=clusters, probes=20)
    index.add(ids[3000:], points[3000:])
    index.remove(ids[500:900])
    keep = np.r_[0:500, 900:4000]
    assert same_topk(index.search(queries, 5), PointIndex(points[keep], ids[keep]).search(queries, 5))
    assert sorted(index.ids) == sorted(ids[keep])
    index.remove(index.ids)
    assert (index.search(queries, 5).labels == -1).all()
    index.add(ids, points)
    assert same_topk(index.search(queries, 5), PointIndex(points, ids).search(queries, 5))


def test_the_caller_s_points_are_not_modified(topics):
    points, ids, queries = (array.copy() for array in topics)
    index = PointIndex(points, ids, clusters=5)
    index.remove(ids[:5])
    index.search(queries)
    assert all(np.array_equal(mine, given) for mine, given in zip((points, ids, queries), topics, strict=True))


def test_invalid_input_is_rejected(topics):
    points, ids, queries = topics
    index = PointIndex(points, ids)
    with pytest.raises(ParameterError, match="geometry must be one of poincare, euclidean, but is 'sphere'"):
        PointIndex(points, ids, "sphere")
    with pytest.raises(
        ParameterError,
        match="clusters must be none, or one of auto, or an integer of at least 1 .*, but is 0; set it so",
    ):
        PointIndex(points, ids, clusters=0)
    with pytest.raises(ParameterError, match="clusters must be none, or one of auto, .*, but is 'many'"):
        PointIndex(points, ids, clusters="many")
    with pytest.raises(ParameterError, match="probes must be none, or an integer of at least 1 .*, but is 0"):
        PointIndex(points, ids, probes=0)
    with pytest.raises(ParameterError, match="k must be at least 1"):
        index.search(queries, 0)
    with pytest.raises(DataError, match="points must have norms below 1, but row 1 has 1; scale it into the ball"):
        PointIndex(np.eye(2) * [0.5, 1], [1, 0])
    with pytest.raises(DataError, match=r"queries must have norms below 1, but row 0 has 1.5; .*geometry='euclidean'"):
        index.search(np.eye(1, 12) * 1.5)
    with pytest.raises(DataError, match="vectors must have norms below 1, but row 0 has 2; scale"):
        index.add([9001], np.eye(1, 12) * 2)
    assert len(index) == 4000
    with pytest.raises(DataError, match="finite numbers"):
        PointIndex([[np.nan]], [0])
    with pytest.raises(DataError, match=r"norms of at most 1e\+18, but one is 1e\+30; scale them down"):
        PointIndex([[1e30]], [0], "euclidean")
    with pytest.raises(DataError, match="one id per vector"):
        PointIndex(points, ids[:3])
