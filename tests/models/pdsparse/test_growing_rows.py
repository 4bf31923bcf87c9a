import numpy as np
import pytest

from labelspace.models.pdsparse.kernels import Changes, GrowingRows, add_to_row, room_needed


@pytest.mark.parametrize("grow", [True, False])
def test_steps_equal_those_on_a_dense_matrix(grow):
    rng = np.random.default_rng(0)
    V, dense, weighted = GrowingRows.empty(6), np.zeros((6, 12), np.float32), np.zeros((6, 12))
    slot = np.full(12, -1, np.int32)
    for t in range(1, 201):
        row, n = np.int32(rng.integers(6)), int(rng.integers(1, 5))
        changed = rng.choice(12, n, replace=False).astype(np.int32)
        steps, factor = rng.standard_normal(n).astype(np.float32), np.float32(rng.standard_normal())
        grows = grow or t < 20
        rows = np.array([row], np.int32)
        while V.end[0] + room_needed(V, rows, n) > len(V.labels):
            V = V.grown()
        slot[changed] = np.arange(n)
        add_to_row(V, row, factor, np.float32(t * (t - 1)), Changes(changed, steps, slot), n, grows)
        slot[changed] = -1
        there = np.ones(n, bool) if grows else dense[row, changed] != 0
        dense[row, changed[there]] += factor * steps[there]
        weighted += t * dense
    kept = V.above(np.zeros(6, np.float32), 12, shrink=False)
    np.testing.assert_allclose(kept.toarray(), dense, rtol=1e-5, atol=1e-6)
    mean = V.mean(200).above(np.zeros(6, np.float32), 12)
    np.testing.assert_allclose(mean.toarray(), weighted / (200 * 201 / 2), rtol=1e-4, atol=1e-5)


def test_soft_thresholding_and_dropping():
    V = GrowingRows.empty(1)
    V.labels[:3], V.values[:3] = [2, 0, 3], [0.5, -2.0, 1.5]
    V.sizes[0] = V.rooms[0] = V.end[0] = 3
    l1 = np.ones(1, np.float32)
    assert V.above(l1, 4).toarray().tolist() == [[-1.0, 0.0, 0.0, 0.5]]
    V = V.restricted(V.above(l1, 4))
    assert V.above(0 * l1, 4).toarray().tolist() == [[-2.0, 0.0, 0.0, 1.5]]
