import pytest

from labelspace.data.synthetic import planted


@pytest.fixture(scope="session")
def documents():
    """Documents with texts, features and labels."""
    return planted(n=300, d=300, l=12, texts=True, seed=3)


@pytest.fixture(scope="session")
def names(documents):
    """The names of each document's labels."""
    return [[documents.labels.names[label] for label in row.indices] for row in documents.Y]
