"""Points in inverted lists, of which a search reads some; the sizes at which that is done are made small."""

import json
import math

import numpy as np
import pytest

from labelspace.errors import DataError, ModelError
from labelspace.index import PointIndex, poincare
from labelspace.index import points as point_lists
from labelspace.index.choice import recall
from labelspace.index.points import GEOMETRIES, build_point_lists, extended_points, extended_queries, share_to_read
from labelspace.kernels import threads
from labelspace.store import sealed
from labelspace.types import TopK
from tests.checks import same_topk
from tests.index.test_saved_indexes import load, save


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    monkeypatch.setattr(poincare, "MAX_EXACT_SIZE", 50_000)
    monkeypatch.setattr(poincare, "SHORTLIST_RECALL_AT", 20)  # of 6,000 points, 100 are spread over too many lists


@pytest.fixture(scope="module")
def topics():
    """Points around centers of several depths, ids, and two samples of queries near the same centers."""
    rng = np.random.default_rng(4)
    centers = rng.standard_normal((150, 12))
    centers *= rng.uniform(0.5, 0.9, (150, 1)) / np.linalg.norm(centers, axis=1, keepdims=True)
    rows = centers[rng.integers(0, 150, 6600)] + 0.03 * rng.standard_normal((6600, 12))
    rows = (rows * np.minimum(1, 0.995 / np.linalg.norm(rows, axis=1, keepdims=True))).astype(np.float32)
    return rows[:6000], rng.permutation(9000)[:6000].astype(np.int32), rows[6000:6500], rows[6500:]


@pytest.fixture
def index(topics):
    points, ids, asked, _ = topics
    return PointIndex(points, ids, queries=asked)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("given", [True, False])
def test_a_part_of_the_points_has_the_neighbors_and_their_distances_are_exact(topics, geometry, given):
    points, ids, asked, queries = topics
    index = PointIndex(points, ids, geometry, queries=asked if given else None)
    assert index.lists_ is not None
    assert 0 < index.share_read < 0.25
    found, truth = (each.search(queries, 10) for each in (index, PointIndex(points, ids, geometry, recall_target=None)))
    assert recall(found, truth) > 0.97
    same = found.labels == truth.labels
    assert np.array_equal(found.scores[same], truth.scores[same])
    assert index.report["recall"] >= index.report["recall_target"] == 0.99
    assert index.report["share_read"] == round(index.share_read, 4)


def test_the_share_to_read_is_that_of_the_lists_up_to_the_neighbors(topics, index):
    points, ids, asked, _ = topics
    truth = PointIndex(points, ids, recall_target=None).search(asked[:50], 10)
    truth.labels[:, 0] = -1  # no neighbor
    sizes, list_of = np.diff(index.lists_.starts), dict(zip(index.ids.tolist(), index.lists_.list_of(), strict=True))
    needed = []
    for scores, neighbors in zip(
        extended_queries(asked[:50], "poincare") @ index.lists_.means, truth.labels, strict=True
    ):
        needed += [sizes[scores >= scores[list_of[id_]]].sum() for id_ in neighbors[1:].tolist()]
    share = share_to_read(index.lists_, asked[:50], index.ids, truth, 0.95, "poincare")
    assert np.mean(np.array(needed) <= round(share * 6000)) >= 0.95 > np.mean(np.array(needed) < round(share * 6000))


def test_a_single_point_near_the_boundary_does_not_hide_its_list():
    rng = np.random.default_rng(1)
    rows = 0.6 * rng.standard_normal((100, 1, 12)) / 12**0.5 + 0.01 * rng.standard_normal((100, 60, 12))
    rows[:, 0] *= 0.9999 / np.linalg.norm(rows[:, 0], axis=1, keepdims=True)
    points = rows.reshape(-1, 12).astype(np.float32)
    queries = points[1::60]
    lists, list_of = build_point_lists(points, queries, "poincare", 0)
    mixed = lists._replace(means=np.stack([points[list_of == c].mean(axis=0) for c in range(lists.means.shape[1])], 1))
    assert np.array_equal(lists.starts[1:], np.cumsum(np.bincount(list_of)))
    assert np.allclose(lists.means, extended_points(mixed.means.T.copy(), "poincare").T, rtol=1e-3, atol=1e-3)
    order = np.lexsort([np.arange(6000), list_of])
    truth = PointIndex(points, np.arange(6000), recall_target=None).search(queries, 20)
    assert share_to_read(lists, queries, order.astype(np.int32), truth, 0.99, "poincare") < 0.05


