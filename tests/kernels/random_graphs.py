"""Random similarities for the tests of linkage kernels."""

import numpy as np


def random_similarities(n, density, levels, seed):
    """A symmetric table (n, n) of integers 1 to ``levels``, most of them 0 where the density is low."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.integers(1, levels + 1, (n, n)) * (rng.random((n, n)) < density), 1)
    return (upper + upper.T).astype(np.float32)
