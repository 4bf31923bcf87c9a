import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labelspace.kernels.topk import push, sort_best_first


def best_of(values, k):
    scores, ids = np.empty(k, np.float32), np.empty(k, np.int32)
    size = 0
    for identity, value in values:
        size = push(scores, ids, size, value, identity)
    sort_best_first(scores, ids, size)
    return ids, scores


@given(st.lists(st.integers(0, 20), max_size=60), st.integers(1, 12), st.randoms())
def test_it_equals_sorting_whatever_the_order_of_arrival(values, k, random):
    stream = [(i, float(v)) for i, v in enumerate(values)]
    expected = sorted(stream, key=lambda pair: (-pair[1], pair[0]))[:k]
    random.shuffle(stream)
    ids, scores = best_of(stream, k)
    found = len(expected)
    assert ids[:found].tolist() == [i for i, _ in expected]
    assert scores[:found].tolist() == [v for _, v in expected]
    assert (ids[found:] == -1).all()
    assert np.isneginf(scores[found:]).all()
