import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.training.losses import (
    bce_gradient,
    log_odds,
    pairwise_softmax_gradient,
    sample_labels,
    seen_labels,
    sigmoid,
    sigmoid_inplace,
    softmax_gradient,
)

N, LABELS = 5, 7


@pytest.fixture
def case():
    """Scores and labels of a few documents, one of them without labels, in two blocks."""
    rng = np.random.default_rng(4)
    Y = rng.random((N, LABELS)) < 0.4
    Y[1] = False
    Y[3, [0, 6]] = True
    return (3 * rng.standard_normal((N, LABELS))).astype(np.float32), sp.csr_matrix(Y, dtype=np.float32)


def weights_of(Y):
    """1 for true labels."""
    wide = np.linspace(2, 5, LABELS, dtype=np.float32)
    return np.where(Y.toarray().any(axis=0), np.float32(1), wide)


def by_blocks(gradient, scores, Y, weights):
    out = scores.copy()
    for start, stop in ((0, 2), (2, N)):
        gradient(out[start:stop], Y.indices, Y.indptr, start, weights)
    return out


def by_torch(loss, scores, Y, weights):
    torch = pytest.importorskip("torch")
    z = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    w = torch.ones(LABELS, dtype=torch.float64) if weights is None else torch.tensor(weights, dtype=torch.float64)
    loss(torch, z, torch.tensor(Y.toarray(), dtype=torch.float64), w).backward()
    return z.grad.numpy()


def bce(torch, z, y, w):
    return torch.nn.functional.binary_cross_entropy_with_logits(z, y, weight=w.expand_as(z), reduction="sum")


def softmax(torch, z, y, w):
    shares = y / y.sum(1, keepdim=True).clamp(min=1)
    return -(shares * torch.log_softmax(z + torch.log(w), 1)).sum()


def pairs(torch, z, y, w):
    total = 0.0
    for row, true in enumerate(y > 0):
        wrong = (w[~true] * torch.exp(z[row, ~true])).sum()
        for label in torch.nonzero(true)[:, 0]:
            total = total - torch.log(torch.exp(z[row, label]) / (torch.exp(z[row, label]) + wrong)) / true.sum()
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("gradient", "loss"), [(bce_gradient, bce), (softmax_gradient, softmax), (pairwise_softmax_gradient, pairs)]
)
def test_gradients_are_those_of_torch(case, gradient, loss, weighted):
    scores, Y = case
    if weighted:
        Y = sp.csr_matrix(Y.toarray() * [1, 1, 0, 0, 1, 1, 1])
    weights = weights_of(Y) if weighted else None
    assert not weighted or weights.max() > 1
    ours = by_blocks(gradient, scores, Y, weights)
    assert np.allclose(ours, by_torch(loss, scores, Y, weights), atol=1e-5)


def test_a_weight_is_as_many_labels_of_the_same_score(case):
    scores, Y = case
    Y = sp.csr_matrix((Y.data, Y.indices, Y.indptr), shape=(N, LABELS + 1))
    once = np.concatenate([scores, np.full((N, 1), 0.7, np.float32)], axis=1)
    thrice = np.concatenate([once, once[:, -1:], once[:, -1:]], axis=1)
    weights = np.array([1] * LABELS + [3], np.float32)
    for gradient in (bce_gradient, softmax_gradient, pairwise_softmax_gradient):
        one, three = by_blocks(gradient, once, Y, weights), by_blocks(gradient, thrice, Y, None)
        assert np.allclose(one[:, :LABELS], three[:, :LABELS], atol=1e-6)
        assert np.allclose(one[:, LABELS], three[:, LABELS:].sum(axis=1), atol=1e-6)


