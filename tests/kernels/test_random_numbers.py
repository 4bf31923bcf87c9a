import numpy as np

from labelspace.kernels.random_numbers import advanced, seeded, shuffle


def slow_advanced(state):
    for shift in (13, -7, 17):
        state ^= (state << shift if shift > 0 else state >> -shift) % 2**64
    return state


def test_draws_equal_those_of_plain_whole_numbers():
    state = int(seeded(7))
    assert state == (14 + 0x9E3779B97F4A7C15) % 2**64
    for _ in range(5):
        expected = slow_advanced(state)
        state = int(advanced(np.uint64(state)))
        assert state == expected


def test_a_shuffle_reorders_the_front_and_leaves_the_rest():
    order = np.arange(50, dtype=np.int32)
    after = shuffle(order, 30, seeded(1))
    assert sorted(order[:30]) == list(range(30))
    assert order[:30].tolist() != list(range(30))
    assert order[30:].tolist() == list(range(30, 50))
    assert after != seeded(1)
