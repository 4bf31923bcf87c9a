"""Planted documents for the tests of secseq and mlc2seq."""

import pytest

from labelspace.data.synthetic import planted


@pytest.fixture(scope="package")
def documents():
    """Train and test; no training document has label 7."""
    data = planted(n=460, d=300, l=20, texts=True, seed=2)
    Y = data.Y.tolil()
    Y[:400, 7] = 0
    data = type(data)(Y.tocsr(), data.labels, texts=data.texts, X=data.X)
    return data.rows(range(400)), data.rows(range(400, 460))


@pytest.fixture(scope="package")
def few():
    """Documents for tests that need no good model."""
    return planted(n=90, d=60, l=12, texts=True, seed=3)
