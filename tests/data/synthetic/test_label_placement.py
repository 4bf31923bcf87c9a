import numpy as np
import pytest

from labelspace.data.synthetic import SHAPES
from labelspace.data.synthetic.shaped_data import Placement, label_counts

SMALL = SHAPES["Amazon-670K"].scaled(0.02)


@pytest.mark.parametrize("name", SHAPES)
def test_counts_have_the_mean_of_the_shape_and_a_long_tail(name):
    shape = SHAPES[name].scaled(0.05)
    counts = label_counts(shape)
    assert len(counts) == shape.labels
    assert counts.min() == 1
    assert counts.mean() == pytest.approx(shape.train_documents * shape.labels_per_document / shape.labels, rel=0.01)
    assert np.median(counts) < counts.mean() / 2


@pytest.mark.parametrize("fraction", [0.01, 0.1, 1.0])
def test_nine_labels_in_ten_of_amazon_have_one_to_eight_documents(fraction):
    counts = label_counts(SHAPES["Amazon-670K"].scaled(fraction))
    assert (counts <= 8).mean() == pytest.approx(0.92, abs=0.03)


def test_training_documents_have_the_counts_but_for_labels_drawn_twice():
    rng = np.random.default_rng(1)
    placement = Placement.draw(SMALL, rng)
    Y, _ = placement.documents(SMALL.train_documents, SMALL.train_documents, rng)
    found = Y.sum(axis=0).A1
    assert (found <= placement.counts).all()
    assert (found >= 1).all()
    assert found.sum() > 0.97 * placement.counts.sum()


def test_test_documents_have_the_labels_of_training_documents_at_the_same_place():
    rng = np.random.default_rng(2)
    placement = Placement.draw(SMALL, rng)
    train, at = placement.documents(SMALL.train_documents, SMALL.train_documents, rng)
    test, positions = placement.documents(SMALL.test_documents, SMALL.train_documents, rng)
    order = np.argsort(at)
    nearest = order[np.clip(np.searchsorted(at[order], positions), 0, len(at) - 1)]
    shared = test.multiply(train[nearest]).sum() / len(positions)
    by_chance = test.multiply(train[rng.permutation(len(at))[: len(positions)]]).sum() / len(positions)
    assert shared > 0.5
    assert by_chance < 0.05