@pytest.mark.parametrize("gap", [1e-4, 1e-6, 6e-8])
def test_centers_of_points_at_the_boundary_stay_inside(gap):
    rows = np.random.default_rng(0).standard_normal((40, 20))
    rows = np.repeat(rows * (1 - gap) / np.linalg.norm(rows, axis=1, keepdims=True), 70, axis=0).astype(np.float32)
    rows[(rows.astype(np.float64) ** 2).sum(axis=1) >= 1 - 1e-9] *= np.float32(1 - 1e-7)
    lists, list_of = build_point_lists(rows, rows[::100], "poincare", 0)
    assert np.isfinite(lists.means).all()
    assert list_of.max() == lists.means.shape[1] - 1
    assert (np.diff(lists.starts) > 0).all()


def test_spread_points_are_all_read_and_a_target_out_of_reach_is_searched_exactly(topics, monkeypatch):
    rows = np.random.default_rng(0).standard_normal((6000, 40))
    rows *= 0.7 / np.linalg.norm(rows, axis=1, keepdims=True)
    spread = PointIndex(rows, np.arange(6000))
    assert spread.lists_ is spread.share_read is None
    assert spread.codes_ is not None
    assert np.array_equal(spread.ids, np.arange(6000))
    assert "share_read" not in spread.report
    points, ids, asked, queries = topics
    monkeypatch.setattr(poincare, "SHORTLISTS", ())
    exact = PointIndex(points, ids, queries=asked)
    assert exact.lists_ is exact.codes_ is None
    assert same_topk(exact.search(queries, 5), PointIndex(points, ids, recall_target=None).search(queries, 5))


def test_few_points_clusters_no_target_and_large_numbers_have_no_lists(topics):
    points, ids, asked, _ = topics
    assert PointIndex(points[:4000], ids[:4000], queries=asked).lists_ is None
    assert PointIndex(points, ids, clusters=5, queries=asked).lists_ is None
    assert PointIndex(points, ids, recall_target=None, queries=asked).lists_ is None
    large = PointIndex(points * 1e17, ids, "euclidean", queries=asked * 1e17)
    assert large.lists_ is None
    assert large.codes_ is not None
    listed = PointIndex(points, ids, "euclidean", queries=asked)
    listed.add([9999], np.full((1, 12), 1e17))
    assert listed.lists_ is listed.share_read is None
    assert "share_read" not in listed.report
    assert listed.search(np.full((1, 12), 1e17), 1).labels.tolist() == [[9999]]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_results_do_not_depend_on_batch_threads_or_the_order_of_the_points(topics, geometry, monkeypatch):
    points, ids, asked, queries = topics
    monkeypatch.setenv(threads.THREADS_VARIABLE, "1")
    index = PointIndex(points, ids, geometry, queries=asked)
    together = index.search(queries, 5)
    monkeypatch.setenv(threads.THREADS_VARIABLE, "2")
    order = np.random.default_rng(0).permutation(len(ids))
    again = PointIndex(points[order], ids[order], geometry, queries=asked)
    assert again.share_read == index.share_read
    assert same_topk(again.search(queries, 5), together)
    for row in (0, 31, 99):
        alone = index.search(queries[row : row + 1], 5)
        assert same_topk(alone, TopK(together.labels[row : row + 1], together.scores[row : row + 1]))


def test_many_neighbors_are_read_from_more_points_or_all(topics, index):
    points, ids, _, queries = topics
    exact = PointIndex(points, ids, recall_target=None)
    assert index._n_read(40, 1) == math.ceil(2 * index.share_read * 6000) > index._n_read(20, 1) == index._n_read(1, 1)
    assert index._n_read(1, 500) == 2000
    assert recall(index.search(queries, 60), exact.search(queries, 60)) > 0.97
    for k in (4000, 7000):
        assert same_topk(index.search(queries[:3], k), exact.search(queries[:3], k))


