import math

import numpy as np

from labelspace.types.propensity import propensity_weights


def test_the_formula_by_hand():
    # C = (ln 100 - 1) 2^1; the label of 3 documents weighs 1 + C / 4.
    expected = 1 + 2 * (math.log(100) - 1) / 4
    assert np.isclose(propensity_weights(np.array([3]), 100, A=1.0, B=1.0)[0], expected)


def test_no_weight_is_below_1():
    assert propensity_weights(np.array([1, 0]), 2).tolist() == [1, 1]
