import math

import numpy as np

from labelspace.propensity import inverse_propensities


def test_the_formula_by_hand():
    # C = (ln 100 - 1) 2^1; the label of 3 documents weighs 1 + C / 4.
    expected = 1 + 2 * (math.log(100) - 1) / 4
    assert np.isclose(inverse_propensities(np.array([3]), 100, A=1.0, B=1.0)[0], expected)


def test_no_weight_is_below_1():
    assert inverse_propensities(np.array([1, 0]), 2).tolist() == [1, 1]