def test_points_are_added_and_removed_in_the_lists_there_are(topics):
    points, ids, asked, queries = topics
    index = PointIndex(points[:5000], ids[:5000], queries=asked)
    means, share = index.lists_.means, index.share_read
    index.add(ids[5000:], points[5000:])
    index.remove(ids[:100])
    assert index.lists_.means is means
    assert index.share_read == share
    assert index.lists_.starts[-1] == len(index) == 5900
    assert sorted(index.ids) == sorted(ids[100:])
    assert np.array_equal(index.vectors(ids[100:]), points[100:])
    assert (
        recall(index.search(queries, 10), PointIndex(points[100:], ids[100:], recall_target=None).search(queries, 10))
        > 0.97
    )
    index.remove(index.ids)
    assert index.lists_ is index.codes_ is index.share_read is None
    assert (index.search(queries, 5).labels == -1).all()
    index.add(ids, points)
    assert same_topk(index.search(queries, 5), PointIndex(points, ids, recall_target=None).search(queries, 5))


def test_lists_are_saved_and_an_index_saved_before_there_were_any_reads_all_codes(topics, index, tmp_path, monkeypatch):
    points, ids, _, queries = topics
    again = load(save(index, tmp_path / "model"))
    assert same_topk(again.search(queries, 5), index.search(queries, 5))
    assert again.share_read == index.share_read
    again.remove(ids[:10])
    assert again.lists_ is not None
    monkeypatch.setattr(point_lists, "MAX_LISTED", 0)
    without = PointIndex(points, ids)
    manifest = save(without, tmp_path / "old") / "model.json"
    content = json.loads(manifest.read_text())
    for key in ("lists_", "share_read"):
        del content["model"]["state"]["index_"]["state"][key]
    manifest.write_text(json.dumps(sealed(content)))
    old = load(tmp_path / "old")
    assert old.lists_ is None
    assert old.codes_ is not None
    assert same_topk(old.search(queries, 5), without.search(queries, 5))


def test_lists_that_are_not_of_the_points_are_rejected(topics, tmp_path):
    points, ids, asked, _ = topics

    def changed(**state):
        index = PointIndex(points, ids, queries=asked)
        for name, value in state.items():
            setattr(index, name, value)
        return index

    lists = changed().lists_
    beyond, falling = lists.starts.copy(), lists.starts.copy()
    beyond[-1] += 64
    falling[3], falling[4] = falling[4] + 1, falling[3]
    wrong = [
        changed(lists_=lists._replace(starts=beyond)), changed(lists_=lists._replace(starts=falling)),
        changed(lists_=lists._replace(starts=lists.starts[1:])), changed(lists_=lists._replace(starts=-lists.starts)),
        changed(lists_=lists._replace(means=lists.means[:-1].copy())),
        changed(lists_=lists._replace(means=lists.means[:, :-1].copy())),
        changed(lists_=lists._replace(means=lists.means * np.float32(np.nan))), changed(lists_=None),
        changed(share_read=None), changed(share_read=0.0), changed(share_read=1.5), changed(share_read=float("nan")),
        changed(share_read="all"), changed(codes_=None, shortlist=None),
    ]  # fmt: skip
    for number, each in enumerate(wrong):
        with pytest.raises(ModelError, match="must"):
            load(save(each, tmp_path / str(number)))


def test_queries_that_are_no_points_are_rejected(topics):
    points, ids, _, _ = topics
    with pytest.raises(DataError, match="queries must have rows of 12 numbers"):
        PointIndex(points, ids, queries=np.zeros((3, 5)))
    with pytest.raises(DataError, match="queries must have norms below 1, but row 0 has 2"):
        PointIndex(points, ids, queries=np.eye(1, 12) * 2)
    assert PointIndex(points, ids, queries=np.empty((0, 12))).lists_ is not None