def test_gradients_of_a_case_worked_by_hand():
    scores = np.log(np.array([[1, 2, 1], [3, 1, 1]], np.float32))
    columns, indptr = np.array([0, 1], np.int32), np.array([0, 2, 2], np.int32)
    softened, crossed, paired = scores.copy(), scores.copy(), scores.copy()
    softmax_gradient(softened, columns, indptr, 0, None)
    bce_gradient(crossed, columns, indptr, 0, None)
    pairwise_softmax_gradient(paired, columns, indptr, 0, None)
    assert np.allclose(paired, [[-1 / 4, -1 / 6, 5 / 12], [0, 0, 0]], atol=1e-6), (
        "the labels of a document do not compete"
    )
    assert np.allclose(softened, [[-0.25, 0, 0.25], [0, 0, 0]], atol=1e-6), "no label, no loss"
    assert np.allclose(crossed, [[-1 / 2, -1 / 3, 1 / 2], [3 / 4, 1 / 2, 1 / 2]], atol=1e-6), "no label, all are wrong"


@pytest.mark.parametrize("gradient", [bce_gradient, softmax_gradient, pairwise_softmax_gradient])
def test_large_scores_stay_finite_and_quiet(gradient):
    scores = np.array([[2000, -2000, 0]], np.float32)
    gradient(scores, np.array([0], np.int32), np.array([0, 1], np.int32), 0, None)
    assert np.allclose(scores[0, :2], 0, atol=1e-20)


def test_the_sigmoid_in_place_is_the_sigmoid():
    z = np.array([-1000, -3, 0, 0.5, 1000], np.float32)
    expected = sigmoid(z.astype(np.float64))
    assert np.allclose(expected[1:4], 1 / (1 + np.exp([3, 0, -0.5])))
    sigmoid_inplace(z)
    assert np.allclose(z, expected, atol=1e-7)


def test_log_odds_are_finite_for_labels_of_no_and_of_every_document():
    Y = sp.csr_matrix(np.array([[1, 0, 1], [1, 0, 0], [1, 0, 0]], np.float32))
    assert np.allclose(log_odds(Y), np.log([3.5 / 0.5, 0.5 / 3.5, 1.5 / 2.5]))


def test_pair_gradients_of_a_row_add_to_0_and_labels_of_a_document_do_not_compete(case):
    scores, Y = case
    gradients = by_blocks(pairwise_softmax_gradient, scores, Y, None)
    assert np.allclose(gradients.sum(axis=1), 0, atol=1e-6)
    one = sp.csr_matrix(np.eye(LABELS, dtype=np.float32)[[2]])
    alone = scores[:1].copy()
    pairwise_softmax_gradient(alone, one.indices, one.indptr, 0, None)
    other = np.array([[2, 5]], np.int32)
    both = scores[:1].copy()
    both[0, 5] = 40  # far better than the first, which must not change
    pairwise_softmax_gradient(both, other[0], np.array([0, 2], np.int32), 0, None)
    without = scores[:1].astype(np.float64)[0]
    wrong = np.exp(np.delete(without, [2, 5])).sum()
    assert np.isclose(both[0, 2], -0.5 * wrong / (wrong + np.exp(without[2])), rtol=1e-4)
    assert abs(both[0, 5]) < 1e-10
    wrong = np.exp(np.delete(without, 2)).sum()
    assert np.isclose(alone[0, 2], -wrong / (wrong + np.exp(without[2])), rtol=1e-4)


def test_a_document_with_every_label_has_no_gradient():
    scores = np.array([[1, 2, 30]], np.float32)
    pairwise_softmax_gradient(scores, np.arange(3, dtype=np.int32), np.array([0, 3], np.int32), 0, None)
    assert np.abs(scores).max() < 1e-12


def test_pair_gradients_stay_finite_however_far_apart_scores_are():
    rng = np.random.default_rng(9)
    Y = sp.csr_matrix((rng.random((200, LABELS)) < 0.4).astype(np.float32))
    for size in (1e2, 1e4, 1e30):
        scores = (size * rng.standard_normal((200, LABELS))).astype(np.float32)
        pairwise_softmax_gradient(scores, Y.indices, Y.indptr, 0, np.linspace(1, 1e6, LABELS, dtype=np.float32))
        assert np.isfinite(scores).all()
        assert np.abs(scores).max() <= 1 + 1e-5


