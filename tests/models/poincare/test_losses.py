"""The gradients, against losses written straight from the paper."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.models.poincare.losses import (
    SIMILARITY_ALPHA,
    draw_outside,
    label_loss_gradients,
    pair_loss_gradients,
    sample_pairs,
    similarity_loss_gradient,
)
from labelspace.training.losses import SampledLabels, sample_labels
from tests.models.poincare.reference import (
    BALL,
    CLIPPED,
    EUCLIDEAN,
    MANIFOLDS,
    close,
    distances,
    finite_differences,
    project,
    quick,
)

ORACLES = pytest.mark.parametrize("oracle", ["differences", "torch"])


def float64(array, xp):
    return xp.asarray(np.asarray(array, np.float64))


def label_loss(manifold, r, points, Y, weights, alpha, xp):
    """Of each label of a document against those it does not have; the mean over its labels, then over documents."""
    powers = xp.exp(-alpha * distances(manifold, project(manifold, r, xp), points, xp))
    total = 0.0
    for j in range(len(Y)):
        positives, negatives = np.flatnonzero(Y[j]), np.flatnonzero(Y[j] == 0)
        negative_sum = (powers[j][negatives] * float64(weights[negatives], xp)).sum()
        for i in positives:
            total = total - xp.log(powers[j, i] / (negative_sum + powers[j, i])) / len(positives)
    return total / len(Y)


def similarity_loss(manifold, r, Y, weight, xp):
    """Of each document that shares labels with others: their softmax of -d against their normalized cosines."""
    points = project(manifold, r, xp)
    norms = np.maximum(np.linalg.norm(Y, axis=1), 1)
    total = 0.0
    for j in range(len(Y)):
        others = np.flatnonzero(np.arange(len(Y)) != j)
        cosines = Y[others] @ Y[j] / (norms[others] * norms[j])
        if cosines.sum() > 0:
            powers = xp.exp(-SIMILARITY_ALPHA * distances(manifold, points[[j]], points[others], xp))[0]
            total = total - (float64(cosines / cosines.sum(), xp) * xp.log(powers / powers.sum())).sum()
    return weight * total / len(Y)


def reference_gradients(loss, inputs, oracle):
    """The gradients of a loss by all its inputs, in float64."""
    inputs = [np.asarray(array, np.float64) for array in inputs]
    if oracle == "torch":
        torch = pytest.importorskip("torch")
        leaves = [torch.tensor(array, requires_grad=True) for array in inputs]
        loss(*leaves, torch).backward()
        return [leaf.grad.numpy() for leaf in leaves]

    def replaced(i):
        return lambda array: loss(*inputs[:i], array, *inputs[i + 1 :], np)

    return [finite_differences(replaced(i), array) for i, array in enumerate(inputs)]


def random_case(n_documents, n_labels, share=0.3, dimension=3, seed=0):
    """Document vectors, label points and labels; one document has no label, and all others have label 1."""
    rng = np.random.default_rng(seed)
    r = 0.7 * rng.standard_normal((n_documents, dimension))
    points = rng.standard_normal((n_labels, dimension))
    points *= 0.9 * rng.random((n_labels, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    Y = (rng.random((n_documents, n_labels)) < share).astype(np.float32)
    Y[:, 1] = 1
    if n_documents > 2:
        Y[2] = 0
    return r.astype(np.float32), points.astype(np.float32), Y


def computed_gradients(manifold, r, points, sampled, alpha):
    by_lifted, by_points = label_loss_gradients(manifold, manifold.lift_projected(r), points, sampled, alpha)
    assert by_lifted.dtype == by_points.dtype == np.float32
    return manifold.lift_projected_backward(r, by_lifted), by_points


def all_labels(Y):
    true = sp.csr_matrix(Y)
    return SampledLabels(np.arange(Y.shape[1], dtype=np.int32), true.indices, true.indptr)


@ORACLES
@MANIFOLDS
@pytest.mark.parametrize(
    ("n_documents", "n_labels", "share"), [(6, 9, 0.3), (1, 5, 0.4), (5, 2, 0.5), (70, 3, 0.4)]
)  # the last in two blocks
@pytest.mark.parametrize("alpha", [1.0, 6.0])
def test_the_gradient_of_the_label_loss_is_that_of_the_paper_s_loss(
    manifold, n_documents, n_labels, share, alpha, oracle
):
    r, points, Y = random_case(n_documents, n_labels, share)
    computed = computed_gradients(manifold, r, points, all_labels(Y), alpha)
    weights = np.ones(n_labels)
    expected = reference_gradients(
        lambda r, points, xp: label_loss(manifold, r, points, Y, weights, alpha, xp), (r, points), oracle
    )
    for one, other in zip(computed, expected, strict=True):
        assert np.abs(other).max() > 1e-3
        assert close(one, other, 1e-3)
    assert n_documents < 3 or not computed[0][2].any(), "no label, no gradient"


@MANIFOLDS
def test_the_gradient_by_sampled_labels_is_that_of_the_weighted_loss(manifold):
    r, points, Y = random_case(6, 20, 0.15)
    sampled = sample_labels(sp.csr_matrix(Y), np.arange(20, dtype=np.int32), 5, np.random.default_rng(3))
    assert sampled.weights.max() > 1
    computed = computed_gradients(manifold, r, points[sampled.ids], sampled, 4.0)
    expected = reference_gradients(
        lambda r, points, xp: label_loss(manifold, r, points, Y[:, sampled.ids], sampled.weights, 4.0, xp),
        (r, points[sampled.ids]),
        "torch",
    )
    assert all(close(*both, 1e-3) for both in zip(computed, expected, strict=True))


def pair_loss(manifold, r, targets, pairs, alpha, xp):
    """Of each positive of a document against its own negatives, each as often as it was drawn."""
    powers = xp.exp(-alpha * distances(manifold, project(manifold, r, xp), targets, xp))
    n_positives, total = pairs.indptr[-1], 0.0
    for j in range(len(r)):
        of_document = np.flatnonzero(pairs.documents == j)
        positives = pairs.targets[of_document[of_document < n_positives]]
        negative_sum = powers[j][pairs.targets[of_document[of_document >= n_positives]]].sum()
        for i in positives:
            total = total - xp.log(powers[j, i] / (negative_sum + powers[j, i])) / len(positives)
    return total / len(r)


@ORACLES
@MANIFOLDS
@pytest.mark.parametrize("alpha", [1.0, 10.0])
def test_the_gradient_by_negatives_of_each_document_is_that_of_the_loss_on_labels(manifold, alpha, oracle):
    r, points, Y = random_case(6, 9)
    true = sp.csr_matrix(Y)
    pairs = sample_pairs(true, true, 4, np.random.default_rng(3))
    points = points[pairs.ids]
    by_lifted, by_targets = pair_loss_gradients(
        manifold, manifold.lift_projected(r), manifold.lift(points), pairs, alpha
    )
    computed = (manifold.lift_projected_backward(r, by_lifted), manifold.lift_backward(points, by_targets))
    expected = reference_gradients(
        lambda r, points, xp: pair_loss(manifold, r, points, pairs, alpha, xp), (r, points), oracle
    )
    for one, other in zip(computed, expected, strict=True):
        assert one.dtype == np.float32
        assert np.abs(other).max() > 1e-3
        assert close(one, other, 1e-3)


@MANIFOLDS
def test_the_gradient_of_the_loss_on_neighbors_is_that_of_annexml_s_softmax(manifold):
    """Documents are drawn to their neighbors and away from others: both are vectors of the same map."""
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((7, 3)).astype(np.float32)
    graph = sp.csr_matrix(np.roll(np.eye(7), 1, axis=1) + np.roll(np.eye(7), 3, axis=1))
    pairs = sample_pairs(graph[:4], (graph + sp.eye(7)).tocsr()[:4], 5, rng)

    def loss(vectors):
        cosine_or_distance = distances(manifold, project(manifold, vectors), project(manifold, vectors))
        total = 0.0
        for j in range(4):
            negatives = pairs.ids[pairs.targets[graph[:4].nnz :]][pairs.documents[graph[:4].nnz :] == j]
            powers = np.exp(-10 * cosine_or_distance[j])
            for v in graph[j].indices:
                total -= np.log(powers[v] / (powers[negatives].sum() + powers[v])) / 2 / 4
        return total

    expected = finite_differences(loss, vectors.astype(np.float64))
    lifted = manifold.lift_projected(vectors)
    by_documents, by_targets = pair_loss_gradients(manifold, lifted[:4], lifted[pairs.ids], pairs, 10.0)
    by_lifted = np.zeros_like(lifted)
    by_lifted[:4] += by_documents
    by_lifted[pairs.ids] += by_targets
    assert close(manifold.lift_projected_backward(vectors, by_lifted), expected, 2e-3)


@MANIFOLDS
def test_the_gradient_is_0_where_all_documents_have_all_labels(manifold):
    r, points, Y = random_case(5, 4)
    computed = computed_gradients(manifold, r, points, all_labels(np.ones_like(Y)), 4.0)
    assert all(np.abs(gradient).max() < 1e-12 for gradient in computed)


def test_gradients_are_finite_where_documents_and_labels_meet():
    _, points, Y = random_case(8, 8)
    r = points * (np.arctanh(np.linalg.norm(points, axis=1)) / np.linalg.norm(points, axis=1))[:, None]
    for manifold, vectors in ((BALL, r), (CLIPPED, points), (EUCLIDEAN, points)):
        for gradient in computed_gradients(manifold, vectors, points, all_labels(Y), 16.0):
            assert np.isfinite(gradient).all()
        lifted = manifold.lift_projected(np.repeat(vectors[:2], 4, axis=0))
        assert np.isfinite(similarity_loss_gradient(manifold, lifted, sp.csr_matrix(Y), 1.0)).all()


@MANIFOLDS
@ORACLES
@pytest.mark.parametrize("n_documents", [2, 7])
def test_the_gradient_of_the_similarity_loss_is_that_of_the_cross_entropy(manifold, oracle, n_documents):
    r, _, Y = random_case(n_documents, 6, seed=4)
    Y[0], Y[1] = [1, 0, 0, 1, 0, 0], [1, 1, 0, 0, 0, 0]
    if n_documents > 3:
        Y[3] = [0, 0, 0, 0, 0, 1]  # shares no label
        Y[4:, 5] = 0
    expected = reference_gradients(lambda r, xp: similarity_loss(manifold, r, Y, 0.7, xp), (r,), oracle)[0]
    by_lifted = similarity_loss_gradient(manifold, manifold.lift_projected(r), sp.csr_matrix(Y), 0.7)
    computed = manifold.lift_projected_backward(r, by_lifted)
    assert np.abs(expected).max() > 1e-2 or n_documents == 2
    assert np.allclose(computed, expected, rtol=2e-3, atol=2e-3 * max(np.abs(expected).max(), 1e-3))


@MANIFOLDS
def test_the_similarity_loss_has_no_gradient_where_no_documents_share_a_label(manifold):
    r, _, _ = random_case(5, 5)
    for Y in (np.eye(5), np.zeros((5, 5)), np.ones((1, 5))):
        true = sp.csr_matrix(Y.astype(np.float32))
        assert not similarity_loss_gradient(manifold, manifold.lift_projected(r[: len(Y)]), true, 1.0).any()


def test_the_similarity_loss_arranges_documents_by_the_labels_they_share(small):
    losses = {}
    for weight in (0.0, 10.0):
        model = quick(similarity_weight=weight, epochs=12, embedding_dim=4)
        model.fit(small.X, small.Y, validation=(small.X, small.Y))
        points = model.document_indexes_[0].points.astype(np.float64)
        r = points * (np.arctanh(np.linalg.norm(points, axis=1)) / np.linalg.norm(points, axis=1))[:, None]
        losses[weight] = similarity_loss(BALL, r, small.Y.toarray(), 1.0, np)
    assert losses[10.0] < losses[0.0] - 0.04


def random_rows(seed, n, n_columns, share=0.4):
    return sp.csr_matrix((np.random.default_rng(seed).random((n, n_columns)) < share).astype(np.float32))


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 8), st.sampled_from([0.0, 0.4, 0.9, 1.0]))
def test_what_is_drawn_is_a_column_that_the_row_does_not_have(seed, n, n_columns, share):
    rows = random_rows(seed, n, n_columns, share)
    drawn = draw_outside(rows, 5, np.random.default_rng(seed))
    assert drawn.shape == (n, 5)
    for row, columns in zip(rows.toarray(), drawn, strict=True):
        if row.all():
            assert (columns == n_columns).all(), "there is none"
        else:
            assert (columns >= 0).all()
            assert (columns < n_columns).all()
            assert not row[columns].any()


def test_every_column_that_a_row_does_not_have_is_drawn_equally_often():
    rows = sp.csr_matrix(np.array([[1, 0, 1, 0, 0, 1], [0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1]], np.float32))
    drawn = draw_outside(rows, 12_000, np.random.default_rng(0))
    for row, columns in zip(rows.toarray(), drawn, strict=True):
        counts = np.bincount(columns, minlength=6)
        expected = 12_000 / (row == 0).sum()
        assert (np.abs(counts[row == 0] - expected) < 0.1 * expected).all()
        assert not counts[row == 1].any()


def test_each_document_has_its_positives_and_its_own_negatives():
    true = random_rows(1, 9, 12)
    true = sp.vstack([true, sp.csr_matrix((1, 12)), sp.csr_matrix(np.ones((1, 12)))]).tocsr()
    pairs = sample_pairs(true, true, 4, np.random.default_rng(0))
    n_positives = true.nnz
    assert np.array_equal(pairs.ids, np.unique(pairs.ids))
    targets, positives = pairs.ids[pairs.targets], []
    drawn = []
    for i, row in enumerate(true.toarray()):
        of_row = np.flatnonzero(pairs.documents == i)
        mine, others = of_row[of_row < n_positives], of_row[of_row >= n_positives]
        assert sorted(targets[mine]) == np.flatnonzero(row).tolist()
        assert len(others) == (0 if row.all() else 4)
        assert not row[targets[others]].any(), "never a positive"
        columns = pairs.columns[of_row]
        assert len(set(columns)) == len(columns)
        assert pairs.columns[mine].tolist() == list(range(len(mine)))
        assert (pairs.columns[others] >= int(true.sum(axis=1).max())).all()
        drawn.append(tuple(targets[others]))
        positives.append(len(mine))
    assert pairs.width == max(positives) + 4
    assert np.diff(pairs.indptr).tolist() == positives
    assert len(set(drawn)) > 5, "not shared by the documents"


@pytest.mark.parametrize("seed", range(3))
def test_more_may_be_excluded_than_the_positives(seed):
    true, more = random_rows(seed, 7, 10, 0.2), random_rows(seed + 9, 7, 10, 0.3)
    excluded = (true + more).tocsr()
    pairs = sample_pairs(true, excluded, 20, np.random.default_rng(seed))
    negatives = slice(true.nnz, None)
    assert not excluded.toarray()[pairs.documents[negatives], pairs.ids[pairs.targets[negatives]]].any()
    assert pairs.indptr[-1] == true.nnz
