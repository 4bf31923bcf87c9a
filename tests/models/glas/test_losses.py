import numpy as np
import pytest

from labelspace.models.glas.losses import loss_gradient
from labelspace.models.glas.training_data import sample_positives
from labelspace.training.losses import SampledLabels


def pairs_by_definition(scores, true_of, counted_of, margin):
    """Eq. 1, pair by pair: its value, and its gradient by the scores."""
    loss, gradient = 0.0, np.zeros_like(scores)
    for row, (true, counted) in enumerate(zip(true_of, counted_of, strict=True)):
        for y in counted:
            for other in set(range(scores.shape[1])) - set(true):
                if scores[row, other] - scores[row, y] + margin > 0:
                    loss += scores[row, other] - scores[row, y] + margin
                    gradient[row, other] += 1
                    gradient[row, y] -= 1
    return loss, gradient


@pytest.mark.parametrize("positives", ["one", "all"])
def test_the_margin_loss_over_all_pairs_is_the_sum_of_equation_1(positives):
    rng = np.random.default_rng(3)
    true_of = [sorted(rng.choice(9, n, replace=False)) for n in rng.integers(0, 5, 150)]  # several blocks of rows
    true_of[0], true_of[63], true_of[149] = [], [], []
    columns, ends = np.concatenate(true_of).astype(np.int32), np.cumsum([0, *map(len, true_of)]).astype(np.int32)
    sampled = SampledLabels(np.arange(9, dtype=np.int32), columns, ends)
    drawn = sample_positives(ends, rng)
    counted = true_of if positives == "all" else [[columns[at]] if at >= 0 else [] for at in drawn]
    scores = rng.standard_normal((150, 9)).astype(np.float32)
    _, expected = pairs_by_definition(scores, true_of, counted, 0.4)
    ours = loss_gradient(scores.copy(), sampled, drawn if positives == "one" else None, "margin", 0.4, None)
    assert np.allclose(ours, expected / 150)
    assert np.abs(expected).max() > 1, "several pairs of a label count"
    step = 1e-6  # the gradient is that of the value
    row, column = np.argwhere(expected == expected.max())[0]
    exact = scores.astype(np.float64)
    moved = exact.copy()
    moved[row, column] += step
    losses = [pairs_by_definition(values, true_of, counted, 0.4)[0] for values in (moved, exact)]
    assert np.isclose((losses[0] - losses[1]) / step, expected[row, column], rtol=1e-4)


def test_hardest_wrong_labels_are_some_of_all_pairs():
    scores = np.array([[0.5, 0.9, 0.1, 0.6, -1.0]], np.float32)
    sampled = SampledLabels(np.arange(5, dtype=np.int32), np.array([0], np.int32), np.array([0, 1], np.int32))
    drawn = np.array([0])
    everything = loss_gradient(scores.copy(), sampled, drawn, "margin", 0.5, None)
    assert everything.tolist() == [[-3, 1, 1, 1, 0]]
    hardest = loss_gradient(scores.copy(), sampled, drawn, "margin", 0.5, 2)
    assert hardest.tolist() == [[-1, 0.5, 0, 0.5, 0]], "their mean"
