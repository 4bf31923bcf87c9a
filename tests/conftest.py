"""Data every test may ask for: planted, so the right answer is known."""

import pytest
from hypothesis import settings

from labelspace.data.synthetic import planted
from labelspace.types import Dataset

# No deadline: the first call of a kernel compiles it, and the machine may be busy.
settings.register_profile("labelspace", deadline=None, derandomize=True)
settings.load_profile("labelspace")


@pytest.fixture(scope="session")
def data() -> tuple[Dataset, Dataset]:
    """Train and test documents with features, texts, names and a hierarchy."""
    whole = planted(n=900, d=600, l=40, texts=True, seed=5)
    return whole.rows(range(700)), whole.rows(range(700, 900))
