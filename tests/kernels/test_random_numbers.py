import numpy as np

from labelspace.kernels.random_numbers import initial_state, next_state, shuffle, uniform_from_key


def xorshift_twin(state):
    for shift in (13, -7, 17):
        state ^= (state << shift if shift > 0 else state >> -shift) % 2**64
    return state


def test_draws_equal_those_of_python_integers():
    state = int(initial_state(7))
    assert state == (14 + 0x9E3779B97F4A7C15) % 2**64
    for _ in range(5):
        expected = xorshift_twin(state)
        state = int(next_state(np.uint64(state)))
        assert state == expected


def test_a_shuffle_reorders_the_front_and_leaves_the_rest():
    order = np.arange(50, dtype=np.int32)
    state = shuffle(order, 30, initial_state(1))
    assert sorted(order[:30]) == list(range(30))
    assert order[:30].tolist() != list(range(30))
    assert order[30:].tolist() == list(range(30, 50))
    assert state != initial_state(1)


def splitmix_twin(key):
    bits = key * 0x9E3779B97F4A7C15 % 2**64
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB % 2**64
    return ((bits ^ bits >> 31) >> 11) / 2**53


def test_uniform_numbers_equal_those_of_python_integers():
    for key in (0, 1, 2, 12345, 2**40 + 7, 2**63, 2**64 - 1):
        assert uniform_from_key(np.uint64(key)) == splitmix_twin(key)


def test_uniform_numbers_of_consecutive_keys_are_uniform_and_uncorrelated():
    numbers = np.array([uniform_from_key(np.uint64(key)) for key in range(20_000)])
    assert (numbers >= 0).all()
    assert (numbers < 1).all()
    assert len(set(numbers)) == 20_000
    counts = np.histogram(numbers, 20, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 44, "chi-square of 19 degrees: one in a thousand"
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 4 / np.sqrt(20_000)
