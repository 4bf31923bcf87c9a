"""A small layout that several tests share."""

import numpy as np
import pytest

from labelspace.models.treespace.layout import LevelLayout
from labelspace.models.treespace.tree import breadth_first_nodes

PARENTS = [-1, -1, 0, 0, 1, 2, 2, -1, 4]  # three levels, and a leaf at the top


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def layout():
    return LevelLayout(breadth_first_nodes(np.array(PARENTS), np.arange(9)), np.array([2, 4, 5], np.int32))
