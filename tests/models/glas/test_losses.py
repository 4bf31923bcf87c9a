import numpy as np
import pytest

from labelspace.models.glas.losses import loss_gradient, regularizer_gradient
from labelspace.models.glas.training import sample_positives
from labelspace.training.losses import SampledLabels
from tests.models.glas.cases import quick, similarities_by_definition, trained_arrays, uninformative_data


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


OFF_DIAGONAL = ~np.eye(12, dtype=bool)


def numeric_gradient(function, at, step=1e-6):
    gradient = np.zeros_like(at)
    for entry in np.ndindex(at.shape):
        change = np.zeros_like(at)
        change[entry] = step
        gradient[entry] = (function(at + change) - function(at - change)) / (2 * step)
    return gradient


def test_gradients_are_those_of_equations_3_and_2_and_of_gravity():
    rng = np.random.default_rng(0)
    V, phi, U = (rng.standard_normal(shape) for shape in ((4, 3), (5, 3), (4, 4)))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    U = U + U.T  # similarities are symmetric
    labels, weight, off_diagonal = np.arange(4, dtype=np.int32), 7.0, 1 - np.eye(4)
    given = (weight, labels, V, phi, lambda _: U, None)
    glas = regularizer_gradient("glas", *given)
    assert np.allclose(glas.of_labels, numeric_gradient(lambda V: weight * ((V @ V.T - U) ** 2).mean(), V), rtol=1e-4)
    spread_out = regularizer_gradient("spread_out", *given)
    expected = numeric_gradient(lambda V: weight * ((V @ V.T * off_diagonal) ** 2).mean(), V)
    assert np.allclose(spread_out.of_labels, expected, rtol=1e-4)
    gravity = regularizer_gradient("gravity", *given)
    assert np.allclose(gravity.of_labels, numeric_gradient(lambda V: weight * ((phi @ V.T) ** 2).mean(), V), rtol=1e-4)
    expected = numeric_gradient(lambda phi: weight * ((phi @ V.T) ** 2).mean(), phi)
    assert np.allclose(gravity.of_documents, expected, rtol=1e-4)


def test_the_gradient_is_that_of_equation_4():
    rng = np.random.default_rng(0)
    V, U = rng.standard_normal((4, 3)), rng.random((4, 4))
    U = U + U.T

    def laplacian(V):
        return 7.0 / 16 * sum(U[i, j] * ((V[i] - V[j]) ** 2).sum() for i in range(4) for j in range(4))

    labels = np.arange(4, dtype=np.int32)
    ours = regularizer_gradient("laplacian", 7.0, labels, V, V, lambda _: U.copy(), None).of_labels
    assert np.allclose(ours, numeric_gradient(laplacian, V), rtol=1e-4)


@pytest.mark.parametrize("name", ["glas", "spread_out", "laplacian", "gravity"])
def test_a_label_that_is_drawn_twice_counts_twice(name):
    """The gradient of the B x B matrix of the drawn labels, with repetitions."""
    rng = np.random.default_rng(1)
    V, phi, U = (rng.standard_normal(shape) for shape in ((3, 4), (5, 4), (3, 3)))
    U, counts, weight = U + U.T, np.array([2, 1, 3]), 7.0
    drawn = np.repeat(np.arange(3), counts)

    def value(V, phi):
        rows, similarities, same = V[drawn], U[np.ix_(drawn, drawn)], drawn[:, None] == drawn
        return weight * {
            "glas": ((rows @ rows.T - similarities) ** 2).mean(),
            "spread_out": ((rows @ rows.T) ** 2 * ~same).mean(),
            "laplacian": (((rows[:, None] - rows) ** 2).sum(axis=2) * similarities).mean(),
            "gravity": ((phi @ rows.T) ** 2).mean(),
        }[name]  # fmt: skip

    ours = regularizer_gradient(name, weight, np.arange(3, dtype=np.int32), V, phi.copy(), lambda _: U.copy(), counts)
    assert np.allclose(ours.of_labels, numeric_gradient(lambda V: value(V, phi), V), rtol=1e-4)
    if name == "gravity":
        assert np.allclose(ours.of_documents, numeric_gradient(lambda phi: value(V, phi), phi), rtol=1e-4)


def test_the_laplacian_alone_makes_labels_alike_that_share_documents():
    X, Y = uninformative_data()
    V = trained_arrays(quick(regularizer="laplacian", epochs=12), X, Y)["label_embeddings"][:, :-1]
    assert (V @ V.T)[np.arange(0, 12, 2), np.arange(1, 12, 2)].mean() > 0.95, "pairs share every document"


@pytest.mark.parametrize("all_labels", [True, False])
def test_glas_moves_inner_products_of_labels_to_their_similarity(all_labels):
    X, Y = uninformative_data()
    U, errors = similarities_by_definition(Y.toarray(), "arithmetic"), {}
    for name in ("glas", "none"):
        arrays = trained_arrays(quick(regularizer=name, all_labels=all_labels, epochs=12), X, Y)
        V = arrays["label_embeddings"][:, :-1]
        errors[name] = np.abs(V @ V.T - U)[OFF_DIAGONAL].mean()
    assert errors["glas"] < 0.5 * errors["none"]


def test_spread_out_labels_are_nearly_orthogonal():
    X, Y = uninformative_data()
    V = trained_arrays(quick(regularizer="spread_out", epochs=12), X, Y)["label_embeddings"][:, :-1]
    assert np.abs(V @ V.T)[OFF_DIAGONAL].mean() < 0.1
