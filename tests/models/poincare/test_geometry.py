import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.models.poincare.geometry import (
    CLIP_MARGIN,
    MAX_STEP,
    MAX_TANGENT_NORM,
    MIN_COSH_EXCESS,
    MIN_SQUARED_DISTANCE,
    PoincareBall,
    clip_to_ball,
    exponential_map,
    inverse_conformal_factor,
)
from labelspace.training.optimizers import RowAdagrad, RowAdam, RowSgd
from tests.models.poincare.reference import (
    BALL,
    CLIPPED,
    EUCLIDEAN,
    MANIFOLDS,
    close,
    distances,
    finite_differences,
    project,
)

MAX_NORM = np.tanh(MAX_TANGENT_NORM)
seeds = st.integers(0, 10**6)
dimensions = st.sampled_from([1, 2, 3, 10])


def in_ball(seed, n, dimension, within=0.95):
    """Points in all directions, of norms up to ``within``."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, dimension))
    return points / np.linalg.norm(points, axis=1, keepdims=True) * within * rng.random((n, 1))


def gaussian(seed, n, dimension):
    return 3 * np.random.default_rng(seed).standard_normal((n, dimension))


def computed_distances(manifold, one, other):
    """All distances, as training computes them."""
    z = manifold.lift(one) @ manifold.dual(manifold.lift(other)).T
    manifold.distances_inplace(z)
    return z


def rowwise_distances(manifold, one, other):
    """The distances of row i to row i, without the matrix product."""
    return np.array([distances(manifold, a[None], b[None])[0, 0] for a, b in zip(one, other, strict=True)])


def translated(by, points):
    """The Möbius sum of a point and others: the translation of the ball that takes the origin to the point."""
    product, x, y = points @ by, by @ by, (points**2).sum(axis=1)
    top = (1 + 2 * product + y)[:, None] * by + (1 - x) * points
    return top / (1 + 2 * product + x * y)[:, None]


def rotated(seed, points):
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((points.shape[1],) * 2))
    return points @ rotation


# ---- distances


@given(seeds, dimensions)
def test_distances_in_the_ball_are_those_of_the_textbook(seed, dimension):
    one, other = in_ball(seed, 4, dimension), in_ball(seed + 1, 5, dimension)
    expected = np.maximum(distances(BALL, one, other), np.arccosh(1 + MIN_COSH_EXCESS))
    assert close(computed_distances(BALL, one, other), expected, 1e-5)


@given(seeds, dimensions)
def test_distances_in_euclidean_space_are_those_of_the_textbook(seed, dimension):
    one, other = gaussian(seed, 4, dimension), gaussian(seed + 1, 5, dimension)
    expected = np.maximum(distances(EUCLIDEAN, one, other), MIN_SQUARED_DISTANCE**0.5)
    assert close(computed_distances(EUCLIDEAN, one, other), expected)


@pytest.mark.parametrize(("manifold", "draw"), [(BALL, in_ball), (EUCLIDEAN, gaussian)], ids=["ball", "euclidean"])
@given(seed=seeds, dimension=dimensions)
def test_distances_are_symmetric_and_satisfy_the_triangle_inequality(manifold, draw, seed, dimension):
    points = draw(seed, 6, dimension)
    d = computed_distances(manifold, points, points)
    assert np.allclose(d, d.T, atol=1e-9)
    detours, different = d[:, :, None] + d[None], ~np.eye(6, dtype=bool)
    assert (d[:, None] <= detours + 1e-2).all(), "distances have a minimum: a point is not quite at 0 from itself"
    assert (d[:, None] <= detours + 1e-9)[different[:, :, None] & different[None]].all()


@given(seeds, dimensions)
def test_rotation_and_translation_of_the_ball_change_no_distance(seed, dimension):
    points = in_ball(seed, 5, dimension, within=0.8)
    before, different = computed_distances(BALL, points, points), ~np.eye(5, dtype=bool)
    by = in_ball(seed + 2, 1, dimension, within=0.8)[0]
    for after in (rotated(seed, points), translated(by, points)):
        assert np.linalg.norm(after, axis=1).max() < 1
        assert np.allclose(computed_distances(BALL, after, after)[different], before[different], rtol=1e-6)


@given(seeds, dimensions)
def test_rotation_and_translation_of_euclidean_space_change_no_distance(seed, dimension):
    points = gaussian(seed, 5, dimension)
    before = computed_distances(EUCLIDEAN, points, points)
    for after in (rotated(seed, points), points + 7.5):
        assert np.allclose(computed_distances(EUCLIDEAN, after, after), before, atol=1e-3)


@MANIFOLDS
def test_dual_is_its_own_transpose_and_its_own_inverse(manifold):
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 5, 4))
    if manifold is EUCLIDEAN:  # only rows that end in a 1 are lifted ones
        one, other = manifold.lift(one), manifold.lift(other)
        assert np.allclose((manifold.dual(one) * other).sum(axis=1), (one * manifold.dual(other)).sum(axis=1))
        return
    assert np.allclose((manifold.dual(one) * other).sum(axis=1), (one * manifold.dual(other)).sum(axis=1))
    assert np.array_equal(manifold.dual(manifold.dual(one)), one)


@pytest.mark.parametrize(("manifold", "least"), [(BALL, 1 + MIN_COSH_EXCESS), (EUCLIDEAN, MIN_SQUARED_DISTANCE)])
def test_derivatives_are_those_of_the_distances_and_bounded_where_points_meet(manifold, least):
    z = least + np.geomspace(1e-3, 1e5, 40)
    derivatives = manifold.distances_inplace(z.copy())
    steps = 1e-6 * z
    above, below = z + steps, z - steps
    manifold.distances_inplace(above)
    manifold.distances_inplace(below)
    assert np.allclose(derivatives, (above - below) / (2 * steps), rtol=1e-4)
    meeting = np.array([least, least - 0.5, -1e9, 0.0])
    derivatives = manifold.distances_inplace(meeting)
    assert (derivatives == derivatives[0]).all()
    assert np.isfinite(derivatives).all()
    assert (meeting > 0).all()


def test_float32_is_precise_enough_for_the_distances_of_training():
    one, other = (rows.astype(np.float32) for rows in (in_ball(1, 200, 20, 0.99), in_ball(2, 200, 20, 0.99)))
    d, exact = computed_distances(BALL, one, other), distances(BALL, one.astype(float), other.astype(float))
    assert d.dtype == np.float32
    assert np.allclose(d, exact, rtol=1e-4, atol=0.01)


# ---- projection of documents


@given(seeds, dimensions)
def test_the_exponential_map_preserves_directions_and_distances_from_the_origin(seed, dimension):
    r = gaussian(seed, 8, dimension) / 3
    norms = np.linalg.norm(r, axis=1)
    points = BALL.project(r)
    assert np.allclose(points, np.tanh(np.minimum(norms, MAX_TANGENT_NORM))[:, None] * r / norms[:, None])
    from_origin = distances(BALL, np.zeros((1, dimension)), points)[0]
    assert np.allclose(from_origin, 2 * np.minimum(norms, MAX_TANGENT_NORM), rtol=1e-9)


@pytest.mark.parametrize("exponential", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_document_is_projected_outside_of_the_ball(exponential, dtype):
    rng = np.random.default_rng(3)
    for norm in (0.0, 1e-30, 1e-12, 1e-3, 0.99999, 1.0, 1.00001, 3.0, 50.0, 1e9, 1e18):
        for dimension in (1, 2, 50):
            r = rng.standard_normal((20, dimension))
            r = (r / np.linalg.norm(r, axis=1, keepdims=True) * norm).astype(dtype)
            points = PoincareBall(exponential).project(r)
            assert points.dtype == dtype
            assert (np.linalg.norm(points.astype(float), axis=1) < 1 - CLIP_MARGIN / 2).all()
            assert np.isfinite(PoincareBall(exponential).lift_projected(r)).all()
            assert norm < 3 or (np.linalg.norm(points, axis=1) > 0.99).all(), "and long vectors go far out"


@pytest.mark.parametrize("manifold", [BALL, CLIPPED, EUCLIDEAN], ids=["exponential", "clip", "euclidean"])
def test_vectors_are_lifted_as_their_points_are(manifold):
    r = np.concatenate([gaussian(4, 30, 3), np.zeros((1, 3)), 1e-12 * np.ones((1, 3))])
    assert np.allclose(manifold.lift_projected(r), manifold.lift(manifold.project(r)), rtol=1e-6)


def test_points_outside_are_clipped_to_just_inside_and_others_are_unchanged():
    points = np.array([[0.3, 0.4], [0.0, 0.0], [3.0, 4.0], [-1.0, 0.0], [0.0, 1 - CLIP_MARGIN / 2]])
    limit = 1 - CLIP_MARGIN
    expected = [[0.3, 0.4], [0, 0], [0.6 * limit, 0.8 * limit], [-limit, 0], [0, limit]]
    assert np.allclose(clip_to_ball(points), expected, atol=1e-12)
    assert np.array_equal(clip_to_ball(points)[:2], points[:2])


# ---- the exponential map at points


@given(seeds, dimensions, st.floats(1e-4, MAX_STEP))
def test_a_step_has_its_hyperbolic_length_and_can_be_reversed(seed, dimension, length):
    points = in_ball(seed, 6, dimension, within=0.9)
    steps = gaussian(seed + 1, 6, dimension)
    steps *= length / np.linalg.norm(steps, axis=1, keepdims=True)
    after = exponential_map(points, steps)
    assert np.allclose(rowwise_distances(BALL, points, after), length, rtol=1e-5)
    before = exponential_map(points, -steps)
    assert np.allclose(rowwise_distances(BALL, before, after), 2 * length, rtol=1e-5), "all three are on one geodesic"
    back = np.concatenate([translated(-x, y[None]) for x, y in zip(after, points, strict=True)])
    back *= length / np.linalg.norm(back, axis=1, keepdims=True)
    assert np.allclose(exponential_map(after, back), points, atol=1e-7)


@given(seeds, dimensions)
def test_a_short_step_goes_in_its_direction(seed, dimension):
    points, steps = in_ball(seed, 6, dimension, within=0.9), gaussian(seed + 1, 6, dimension)
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    short = (exponential_map(points, 1e-6 * steps) - points) / 1e-6
    assert np.allclose(short, inverse_conformal_factor(points) * steps, atol=1e-5)


@given(seeds, dimensions)
def test_a_step_is_the_translation_of_a_step_at_the_origin(seed, dimension):
    point, step = in_ball(seed, 1, dimension, 0.9), in_ball(seed + 1, 1, dimension)
    at_origin = exponential_map(np.zeros((1, dimension)), step)
    assert np.allclose(at_origin, np.tanh(np.linalg.norm(step) / 2) * step / np.linalg.norm(step))
    assert np.allclose(exponential_map(point, step), translated(point[0], at_origin))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_of_0_changes_nothing_and_a_long_one_is_cut(dtype):
    points = in_ball(5, 20, 3, within=0.9).astype(dtype)
    assert np.allclose(exponential_map(points, np.zeros_like(points)), points, rtol=1e-6)
    steps = gaussian(6, 20, 3).astype(dtype)
    steps *= 1e6 / np.linalg.norm(steps, axis=1, keepdims=True)
    after = exponential_map(points, steps).astype(float)
    assert np.allclose(rowwise_distances(BALL, points.astype(float), after), MAX_STEP, rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_step_leads_beyond_the_maximum_norm(dtype):
    edge = in_ball(7, 50, 3)
    edge = (edge / np.linalg.norm(edge, axis=1, keepdims=True) * MAX_NORM).astype(dtype)
    for steps in (edge, 100 * edge, gaussian(8, 50, 3).astype(dtype)):
        after = exponential_map(edge, steps)
        assert after.dtype == dtype
        assert (np.linalg.norm(after.astype(float), axis=1) <= MAX_NORM + 1e-6).all()
    inward = exponential_map(edge, -edge)
    assert (np.linalg.norm(inward.astype(float), axis=1) < MAX_NORM - 1e-3).all(), "points can leave it again"


# ---- gradients


def linear(weights, rows):
    """A function whose gradient by the rows is known: the weights."""
    return float((weights * rows).sum())


@pytest.mark.parametrize(("manifold", "draw"), [(BALL, in_ball), (EUCLIDEAN, gaussian)], ids=["ball", "euclidean"])
@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_the_gradient_by_points_is_that_of_finite_differences(manifold, draw, dimension):
    points = draw(1, 5, dimension)
    points[0] = 0
    weights = np.random.default_rng(2).standard_normal(manifold.lift(points).shape)
    expected = finite_differences(lambda at: linear(weights, manifold.lift(at)), points)
    assert close(manifold.lift_backward(points, weights), expected)


@MANIFOLDS
@pytest.mark.parametrize("dimension", [1, 2, 7])
@pytest.mark.parametrize("norm", [1e-4, 0.1, 1.0, MAX_TANGENT_NORM - 0.01, MAX_TANGENT_NORM + 0.01, 20.0])
def test_the_gradient_by_document_vectors_is_that_of_finite_differences(manifold, dimension, norm):
    r = gaussian(3, 5, dimension)
    r *= norm / np.linalg.norm(r, axis=1, keepdims=True)
    weights = np.random.default_rng(4).standard_normal(manifold.lift_projected(r).shape)
    expected = finite_differences(lambda at: linear(weights, manifold.lift_projected(at)), r, step=1e-5 * norm)
    gradient = manifold.lift_projected_backward(r, weights)
    assert np.allclose(gradient, expected, rtol=1e-5, atol=1e-5 * max(np.abs(expected).max(), 1))
    if dimension == 1 and norm > MAX_TANGENT_NORM and manifold is BALL:
        assert np.allclose(gradient, 0, atol=1e-9), "only the direction counts, and it cannot change"


def test_the_gradient_at_a_vector_of_0_is_that_of_the_linear_part():
    weights = np.random.default_rng(5).standard_normal((1, 4))
    assert np.allclose(BALL.lift_projected_backward(np.zeros((1, 3)), weights), 2 * weights[:, 1:])


def test_with_the_paper_s_projection_the_gradient_is_scaled_by_the_inverse_metric():
    r = np.concatenate([in_ball(6, 6, 3), 4 * in_ball(7, 6, 3) + 1])
    points = CLIPPED.project(r)
    weights = np.random.default_rng(8).standard_normal((12, 4))
    expected = np.empty_like(points)
    for i in range(12):
        step = 1e-4 * (1 - points[i] @ points[i])
        expected[i] = finite_differences(lambda at, i=i: linear(weights[[i]], CLIPPED.lift(at)), points[[i]], step)[0]
        expected[i] *= ((1 - points[i] @ points[i]) / 2) ** 2
    assert np.linalg.norm(r, axis=1).max() > 1
    assert close(CLIPPED.lift_projected_backward(r, weights), expected, 1e-5)


@MANIFOLDS
def test_the_gradient_of_a_distance_is_that_of_torch(manifold):
    torch = pytest.importorskip("torch")
    vectors, points = gaussian(9, 6, 4) / 3, in_ball(10, 5, 4)
    weights = np.random.default_rng(11).standard_normal((6, 5))
    lifted, duals = manifold.lift_projected(vectors), manifold.dual(manifold.lift(points))
    z = lifted @ duals.T
    errors = weights * manifold.distances_inplace(z)
    by_vectors = manifold.lift_projected_backward(vectors, errors @ duals)
    by_points = manifold.lift_backward(points, manifold.dual(errors.T @ lifted))

    r, x = (torch.tensor(rows, requires_grad=True) for rows in (vectors, points))
    d = distances(manifold, project(manifold, r, torch), x, torch)
    (torch.tensor(weights) * d).sum().backward()
    assert np.linalg.norm(vectors, axis=1).max() < MAX_TANGENT_NORM
    assert close(z, d.detach().numpy())
    assert close(by_vectors, r.grad.numpy())
    assert close(by_points, x.grad.numpy())


# ---- riemannian steps


def optimizers(n, dimension):
    return [RowSgd(), RowAdagrad(n), RowAdam(n, dimension)]


@pytest.mark.parametrize("which", [0, 1, 2], ids=["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("dimension", [1, 3])
def test_points_stay_in_the_ball_whatever_the_gradients(which, dimension):
    rng = np.random.default_rng(12)
    n = 24
    ids = np.arange(n, dtype=np.int32)
    optimizer = optimizers(n, dimension)[which]
    points = in_ball(13, n, dimension, within=1e-3).astype(np.float32)
    points[:4] = 0
    points[4:8] = clip_to_ball(np.full((4, dimension), 9, np.float32))
    for step in range(1500):
        scale = 10.0 ** rng.integers(-12, 13)
        gradient = (scale * rng.standard_normal((n, dimension))).astype(np.float32)
        gradient[rng.random(n) < 0.2] = 0
        if step % 3 == 0:
            gradient = -points * np.float32(scale)  # outwards
        points = BALL.riemannian_step(points, gradient, optimizer, ids, lr=100.0)
        assert points.dtype == np.float32
        assert np.isfinite(points).all(), step
        assert (np.einsum("ij,ij->i", points, points, dtype=np.float64) < 1).all(), step


@pytest.mark.parametrize("which", [0, 1, 2], ids=["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("exponential", [True, False])
def test_training_on_distances_stays_finite_where_documents_and_labels_meet(which, exponential):
    rng = np.random.default_rng(14)
    n, dimension, manifold = 12, 2, PoincareBall(exponential)
    ids = np.arange(n, dtype=np.int32)
    label_optimizer, document_optimizer = optimizers(n, dimension)[which], optimizers(n, dimension)[which]
    points = in_ball(15, n, dimension).astype(np.float32)
    r = np.arctanh(np.linalg.norm(points, axis=1, keepdims=True)) * points / np.linalg.norm(points, axis=1)[:, None]
    r = r.astype(np.float32) if exponential else points.copy()  # every document on its label
    for step in range(750):
        lifted, duals = manifold.lift_projected(r), manifold.dual(manifold.lift(points))
        z = lifted @ duals.T
        errors = manifold.distances_inplace(z) * (100 * rng.standard_normal((n, n))).astype(np.float32)
        by_r = manifold.lift_projected_backward(r, errors @ duals)
        by_points = manifold.lift_backward(points, manifold.dual(errors.T @ lifted))
        assert np.isfinite(by_r).all(), step
        assert np.isfinite(by_points).all(), step
        points = manifold.riemannian_step(points, by_points, label_optimizer, ids, 10.0)
        r = r + document_optimizer.updates(ids, by_r, 10.0)
        assert np.isfinite(z).all()
        assert np.isfinite(r).all(), step
        assert (np.einsum("ij,ij->i", points, points, dtype=np.float64) < 1).all(), step


def test_sgd_updates_labels_by_the_paper_s_rule():
    points, gradient = in_ball(16, 5, 3, 0.7), 0.1 * gaussian(17, 5, 3)
    expected = points - 0.2 * ((1 - (points**2).sum(axis=1, keepdims=True)) / 2) ** 2 * gradient
    ids = np.arange(5, dtype=np.int32)
    assert np.allclose(BALL.riemannian_step(points, gradient, RowSgd(), ids, 0.2), expected)
    assert np.allclose(EUCLIDEAN.riemannian_step(points, gradient, RowSgd(), ids, 0.2), points - 0.2 * gradient)


def test_adam_steps_are_scaled_by_the_inverse_metric():
    points, gradient, ids = in_ball(18, 5, 3, 0.7), gaussian(19, 5, 3), np.arange(5, dtype=np.int32)
    inverse_metric = ((1 - (points**2).sum(axis=1, keepdims=True)) / 2) ** 2
    expected = points + inverse_metric * RowAdam(5, 3).updates(ids, gradient, 0.1)
    assert np.allclose(BALL.riemannian_step(points, gradient, RowAdam(5, 3), ids, 0.1), expected)


def test_adagrad_moves_labels_along_geodesics_downhill():
    points, gradient, ids = in_ball(20, 5, 3, 0.9), gaussian(21, 5, 3), np.arange(5, dtype=np.int32)
    after = BALL.riemannian_step(points, gradient, RowAdagrad(5), ids, 0.1)
    assert np.allclose(rowwise_distances(BALL, points, after), 0.1 * np.sqrt(3), rtol=1e-4), (
        "the first step is the learning rate"
    )
    assert ((after - points) * gradient).sum(axis=1).max() < 0
