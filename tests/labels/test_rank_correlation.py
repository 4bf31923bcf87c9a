import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from labelspace.errors import DataError
from labelspace.labels.statistics import spearman


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-4, 4)), min_size=3, max_size=40))
def test_it_is_scipys_with_ties(pairs):
    a, b = np.array(pairs).T
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        assert np.isnan(spearman(a, b))
    else:
        assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)


def test_only_the_order_counts():
    a = np.random.default_rng(0).normal(size=200)
    assert spearman(a, np.exp(3 * a)) == 1.0
    assert spearman(a, -np.arctan(a)) == -1.0


def test_one_label_or_none_has_no_correlation():
    assert np.isnan(spearman([], []))
    assert np.isnan(spearman([1.0], [2.0]))


def test_unequal_lengths_are_an_error():
    with pytest.raises(DataError, match="there are 2 and 3; give as many"):
        spearman([1, 2], [1, 2, 3])
