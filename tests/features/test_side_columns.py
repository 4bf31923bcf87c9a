"""Numbers, categories and vectors as columns of X."""

import copy
import math
import pickle

import numpy as np
import pytest

from labelspace.errors import DataError
from labelspace.estimator.state_constraints import StateError
from labelspace.features.side_columns import SideFeatures
from labelspace.features.views import TEXT, WORDS, View, ViewTransformer
from labelspace.types import SideColumns, TextWithValues

NAN = math.nan


def fitted(columns: SideColumns, **values: list[object]) -> SideFeatures:
    features = SideFeatures(columns)
    n = len(next(iter(values.values())))
    features.fit_transform([TextWithValues("", {name: given[at] for name, given in values.items()}) for at in range(n)])
    return features


def row(features: SideFeatures, **values: object) -> np.ndarray:
    return features.transform([TextWithValues("", values)]).toarray()[0]


def test_a_number_lies_between_two_knots_and_a_missing_one_has_a_column() -> None:
    prices = fitted(SideColumns(("price",)), price=[*np.arange(1.0, 9.0), NAN])  # eight numbers, eight knots
    assert prices.knots_.tolist() == list(range(1, 9))
    near = row(prices, price=2.25)
    assert np.flatnonzero(near).tolist() == [1, 2]
    assert near[1] / near[2] == pytest.approx(3)  # by the distance
    assert np.linalg.norm(near) == pytest.approx(1)
    # Out of range counts as the nearest knot.
    for price, at in ((-5.0, 0), (1.0, 0), (8.0, 7), (1e30, 7), (NAN, 8)):
        assert np.flatnonzero(row(prices, price=price)).tolist() == [at]


def test_near_numbers_have_more_in_common_than_far_ones() -> None:
    prices = fitted(SideColumns(("price",)), price=list(np.random.default_rng(0).lognormal(size=500)))
    X = np.array([row(prices, price=price) for price in np.linspace(0.2, 5, 60)])
    similar = X @ X.T
    assert (np.diff(similar[0]) <= 1e-6).all()
    assert similar[0, -1] == 0


def test_rare_and_unknown_categories_have_no_column() -> None:
    brands = fitted(SideColumns((), ("brand",)), brand=[["a"]] * 30 + [["b", "c"]] * 30 + [["once"]])
    assert brands.categories_ == {"brand": ["a", "b", "c"]}
    assert row(brands, brand=["b", "c"]).tolist() == pytest.approx([0, 0.5**0.5, 0.5**0.5])
    assert not row(brands, brand=["once", "never"]).any()
    assert [value.name for value in brands.values_of(TextWithValues("", {"brand": ["a", "never"]}))] == [
        "brand = a",
        "brand = never, which is not known",
    ]


def test_each_kind_has_its_share_of_a_row() -> None:
    features = fitted(SideColumns(("p",), ("b",), "v"), p=[1.0, 2.0], b=[["x"], ["y"]], v=[np.ones(3), np.ones(3)])
    X = row(features, p=1.0, b=["x"], v=np.array([9.0, 0.0, 0.0], np.float32)) ** 2
    assert X[:3].sum() == pytest.approx(1 / 9)
    assert X[3:5].sum() == pytest.approx(4 / 9)
    assert X[5:].sum() == pytest.approx(4 / 9)
    assert features.share == pytest.approx(9 / 17)
    assert not row(features, p=NAN, b=[], v=None)[3:].any()


def test_wrong_training_values_are_refused() -> None:
    with pytest.raises(DataError, match="'p' has none in 2 documents"):
        fitted(SideColumns(("p",)), p=[NAN, NAN])
    with pytest.raises(DataError, match="'v' has none in 2 documents"):
        fitted(SideColumns(vectors="v"), v=[None, None])
    with pytest.raises(DataError, match="must have 2 numbers each"):
        fitted(SideColumns(vectors="v"), v=[np.ones(2), np.ones(3)])


def test_values_come_first_in_every_matrix_and_need_no_words() -> None:
    texts = [TextWithValues(f"red {word}", {"price": price}) for word, price in (("tea", 1.0), ("rye", 3.0))]
    made = ViewTransformer([View("words", "tfidf", {"min_df": 1, "ngrams": 1}), TEXT], SideColumns(("price",)))
    views = made.fit_transform(texts)
    alone = ViewTransformer([WORDS]).fit(list(texts))
    assert made.widths == views.widths == {"words": 3 + 3, "text": 0}
    assert alone.widths == {"words": 1}  # the values are no part of a text
    words = views["words"].toarray()
    assert (words[:, :3] ** 2).sum(axis=1) == pytest.approx(1 / 9)
    assert (words**2).sum(axis=1) == pytest.approx(1)
    assert made.transform([TextWithValues("", {"price": 1.0})])["words"].toarray()[0, 0] == pytest.approx(1)
    assert not made.transform_labels(["unheard"])["words"].nnz
    with pytest.raises(DataError, match="reads price beside each text"):
        made.transform(["red tea"])
    with pytest.raises(DataError, match="reads price beside each text"):
        made.transform([TextWithValues("red tea", {"cost": 1.0})])


def test_a_text_keeps_its_values_when_it_is_copied() -> None:
    text = TextWithValues("Rye", {"price": 1.0})
    for copied in (copy.copy(text), copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert (copied, copied.values) == ("Rye", {"price": 1.0})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("numeric_", ["b"]),  # the name of another column
        ("knots_", np.array([2.0, 1.0])),
        ("knots_", np.array([1.0, 1e300])),
        ("knot_starts_", np.array([0, 0])),
        ("categories_", {"b": ["x", "x"]}),
        ("vectors_", None),
        ("n_dims_", 0),
    ],
)
def test_a_damaged_state_is_refused(name: str, value: object) -> None:
    features = fitted(SideColumns(("p",), ("b",), "v"), p=[1.0, 2.0], b=[["x"], ["y"]], v=[np.ones(3), np.ones(3)])
    features.check_state()
    features.forget_derived()
    setattr(features, name, value)
    with pytest.raises(StateError):
        features.check_state()
