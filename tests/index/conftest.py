import numpy as np
import pytest


@pytest.fixture(scope="session")
def clustered():
    """Vectors of several lengths around common centers, their ids, and queries near some of them."""
    rng = np.random.default_rng(3)
    centers = rng.standard_normal((60, 16))
    vectors = centers[rng.integers(0, 60, 3000)] + 0.4 * rng.standard_normal((3000, 16))
    vectors *= rng.lognormal(0, 0.1, (3000, 1))
    queries = vectors[rng.permutation(3000)[:100]] + 0.2 * rng.standard_normal((100, 16))
    ids = rng.permutation(9000)[:3000].astype(np.int32)
    return vectors.astype(np.float32), ids, queries.astype(np.float32)
