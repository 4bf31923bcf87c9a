import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.kmeans import balanced_2means, balanced_2means_dense, kmeans


def rows(rng, n, d=60, density=0.15):
    return normalize_rows(sp.random(n, d, density, "csr", np.float32, rng=rng))


def split(Z, members, first_half, seed, max_iter=50, sample=10**6):
    members = np.array(members, np.int32)
    sums = np.zeros((Z.shape[1], 2), np.float32)
    balanced_2means(csr_arrays(Z), members, first_half, max_iter, 0.0, seed, sums, sample)
    assert not sums.any(), "the scratch is left clean"
    return members[:first_half], members[first_half:]


def is_fixed_point(Z, one, other):
    """The NumPy twin of the last iteration: ranking by the centers of a result reproduces it."""
    dense = Z.toarray().astype(np.float64)
    centers = [dense[part].sum(axis=0) for part in (one, other)]
    first, second = (dense @ (center / np.linalg.norm(center)) for center in centers)
    gain = first - second
    return gain[one].min() >= gain[other].max() - 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_the_result_is_a_fixed_point_of_balanced_2_means(seed):
    Z = rows(np.random.default_rng(seed), 41)
    one, other = split(Z, range(41), 21, seed)
    assert sorted([*one, *other]) == list(range(41))
    assert len(one) == 21
    assert is_fixed_point(Z, one, other)


def test_centers_of_samples_are_the_first_ones_of_all_rows():
    rng = np.random.default_rng(0)
    planted = rng.random((110, 20)) + np.repeat(5 * np.eye(20)[:2], 55, axis=0)
    Z = normalize_rows(sp.csr_matrix(planted.astype(np.float32)))
    members = rng.permutation(110)
    for sample in (110, 40, 20, 10):
        parts = {tuple(sorted(part.tolist())) for part in split(Z, members, 55, 3, sample=sample)}
        assert parts == {tuple(range(55)), tuple(range(55, 110))}


def test_planted_clusters_are_found_whatever_the_seed():
    rng = np.random.default_rng(0)
    base = np.kron(np.eye(2), np.ones((20, 30))) * rng.random((40, 60))
    Z = normalize_rows(sp.csr_matrix(base.astype(np.float32)))
    shuffled = rng.permutation(40)
    for seed in range(10):
        one, _ = split(Z, shuffled, 20, seed)
        assert set(one) in ({*range(20)}, {*range(20, 40)})


@pytest.mark.parametrize("seed", range(5))
def test_dense_rows_are_split_like_sparse_ones(seed):
    Z = rows(np.random.default_rng(seed), 41)
    one, _ = split(Z, range(1, 41), 17, seed)
    members = np.arange(1, 41, dtype=np.int32)
    balanced_2means_dense(Z.toarray(), members, 17, 50, seed)
    assert members[:17].tolist() == one.tolist()
    assert sorted(members) == list(range(1, 41))


def test_dense_rows_that_are_equal_keep_their_order():
    members = np.arange(9, -1, -1, dtype=np.int32)
    for table in (np.zeros((10, 3), np.float32), np.ones((10, 3), np.float32) / np.float32(3**0.5)):
        balanced_2means_dense(table, members, 6, 50, 1)
        assert members.tolist() == list(range(9, -1, -1))


def test_two_rows_and_empty_rows_can_be_split():
    Z = sp.csr_matrix((4, 5), dtype=np.float32)
    one, other = split(Z, [0, 1, 2, 3], 2, 1)
    assert sorted([*one, *other]) == [0, 1, 2, 3]
    assert len(split(Z, [2, 3], 1, 1)[0]) == 1


@pytest.mark.parametrize("seed", range(3))
def test_kmeans_converges_to_nearest_centers(seed):
    Z = rows(np.random.default_rng(seed), 80)
    members = np.arange(10, 80, dtype=np.int32)
    sizes = kmeans(csr_arrays(Z), members, 6, 200, seed, Z.shape[1])
    assert sorted(members) == list(range(10, 80))
    assert sizes.sum() == 70
    dense = Z.toarray().astype(np.float64)
    parts = np.split(members, np.cumsum(sizes)[:-1])
    centers = np.stack([dense[part].sum(axis=0) for part in parts])
    products = dense @ (centers / np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1e-9)).T
    for c, part in enumerate(parts):
        assert (products[part, c] >= products[part].max(axis=1) - 1e-5).all()
