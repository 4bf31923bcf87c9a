"""Recalibration when a blend goes on learning: which of the new documents it follows."""

import numpy as np

from labelspace import Tagger
from labelspace.models.blend import learning

TEXTS = [f"{a} {b}" for a in ("bread", "fish", "rice") for b in ("hot cold old new raw red big fat dry wet").split()]
LABELS = [[text.split()[0]] for text in TEXTS]


def learned(texts, labels):
    return Tagger(members="neighbors,label_tree").fit(TEXTS * 2, LABELS * 2).learn(texts, labels).model


def test_of_many_documents_a_sample_is_followed_that_is_spread_over_them(monkeypatch):
    """Every document comes twice in a row: half of them are each of them once."""
    new = [f"{text} thing" for text in TEXTS]
    line = learned(new, LABELS[::-1]).recalibration_.line
    monkeypatch.setattr(learning, "MAX_JUDGED", len(new))
    twice = learned([text for text in new for _ in range(2)], [labels for labels in LABELS[::-1] for _ in range(2)])
    np.testing.assert_array_equal(twice.recalibration_.line, line)
    assert line[1] < -0.005  # it has moved
