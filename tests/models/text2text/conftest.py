import pytest

from tests.models.text2text.products import products_table, small_model


@pytest.fixture(scope="session")
def products():
    return products_table()


@pytest.fixture(scope="session")
def fitted(products):
    """A model that has learned the table; tests only predict with it."""
    texts, Y, labels = products
    return small_model(epochs=20).fit(texts, Y, labels=labels)
