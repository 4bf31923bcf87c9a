import pytest

from labelspace.data.synthetic import planted
from tests.models.poincare.reference import quick


@pytest.fixture(scope="session")
def small():
    """Documents that are learned in a moment."""
    return planted(n=260, d=150, l=30, seed=2)


@pytest.fixture(scope="session")
def ensemble(small):
    return quick(n_estimators=3).fit(small.X, small.Y)