@pytest.mark.parametrize("scores", [[0, -100, -120, -121], [0, -80, -78, -121], [0, 0, -500, -510], [-9, 90, 3, 1]])
def test_pairs_are_exact_where_scores_lie_far_apart(scores):
    gradients = np.array([scores], np.float32)
    pairwise_softmax_gradient(gradients, np.array([0, 1], np.int32), np.array([0, 2], np.int32), 0, None)
    wrong = np.logaddexp(*map(float, scores[2:]))
    expected = [-1 / (1 + np.exp(min(true - wrong, 700.0))) / 2 for true in scores[:2]]
    for other in scores[2:]:
        expected.append(sum(np.exp(other - np.logaddexp(wrong, true)) for true in scores[:2]) / 2)
    assert np.allclose(gradients[0], expected, atol=1e-6)


CANDIDATES = np.array([0, 1, 3, 4, 6, 7, 9, 10, 12, 15], np.int32)  # some have no document


@pytest.fixture(name="Y")
def some_documents():
    Y = np.zeros((4, 17), np.float32)
    Y[0, [3, 9]], Y[1, [9]], Y[3, [0, 3, 15]] = 1, 1, 1
    return sp.csr_matrix(Y)


@pytest.mark.parametrize("n_negatives", [1, 3, 500])
@pytest.mark.parametrize("hard_negatives", [None, np.array([[6, -1], [7, 9], [-1, -1], [6, 3]], np.int32)])
def test_the_positives_of_a_batch_are_included_and_no_label_is_repeated(Y, n_negatives, hard_negatives):
    for seed in range(30):
        sampled = sample_labels(Y, CANDIDATES, n_negatives, np.random.default_rng(seed), hard_negatives)
        assert len(set(sampled.ids)) == len(sampled.ids)
        assert np.isin(sampled.ids, CANDIDATES).all()
        assert np.array_equal(sampled.ids[sampled.columns], Y.indices)
        assert np.array_equal(sampled.indptr, Y.indptr)
        fixed = [0, 3, 9, 15] if hard_negatives is None else [0, 3, 6, 7, 9, 15]
        assert sampled.ids[: sampled.n_fixed].tolist() == fixed
        assert (sampled.weights[: sampled.n_fixed] == 1).all()
        assert not sampled.covers_all
        weights = sampled.weights[sampled.n_fixed :]
        assert len(weights) <= n_negatives
        assert not len(weights) or np.isclose(weights.sum(), len(CANDIDATES) - len(fixed)), "they stand for the rest"
        assert sampled.columns.dtype == sampled.ids.dtype == np.int32


def test_weighted_sums_over_sampled_labels_are_those_over_all_on_average(Y):
    values = np.random.default_rng(1).random(17)
    sums = []
    for seed in range(3000):
        sampled = sample_labels(Y, CANDIDATES, 12, np.random.default_rng(seed))  # almost always samples another label
        sums.append(sampled.weights @ values[sampled.ids])
    error = np.std(sums) / np.sqrt(len(sums))
    assert abs(np.mean(sums) - values[CANDIDATES].sum()) < 4 * error + 0.01
    assert np.std(sums) > 0.01


def test_documents_without_labels_are_trained_on_sampled_labels():
    sampled = sample_labels(sp.csr_matrix((3, 17), dtype=np.float32), CANDIDATES, 4, np.random.default_rng(0))
    assert sampled.n_fixed == len(sampled.columns) == 0
    assert 1 <= len(sampled.ids) <= 4
    assert np.isclose(sampled.weights.sum(), len(CANDIDATES))


def test_where_the_batch_has_every_label_nothing_is_sampled():
    Y = np.zeros((1, 17), np.float32)
    Y[0, CANDIDATES] = 1
    sampled = sample_labels(sp.csr_matrix(Y), CANDIDATES, 4, np.random.default_rng(0))
    assert np.array_equal(sampled.ids, CANDIDATES)
    assert (sampled.weights == 1).all()


def test_labels_are_seen_where_a_document_has_them(Y):
    seen = seen_labels(Y)
    assert seen.tolist() == [0, 3, 9, 15]
    assert seen.dtype == np.int32
    assert len(seen_labels(Y[2])) == 0
