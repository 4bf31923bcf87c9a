import pytest

from tests.models.text2text.products import products_table, small_model
from tests.models.text2text.small_targets import small_targets


@pytest.fixture(scope="session")
def products():
    return products_table()


@pytest.fixture(scope="session")
def fitted(products):
    """A model that has learned the table; tests only predict with it."""
    texts, Y, labels = products
    return small_model(epochs=20).fit(texts, Y, labels=labels)


@pytest.fixture(scope="session")
def targets():
    return small_targets()
