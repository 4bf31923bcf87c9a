"""Points in few bits, from which a shortlist is taken; the sizes at which that is done are made small."""

import json

import numpy as np
import pytest

from labelspace.errors import ModelError, ParameterError
from labelspace.index import PointIndex, poincare
from labelspace.index.choice import recall
from labelspace.index.poincare import GEOMETRIES
from labelspace.kernels import threads
from labelspace.store import sealed
from labelspace.types import TopK
from tests.checks import same_topk
from tests.index.test_saved_indexes import load, save


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    monkeypatch.setattr(poincare, "MAX_EXACT_SIZE", 50_000)


@pytest.fixture(scope="module")
def spread():
    """Points of all directions, as those of trained models; some near the boundary. Ids, and queries between them."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((6100, 20))
    rows *= np.where(rng.random((6100, 1)) < 0.1, 0.999, rng.uniform(0.4, 0.8, (6100, 1))) / np.linalg.norm(
        rows, axis=1, keepdims=True
    )
    rows = rows.astype(np.float32)
    return rows[:6000], rng.permutation(9000)[:6000].astype(np.int32), rows[6000:] * np.float32(0.9)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_neighbors_are_found_and_their_distances_are_exact(spread, geometry):
    points, ids, queries = spread
    index, exact = PointIndex(points, ids, geometry), PointIndex(points, ids, geometry, recall_target=None)
    assert exact.codes_ is None
    assert index.codes_ is not None
    found, truth = index.search(queries, 5), exact.search(queries, 5)
    assert recall(found, truth) > 0.99
    same = found.labels == truth.labels
    assert np.array_equal(found.scores[same], truth.scores[same])
    assert index.report["recall"] >= index.report["recall_target"] == 0.99
    assert (index.report["recall_at"], index.report["shortlist"]) == (100, index.shortlist)


def test_few_points_clusters_and_no_target_are_searched_without_codes(spread):
    points, ids, _ = spread
    assert PointIndex(points[:2500], ids[:2500]).codes_ is None
    assert PointIndex(points, ids, clusters=5).codes_ is None
    assert PointIndex(points, ids, recall_target=None).codes_ is None


def test_many_neighbors_are_computed_not_estimated(spread):
    points, ids, queries = spread
    index, exact = PointIndex(points, ids), PointIndex(points, ids, recall_target=None)
    for k in (4000, 7000):
        assert same_topk(index.search(queries[:3], k), exact.search(queries[:3], k))


def test_a_higher_target_takes_a_longer_shortlist_and_one_out_of_reach_an_exact_search(spread, monkeypatch):
    points, ids, queries = spread
    monkeypatch.setattr(poincare, "SHORTLISTS", (1, 2))
    assert [PointIndex(points, ids, recall_target=target).shortlist for target in (0.5, 1.0)] == [1, 2]
    monkeypatch.setattr(poincare, "SHORTLISTS", (1,))
    index = PointIndex(points, ids, recall_target=1.0)
    assert index.codes_ is index.shortlist is None
    assert (index.report["recall"], index.report["why"]) == (1.0, "no shortlist reached the recall target")
    assert same_topk(index.search(queries, 5), PointIndex(points, ids, recall_target=None).search(queries, 5))


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_results_do_not_depend_on_batch_threads_or_the_order_of_the_points(spread, geometry, monkeypatch):
    points, ids, queries = spread
    monkeypatch.setenv(threads.THREADS_VARIABLE, "1")
    index = PointIndex(points, ids, geometry)
    together = index.search(queries, 5)
    monkeypatch.setenv(threads.THREADS_VARIABLE, "2")
    order = np.random.default_rng(0).permutation(len(ids))
    assert same_topk(PointIndex(points[order], ids[order], geometry).search(queries, 5), together)
    for row in (0, 31, 99):
        alone = index.search(queries[row : row + 1], 5)
        assert same_topk(alone, TopK(together.labels[row : row + 1], together.scores[row : row + 1]))


def test_adding_and_removing_equals_a_rebuild(spread):
    points, ids, queries = spread
    index = PointIndex(points[:4000], ids[:4000])
    index.add(ids[4000:], points[4000:])
    index.remove(ids[:100])
    rebuilt = PointIndex(points[100:], ids[100:])
    assert index.shortlist == rebuilt.shortlist
    assert same_topk(index.search(queries, 5), rebuilt.search(queries, 5))
    index.remove(index.ids)
    assert (index.search(queries, 5).labels == -1).all()
    index.add(ids, points)
    assert same_topk(index.search(queries, 5), PointIndex(points, ids, recall_target=None).search(queries, 5))


def test_numbers_whose_squares_nearly_overflow_are_searched(spread):
    points, ids, queries = spread
    large, small = PointIndex(points * 1e18, ids, "euclidean"), PointIndex(points, ids, "euclidean")
    assert large.codes_ is not None
    assert recall(large.search(queries * 1e18, 5), small.search(queries, 5)) > 0.99
    equal = PointIndex(np.zeros((6000, 20)), ids)
    assert equal.search(queries[:1], 3).labels.tolist() == [sorted(ids)[:3]]


def test_codes_are_saved_and_an_index_saved_before_there_were_any_is_exact(spread, tmp_path):
    points, ids, queries = spread
    index = PointIndex(points, ids)
    again = load(save(index, tmp_path / "model"))
    assert same_topk(again.search(queries, 5), index.search(queries, 5))
    assert again.shortlist == index.shortlist
    again.remove(ids[:10])
    assert again.codes_ is not None
    exact = PointIndex(points, ids, recall_target=None)
    manifest = save(exact, tmp_path / "old") / "model.json"
    content = json.loads(manifest.read_text())
    for key in ("codes_", "shortlist"):
        del content["model"]["state"]["index_"]["state"][key]
    manifest.write_text(json.dumps(sealed(content)))
    old = load(tmp_path / "old")
    assert old.codes_ is None
    assert same_topk(old.search(queries, 5), exact.search(queries, 5))


def damaged(index, **changes):
    index.codes_ = index.codes_._replace(**changes)
    return index


def test_codes_that_are_not_of_the_points_are_rejected(spread, tmp_path):
    points, ids, _ = spread

    def index():
        return PointIndex(points, ids)

    codes, clustered, lost = index().codes_, PointIndex(points, ids, clusters=5), index()
    clustered.codes_, clustered.shortlist = codes, 2
    lost.shortlist = None
    wrong = [
        damaged(index(), planes=codes.planes[:-1]), damaged(index(), planes=codes.planes[:, :2].copy()),
        damaged(index(), query_map=codes.query_map[:, :0].copy()), damaged(index(), slopes=codes.slopes[:-1]),
        damaged(index(), center=codes.center * np.float32(np.nan)), clustered, lost,
    ]  # fmt: skip
    for number, each in enumerate(wrong):
        with pytest.raises(ModelError, match="must"):
            load(save(each, tmp_path / str(number)))


@pytest.mark.parametrize(("width", "n_words"), [(16, 1), (80, 5), (128, 4)])
def test_codes_of_a_width_that_fills_no_words_are_rejected(spread, tmp_path, width, n_words):
    points, ids, _ = spread
    index = PointIndex(points, ids)
    planes, query_map = index.codes_.planes[:, :1].repeat(n_words, axis=1), index.codes_.query_map[:, :1]
    wrong = damaged(index, planes=planes, query_map=query_map.repeat(width, axis=1))
    with pytest.raises(ModelError, match="codes of 4 bits in whole words"):
        load(save(wrong, tmp_path / "model"))


@pytest.mark.parametrize("target", [0, 1.5, "high"])
def test_a_target_that_is_no_share_is_rejected(spread, target):
    points, ids, _ = spread
    with pytest.raises(ParameterError, match="recall_target must be .*above 0 and at most 1.*, but is"):
        PointIndex(points, ids, recall_target=target)
