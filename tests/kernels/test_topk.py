import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelspace.kernels.topk import push, select_best, sort_best_first


def topk(values, k):
    scores, ids = np.empty(k, np.float32), np.empty(k, np.int32)
    size = 0
    for item, value in values:
        size = push(scores, ids, size, value, item)
    sort_best_first(scores, ids, size)
    return ids, scores


@given(st.lists(st.integers(0, 20), max_size=60), st.integers(1, 12), st.randoms())
def test_it_equals_sorting_whatever_the_order_of_arrival(values, k, random):
    stream = [(i, float(v)) for i, v in enumerate(values)]
    expected = sorted(stream, key=lambda pair: (-pair[1], pair[0]))[:k]
    random.shuffle(stream)
    ids, scores = topk(stream, k)
    n = len(expected)
    assert ids[:n].tolist() == [i for i, _ in expected]
    assert scores[:n].tolist() == [v for _, v in expected]
    assert (ids[n:] == -1).all()
    assert np.isneginf(scores[n:]).all()


@given(st.integers(1, 60), st.integers(0, 999))
def test_select_best_moves_the_k_best_to_the_front(size, seed):
    rng = np.random.default_rng(seed)
    scores, ids = rng.integers(0, 9, size + 3).astype(np.float32), rng.permutation(size + 3).astype(np.int32)
    k = int(rng.integers(1, size + 1))
    order = np.lexsort([ids[:size], -scores[:size]])[:k]
    expected = sorted(zip(-scores[order], ids[order], strict=True))
    pairs, rest = sorted(zip(-scores[:size], ids[:size], strict=True)), (scores[size:].copy(), ids[size:].copy())
    select_best(scores, ids, size, k)
    assert sorted(zip(-scores[:k], ids[:k], strict=True)) == expected
    assert sorted(zip(-scores[:size], ids[:size], strict=True)) == pairs
    assert np.array_equal(scores[size:], rest[0])
    assert np.array_equal(ids[size:], rest[1])
