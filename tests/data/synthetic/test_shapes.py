import pytest

from labelspace.data.synthetic import SHAPES
from labelspace.data.synthetic.shaped_data import shape_of
from labelspace.errors import ParameterError

WITH_TEST = ("Wikipedia-500K", "Amazon-3M")  # documents per label as published count the test documents too


@pytest.mark.parametrize("name", SHAPES)
def test_published_means_agree_with_each_other(name):
    shape = SHAPES[name]
    documents = shape.train_documents + (shape.test_documents if name in WITH_TEST else 0)
    assert documents * shape.labels_per_document / shape.labels == pytest.approx(shape.documents_per_label, rel=0.002)


def test_a_fraction_keeps_the_means():
    whole, part = SHAPES["Amazon-670K"], SHAPES["Amazon-670K"].scaled(0.04)
    assert part.train_documents / part.labels == pytest.approx(whole.train_documents / whole.labels, rel=1e-3)
    assert part.labels_per_document == whole.labels_per_document
    assert part.features == round(whole.features / 5)
    assert whole.scaled(1.0) == whole


@pytest.mark.parametrize("fraction", [0.0, -1.0, 1.01, 1e-6, float("nan")])
def test_a_fraction_that_leaves_nothing_or_exceeds_all_is_an_error(fraction):
    with pytest.raises(ParameterError, match="fraction must be at least 0.0007 for this shape, and at most 1, but is"):
        SHAPES["Amazon-670K"].scaled(fraction)


def test_names_are_known_in_any_case():
    assert shape_of("amazon-670k") is SHAPES["Amazon-670K"]
    with pytest.raises(ParameterError, match="must be one of Wiki10-31K, .*, Amazon-3M, but is 'Amazon-1M'"):
        shape_of("Amazon-1M")
