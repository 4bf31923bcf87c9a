import numpy as np
import pytest

from labelspace.kernels.betting import LARGEST_BET, is_precise


def twin(probabilities, right, n_first, threshold, target, most, confidence):
    """The capital after every document, by arrays."""
    kept = probabilities >= threshold
    kept &= np.cumsum(kept, axis=1) <= most
    w = target * kept.sum(axis=1) - (kept & right).sum(axis=1)
    n, goal = len(w), 1 / (1 - confidence)
    squares = target * (1 - target) + np.concatenate([[0], np.cumsum(w**2)[:-1]])
    bets = np.sqrt(2 * np.log(goal) / (n - n_first) * np.arange(1, n + 1) / squares)
    capital = np.cumprod((1 - np.minimum(bets, LARGEST_BET / (target * most)) * w)[n_first:])
    return capital.max() >= goal


@pytest.mark.parametrize("most", [1, 3, 9])
def test_it_is_what_arrays_say(most):
    rng, said = np.random.default_rng(most), []
    for target in np.linspace(0.5, 0.95, 40):
        probabilities = -np.sort(-rng.random((200, 4)).astype(np.float32), axis=1)
        probabilities[rng.random(200) < 0.3] = -np.inf
        right = rng.random((200, 4)) < 0.3 + 0.6 * probabilities
        case = (probabilities, right, 25, 0.6, float(target), most, 0.9)
        said.append(is_precise(*case))
        assert said[-1] == twin(*case)
    assert 0 < sum(said) < len(said)
