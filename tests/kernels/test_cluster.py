import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.features.scaling import unit_rows
from labelspace.kernels.cluster import bisect


def rows(rng, n, d=60, density=0.15):
    return unit_rows(sp.random(n, d, density, "csr", np.float32, rng=rng))


def halves(Z, members, first_half, seed, rounds=50):
    members = np.array(members, np.int32)
    sums = np.zeros((2, Z.shape[1]), np.float32)
    bisect(Z.data, Z.indices, Z.indptr, members, first_half, rounds, seed, sums)
    assert not sums.any(), "the scratch is left clean"
    return members[:first_half], members[first_half:]


def settled(Z, one, other):
    """The NumPy twin of the last round: ranking by the centres of a result gives that result again."""
    dense = Z.toarray().astype(np.float64)
    centres = [dense[part].sum(axis=0) for part in (one, other)]
    first, second = (dense @ (centre / np.linalg.norm(centre)) for centre in centres)
    gain = first - second
    return gain[one].min() >= gain[other].max() - 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_the_result_is_a_fixed_point_of_balanced_2_means(seed):
    Z = rows(np.random.default_rng(seed), 41)
    one, other = halves(Z, range(41), 21, seed)
    assert sorted([*one, *other]) == list(range(41))
    assert len(one) == 21
    assert settled(Z, one, other)


def test_planted_clusters_are_found_whatever_the_seed():
    rng = np.random.default_rng(0)
    base = np.kron(np.eye(2), np.ones((20, 30))) * rng.random((40, 60))
    Z = unit_rows(sp.csr_matrix(base.astype(np.float32)))
    mixed = rng.permutation(40)
    for seed in range(10):
        one, _ = halves(Z, mixed, 20, seed)
        assert set(one) in ({*range(20)}, {*range(20, 40)})


def test_two_rows_and_empty_rows_are_no_trouble():
    Z = sp.csr_matrix((4, 5), dtype=np.float32)
    one, other = halves(Z, [0, 1, 2, 3], 2, 1)
    assert sorted([*one, *other]) == [0, 1, 2, 3]
    assert len(halves(Z, [2, 3], 1, 1)[0]) == 1
