import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.models.poincare.geometry import (
    CLIPPED,
    LEAST_COSH,
    LEAST_SQUARE,
    LONGEST_STEP,
    RADIUS,
    Ball,
    Flat,
    clipped,
    frame,
    moved,
)
from labelspace.training.optimizers import RowAdagrad, RowAdam, RowSgd

FARTHEST = np.tanh(RADIUS)
seeds = st.integers(0, 10**6)
dimensions = st.sampled_from([1, 2, 3, 10])


def in_ball(seed, n, dimension, within=0.95):
    """Points in all directions, of norms up to ``within``."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n, dimension))
    return points / np.linalg.norm(points, axis=1, keepdims=True) * within * rng.random((n, 1))


def anywhere(seed, n, dimension):
    return 3 * np.random.default_rng(seed).standard_normal((n, dimension))


def apart(space, one, other):
    """All distances, as training finds them."""
    z = space.lift(one) @ space.flip(space.lift(other)).T
    space.distances(z)
    return z


def textbook(space, one, other):
    squares = ((one[:, None] - other[None]) ** 2).sum(axis=2)
    if isinstance(space, Flat):
        return np.sqrt(squares)
    gaps = (1 - (one**2).sum(axis=1))[:, None] * (1 - (other**2).sum(axis=1))[None]
    return np.arccosh(1 + 2 * squares / gaps)


def beside(space, one, other):
    """The distances of rows that stand beside each other, without the product of matrices."""
    return np.array([textbook(space, a[None], b[None])[0, 0] for a, b in zip(one, other, strict=True)])


def translated(by, points):
    """The Möbius sum of a point and others: the shift of the ball that takes the origin there."""
    product, x, y = points @ by, by @ by, (points**2).sum(axis=1)
    top = (1 + 2 * product + y)[:, None] * by + (1 - x) * points
    return top / (1 + 2 * product + x * y)[:, None]


def rotated(seed, points):
    turn, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((points.shape[1],) * 2))
    return points @ turn


def slopes_of(function, at, step=1e-6):
    """Central differences of a number by every place of an array."""
    found = np.empty_like(at)
    for place in np.ndindex(at.shape):
        ends = []
        for sign in (1, -1):
            there = at.copy()
            there[place] += sign * step
            ends.append(function(there))
        found[place] = (ends[0] - ends[1]) / (2 * step)
    return found


def close(ours, theirs, rtol=1e-6):
    return np.allclose(ours, theirs, rtol=rtol, atol=rtol * np.abs(theirs).max())


# ---- distances


@given(seeds, dimensions)
def test_distances_in_the_ball_are_those_of_the_textbook(seed, dimension):
    one, other = in_ball(seed, 4, dimension), in_ball(seed + 1, 5, dimension)
    assert close(apart(Ball(), one, other), np.maximum(textbook(Ball(), one, other), np.arccosh(1 + LEAST_COSH)), 1e-5)


@given(seeds, dimensions)
def test_distances_in_flat_space_are_those_of_the_textbook(seed, dimension):
    one, other = anywhere(seed, 4, dimension), anywhere(seed + 1, 5, dimension)
    assert close(apart(Flat(), one, other), np.maximum(textbook(Flat(), one, other), LEAST_SQUARE**0.5))


@pytest.mark.parametrize(("space", "draw"), [(Ball(), in_ball), (Flat(), anywhere)], ids=["ball", "flat"])
@given(seed=seeds, dimension=dimensions)
def test_distances_are_symmetric_and_no_detour_is_shorter(space, draw, seed, dimension):
    points = draw(seed, 6, dimension)
    found = apart(space, points, points)
    assert np.allclose(found, found.T, atol=1e-9)
    detours = found[:, :, None] + found[None]
    assert (found[:, None] <= detours + 1e-2).all(), "a point is a little away from itself, where slopes end"
    assert (found[:, None] <= detours + 1e-9)[~np.eye(6, dtype=bool)[:, :, None] & ~np.eye(6, dtype=bool)[None]].all()


@given(seeds, dimensions)
def test_turning_and_shifting_the_ball_changes_no_distance(seed, dimension):
    points = in_ball(seed, 5, dimension, within=0.8)
    before, apart_at_all = apart(Ball(), points, points), ~np.eye(5, dtype=bool)
    by = in_ball(seed + 2, 1, dimension, within=0.8)[0]
    for after in (rotated(seed, points), translated(by, points)):
        assert np.linalg.norm(after, axis=1).max() < 1
        assert np.allclose(apart(Ball(), after, after)[apart_at_all], before[apart_at_all], rtol=1e-6)


@given(seeds, dimensions)
def test_turning_and_shifting_flat_space_changes_no_distance(seed, dimension):
    points = anywhere(seed, 5, dimension)
    before = apart(Flat(), points, points)
    for after in (rotated(seed, points), points + 7.5):
        assert np.allclose(apart(Flat(), after, after), before, atol=1e-3)


@pytest.mark.parametrize("space", [Ball(), Flat()], ids=["ball", "flat"])
def test_flip_is_its_own_transpose_and_undoes_itself(space):
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, 5, 4))
    if isinstance(space, Flat):  # its partners are of lifted rows, which have a 1 at their end
        one, other = space.lift(one), space.lift(other)
        assert np.allclose((space.flip(one) * other).sum(axis=1), (one * space.flip(other)).sum(axis=1))
        return
    assert np.allclose((space.flip(one) * other).sum(axis=1), (one * space.flip(other)).sum(axis=1))
    assert np.array_equal(space.flip(space.flip(one)), one)


@pytest.mark.parametrize(("space", "least"), [(Ball(), 1 + LEAST_COSH), (Flat(), LEAST_SQUARE)], ids=["ball", "flat"])
def test_slopes_are_the_derivatives_of_distances_and_end_where_points_meet(space, least):
    z = least + np.geomspace(1e-3, 1e5, 40)
    slopes = space.distances(z.copy())
    steps = 1e-6 * z
    above, below = z + steps, z - steps
    space.distances(above)
    space.distances(below)
    assert np.allclose(slopes, (above - below) / (2 * steps), rtol=1e-4)
    meeting = np.array([least, least - 0.5, -1e9, 0.0])
    slopes = space.distances(meeting)
    assert (slopes == slopes[0]).all()
    assert np.isfinite(slopes).all()
    assert (meeting > 0).all()


def test_float32_serves_the_distances_that_training_has():
    one, other = (rows.astype(np.float32) for rows in (in_ball(1, 200, 20, 0.99), in_ball(2, 200, 20, 0.99)))
    found, exact = apart(Ball(), one, other), textbook(Ball(), one.astype(float), other.astype(float))
    assert found.dtype == np.float32
    assert np.allclose(found, exact, rtol=1e-4, atol=0.01)


# ---- places of documents


@given(seeds, dimensions)
def test_the_exponential_map_keeps_directions_and_distances_from_the_origin(seed, dimension):
    r = anywhere(seed, 8, dimension) / 3
    sizes = np.linalg.norm(r, axis=1)
    placed = Ball().place(r)
    assert np.allclose(placed, np.tanh(np.minimum(sizes, RADIUS))[:, None] * r / sizes[:, None])
    from_origin = textbook(Ball(), np.zeros((1, dimension)), placed)[0]
    assert np.allclose(from_origin, 2 * np.minimum(sizes, RADIUS), rtol=1e-9)


@pytest.mark.parametrize("exponential", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_document_is_placed_outside_of_the_ball(exponential, dtype):
    rng = np.random.default_rng(3)
    for size in (0.0, 1e-30, 1e-12, 1e-3, 0.99999, 1.0, 1.00001, 3.0, 50.0, 1e9, 1e18):
        for dimension in (1, 2, 50):
            r = rng.standard_normal((20, dimension))
            r = (r / np.linalg.norm(r, axis=1, keepdims=True) * size).astype(dtype)
            placed = Ball(exponential).place(r)
            assert placed.dtype == dtype
            assert (np.linalg.norm(placed.astype(float), axis=1) < 1 - CLIPPED / 2).all()
            assert np.isfinite(Ball(exponential).lift_vectors(r)).all()
            assert size < 3 or (np.linalg.norm(placed, axis=1) > 0.99).all(), "and far documents are placed far out"


@pytest.mark.parametrize("space", [Ball(), Ball(False), Flat()], ids=["exponential", "clip", "flat"])
def test_vectors_are_lifted_to_where_their_points_are(space):
    r = np.concatenate([anywhere(4, 30, 3), np.zeros((1, 3)), 1e-12 * np.ones((1, 3))])
    assert np.allclose(space.lift_vectors(r), space.lift(space.place(r)), rtol=1e-6)


def test_what_is_outside_is_clipped_to_just_inside_and_the_rest_is_left():
    points = np.array([[0.3, 0.4], [0.0, 0.0], [3.0, 4.0], [-1.0, 0.0], [0.0, 1 - CLIPPED / 2]])
    expected = [[0.3, 0.4], [0, 0], [0.6 * (1 - CLIPPED), 0.8 * (1 - CLIPPED)], [CLIPPED - 1, 0], [0, 1 - CLIPPED]]
    assert np.allclose(clipped(points), expected, atol=1e-12)
    assert np.array_equal(clipped(points)[:2], points[:2])


# ---- steps


@given(seeds, dimensions, st.floats(1e-4, LONGEST_STEP))
def test_a_step_has_its_hyperbolic_length_and_leads_back(seed, dimension, length):
    points = in_ball(seed, 6, dimension, within=0.9)
    steps = anywhere(seed + 1, 6, dimension)
    steps *= length / np.linalg.norm(steps, axis=1, keepdims=True)
    there = moved(points, steps)
    assert np.allclose(beside(Ball(), points, there), length, rtol=1e-5)
    behind = moved(points, -steps)
    assert np.allclose(beside(Ball(), behind, there), 2 * length, rtol=1e-5), "there, here and behind are on a line"
    home = np.concatenate([translated(-x, y[None]) for x, y in zip(there, points, strict=True)])
    home *= length / np.linalg.norm(home, axis=1, keepdims=True)
    assert np.allclose(moved(there, home), points, atol=1e-7)


@given(seeds, dimensions)
def test_a_step_begins_in_its_direction(seed, dimension):
    points, steps = in_ball(seed, 6, dimension, within=0.9), anywhere(seed + 1, 6, dimension)
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    little = (moved(points, 1e-6 * steps) - points) / 1e-6
    assert np.allclose(little, frame(points) * steps, atol=1e-5)


@given(seeds, dimensions)
def test_a_step_is_what_the_shift_of_the_ball_makes_of_one_at_the_origin(seed, dimension):
    point, step = in_ball(seed, 1, dimension, 0.9), in_ball(seed + 1, 1, dimension)
    at_origin = moved(np.zeros((1, dimension)), step)
    assert np.allclose(at_origin, np.tanh(np.linalg.norm(step) / 2) * step / np.linalg.norm(step))
    assert np.allclose(moved(point, step), translated(point[0], at_origin))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_step_of_nothing_stays_and_a_long_one_is_cut(dtype):
    points = in_ball(5, 20, 3, within=0.9).astype(dtype)
    assert np.allclose(moved(points, np.zeros_like(points)), points, rtol=1e-6)
    steps = anywhere(6, 20, 3).astype(dtype)
    steps *= 1e6 / np.linalg.norm(steps, axis=1, keepdims=True)
    assert np.allclose(
        beside(Ball(), points.astype(float), moved(points, steps).astype(float)), LONGEST_STEP, rtol=1e-3
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_step_leads_beyond_the_radius(dtype):
    edge = in_ball(7, 50, 3)
    edge = (edge / np.linalg.norm(edge, axis=1, keepdims=True) * FARTHEST).astype(dtype)
    for steps in (edge, 100 * edge, anywhere(8, 50, 3).astype(dtype)):
        after = moved(edge, steps)
        assert after.dtype == dtype
        assert (np.linalg.norm(after.astype(float), axis=1) <= FARTHEST + 1e-6).all()
    inward = moved(edge, -edge)
    assert (np.linalg.norm(inward.astype(float), axis=1) < FARTHEST - 1e-3).all(), "it is no trap"


# ---- gradients


def linear(weights, rows):
    """Something with a gradient by lifted rows that is known: the weights."""
    return float((weights * rows).sum())


@pytest.mark.parametrize(("space", "draw"), [(Ball(), in_ball), (Flat(), anywhere)], ids=["ball", "flat"])
@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_the_gradient_by_points_is_that_of_differences(space, draw, dimension):
    points = draw(1, 5, dimension)
    points[0] = 0
    weights = np.random.default_rng(2).standard_normal(space.lift(points).shape)
    expected = slopes_of(lambda there: linear(weights, space.lift(there)), points)
    assert close(space.back(points, weights), expected)


@pytest.mark.parametrize("space", [Ball(), Flat()], ids=["ball", "flat"])
@pytest.mark.parametrize("dimension", [1, 2, 7])
@pytest.mark.parametrize("size", [1e-4, 0.1, 1.0, RADIUS - 0.01, RADIUS + 0.01, 20.0])
def test_the_gradient_by_vectors_is_that_of_differences(space, dimension, size):
    r = anywhere(3, 5, dimension)
    r *= size / np.linalg.norm(r, axis=1, keepdims=True)
    weights = np.random.default_rng(4).standard_normal(space.lift_vectors(r).shape)
    expected = slopes_of(lambda there: linear(weights, space.lift_vectors(there)), r, step=1e-5 * size)
    found = space.vectors_back(r, weights)
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5 * max(np.abs(expected).max(), 1))
    if dimension == 1 and size > RADIUS and isinstance(space, Ball):
        assert np.allclose(found, 0, atol=1e-9), "only the direction counts, and there is no other"


def test_the_gradient_at_a_vector_of_nothing_is_that_of_a_straight_line():
    weights = np.random.default_rng(5).standard_normal((1, 4))
    assert np.allclose(Ball().vectors_back(np.zeros((1, 3)), weights), 2 * weights[:, 1:])


def test_with_the_paper_s_projection_the_gradient_is_scaled_by_the_inverse_of_the_metric():
    r = np.concatenate([in_ball(6, 6, 3), 4 * in_ball(7, 6, 3) + 1])
    space = Ball(exponential=False)
    points = space.place(r)
    weights = np.random.default_rng(8).standard_normal((12, 4))
    expected = np.empty_like(points)
    for i in range(12):
        step = 1e-4 * (1 - points[i] @ points[i])
        expected[i] = slopes_of(lambda there, i=i: linear(weights[[i]], space.lift(there)), points[[i]], step)[0]
        expected[i] *= ((1 - points[i] @ points[i]) / 2) ** 2
    assert np.linalg.norm(r, axis=1).max() > 1
    assert close(space.vectors_back(r, weights), expected, 1e-5)


@pytest.mark.parametrize("space", [Ball(), Flat()], ids=["ball", "flat"])
def test_the_gradient_of_a_distance_is_that_of_torch(space):
    torch = pytest.importorskip("torch")
    vectors, points = anywhere(9, 6, 4) / 3, in_ball(10, 5, 4)
    weights = np.random.default_rng(11).standard_normal((6, 5))
    lifted, partners = space.lift_vectors(vectors), space.flip(space.lift(points))
    z = lifted @ partners.T
    errors = weights * space.distances(z)
    by_vectors = space.vectors_back(vectors, errors @ partners)
    by_points = space.back(points, space.flip(errors.T @ lifted))

    r, x = (torch.tensor(rows, requires_grad=True) for rows in (vectors, points))
    if isinstance(space, Flat):
        d = torch.cdist(r, x)
    else:
        size = r.norm(dim=1, keepdim=True)
        y = torch.tanh(size) * r / size
        squares = ((y[:, None] - x[None]) ** 2).sum(2)
        gaps = (1 - (y**2).sum(1))[:, None] * (1 - (x**2).sum(1))[None]
        d = torch.arccosh(1 + 2 * squares / gaps)
    (torch.tensor(weights) * d).sum().backward()
    assert np.linalg.norm(vectors, axis=1).max() < RADIUS
    assert close(z, d.detach().numpy())
    assert close(by_vectors, r.grad.numpy())
    assert close(by_points, x.grad.numpy())


# ---- any number of steps


def optimizers(n, dimension):
    return [RowSgd(), RowAdagrad(n), RowAdam(n, dimension)]


@pytest.mark.parametrize("which", [0, 1, 2], ids=["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("dimension", [1, 3])
def test_points_stay_in_the_ball_whatever_moves_them(which, dimension):
    rng = np.random.default_rng(12)
    n = 24
    ids = np.arange(n, dtype=np.int32)
    optimizer, space = optimizers(n, dimension)[which], Ball()
    points = in_ball(13, n, dimension, within=1e-3).astype(np.float32)
    points[:4] = 0
    points[4:8] = clipped(np.full((4, dimension), 9, np.float32))
    for step in range(3000):
        size = 10.0 ** rng.integers(-12, 13)
        gradient = (size * rng.standard_normal((n, dimension))).astype(np.float32)
        gradient[rng.random(n) < 0.2] = 0
        if step % 3 == 0:
            gradient = -points * np.float32(size)  # outwards
        points = space.move(points, gradient, optimizer, ids, rate=100.0)
        assert points.dtype == np.float32
        assert np.isfinite(points).all(), step
        assert (np.einsum("ij,ij->i", points, points, dtype=np.float64) < 1).all(), step


@pytest.mark.parametrize("which", [0, 1, 2], ids=["sgd", "adagrad", "adam"])
@pytest.mark.parametrize("exponential", [True, False])
def test_learning_on_distances_stays_finite_where_documents_and_labels_meet(which, exponential):
    rng = np.random.default_rng(14)
    n, dimension, space = 12, 2, Ball(exponential)
    ids = np.arange(n, dtype=np.int32)
    of_labels, of_documents = optimizers(n, dimension)[which], optimizers(n, dimension)[which]
    points = in_ball(15, n, dimension).astype(np.float32)
    r = np.arctanh(np.linalg.norm(points, axis=1, keepdims=True)) * points / np.linalg.norm(points, axis=1)[:, None]
    r = r.astype(np.float32) if exponential else points.copy()  # every document on its label
    for step in range(1500):
        lifted, partners = space.lift_vectors(r), space.flip(space.lift(points))
        z = lifted @ partners.T
        errors = space.distances(z) * (100 * rng.standard_normal((n, n))).astype(np.float32)
        by_r = space.vectors_back(r, errors @ partners)
        by_points = space.back(points, space.flip(errors.T @ lifted))
        assert np.isfinite(by_r).all(), step
        assert np.isfinite(by_points).all(), step
        points = space.move(points, by_points, of_labels, ids, 10.0)
        r = r + of_documents.steps(ids, by_r, 10.0)
        assert np.isfinite(z).all()
        assert np.isfinite(r).all(), step
        assert (np.einsum("ij,ij->i", points, points, dtype=np.float64) < 1).all(), step


def test_sgd_moves_a_label_by_the_paper_s_rule():
    points, gradient = in_ball(16, 5, 3, 0.7), 0.1 * anywhere(17, 5, 3)
    expected = points - 0.2 * ((1 - (points**2).sum(axis=1, keepdims=True)) / 2) ** 2 * gradient
    found = Ball().move(points, gradient, RowSgd(), np.arange(5, dtype=np.int32), 0.2)
    assert np.allclose(found, expected)
    assert np.allclose(Flat().move(points, gradient, RowSgd(), np.arange(5), 0.2), points - 0.2 * gradient)


def test_adam_moves_a_label_by_its_own_step_scaled_by_the_inverse_of_the_metric():
    points, gradient, ids = in_ball(18, 5, 3, 0.7), anywhere(19, 5, 3), np.arange(5, dtype=np.int32)
    expected = points + ((1 - (points**2).sum(axis=1, keepdims=True)) / 2) ** 2 * RowAdam(5, 3).steps(
        ids, gradient, 0.1
    )
    assert np.allclose(Ball().move(points, gradient, RowAdam(5, 3), ids, 0.1), expected)


def test_adagrad_moves_a_label_along_a_geodesic_downhill():
    points, gradient, ids = in_ball(20, 5, 3, 0.9), anywhere(21, 5, 3), np.arange(5, dtype=np.int32)
    found = Ball().move(points, gradient, RowAdagrad(5), ids, 0.1)
    assert np.allclose(beside(Ball(), points, found), 0.1 * np.sqrt(3), rtol=1e-4), "the first step is the rate"
    assert ((found - points) * gradient).sum(axis=1).max() < 0
