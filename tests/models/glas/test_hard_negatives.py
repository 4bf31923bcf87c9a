import numpy as np
import pytest

from labelspace.index import Approximate
from labelspace.models.glas import hard_negatives
from labelspace.models.glas.hard_negatives import mine_hard_negatives
from labelspace.training.negative_sampling import SampledLabels
from tests.models.glas.cases import after_one_epoch, quick, small_data


@pytest.fixture(scope="module")
def small():
    return small_data()


def test_hard_negatives_are_the_best_scored_labels_and_have_weight_1(small, monkeypatch):
    monkeypatch.setattr(hard_negatives, "SEARCHED_LISTS", 1000)  # every list
    net, data = after_one_epoch(quick(all_labels=False, n_negatives=2), small)
    nearest = mine_hard_negatives(net, data.X, data.labels, 4, 0, lambda *step: None)
    no_positives = np.zeros(0, np.int32), np.zeros(1, np.int32)
    scores = net.scores(net.encoder.embed(data.X), SampledLabels(np.arange(30, dtype=np.int32), *no_positives))
    best = np.argsort(-scores, axis=1)[:, :4]
    recall = np.mean([len(set(one) & set(other)) for one, other in zip(nearest, best, strict=True)]) / 4
    assert recall > 0.95, "but for the quantization of the index"
    rows = np.array([1, 9], np.int32)
    sampled = data.sample_labels(data.Y[rows], 2, nearest[rows], np.random.default_rng(0))
    assert np.isin(nearest[rows], sampled.ids[: sampled.n_fixed]).all()
    assert (sampled.weights[: sampled.n_fixed] == 1).all()
    assert len(set(sampled.ids)) == len(sampled.ids)
    assert np.array_equal(sampled.ids[sampled.columns], data.Y[rows].indices)


def test_hard_negatives_are_mined_from_the_second_epoch_on(small, monkeypatch):
    built = []

    def build(*args, **options):
        built.append(args[0].shape)
        return Approximate(*args, **options)

    monkeypatch.setattr(hard_negatives, "Approximate", build)
    quick(all_labels=False, epochs=3).fit(small.X, small.Y)
    assert built == [(30, 17)] * 2
    quick(all_labels=False, epochs=2, n_hard_negatives=0).fit(small.X, small.Y)
    quick(all_labels=True, epochs=2).fit(small.X, small.Y)
    assert len(built) == 2
