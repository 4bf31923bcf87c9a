"""What the base class does for every method: batches of bounded size, presets."""

from typing import ClassVar

import numpy as np
import pytest

from docs.update_tables import parameters_markdown
from labelspace.data.synthetic import planted
from labelspace.errors import ParameterError
from labelspace.estimator import param
from labelspace.estimator.parameter_constraints import integer, real
from labelspace.models import base, checks
from labelspace.models.baselines import Popular
from labelspace.models.label_tree import LabelTree
from labelspace.models.registry import methods


@pytest.fixture(scope="module")
def fitted():
    data = planted(n=200, d=100, l=30, seed=0)
    return LabelTree().fit(data.X, data.Y), data.X


@pytest.mark.parametrize(("k", "sizes"), [(4, [5] * 4), (1, [20]), (100, [1] * 20)])
def test_as_many_documents_at_once_as_k_allows(fitted, monkeypatch, k, sizes):
    model, X = fitted
    expected = model.predict_topk(X[:20], k)
    monkeypatch.setattr(base, "PREDICTED_LABELS", 20)
    seen, predict = [], LabelTree._predict

    def spied(self, X, k, allowed=None):
        seen.append((X.n, k))
        return predict(self, X, k, allowed)

    monkeypatch.setattr(LabelTree, "_predict", spied)
    top = model.predict_topk(X[:20], k)
    assert seen == [(size, min(k, 30)) for size in sizes]
    assert np.array_equal(top.labels, expected.labels)
    assert np.array_equal(top.scores, expected.scores)


def test_an_answer_that_does_not_fit_is_refused(fitted, monkeypatch):
    model, X = fitted
    with pytest.raises(
        ParameterError, match=r"at most 536870912, but is 1000000000 x 2; ask for a smaller k, or predict"
    ):
        model.predict_topk(X[:2], 10**9)
    monkeypatch.setattr(checks, "MAX_ANSWER", 10)
    assert model.predict_topk(X[:2], 5).labels.shape == (2, 5)


class Preset(Popular):
    name = "preset"
    power: float = param(1.0, real(above=0), "Power.")
    depth: int = param(2, integer(1), "Depth.")
    presets: ClassVar = {"paper": {"power": 3.0}}


def test_a_preset_sets_parameters_that_may_be_overridden():
    assert Preset.paper().get_params() == {"power": 3.0, "depth": 2}
    assert Preset.paper(power=5.0, depth=1).get_params() == {"power": 5.0, "depth": 1}
    assert Preset().power == 1.0
    with pytest.raises(ParameterError, match="preset has no preset 'authors'; its presets are: paper"):
        Preset.from_preset("authors")
    with pytest.raises(ParameterError, match="popular has no preset 'paper'; its presets are: none"):
        Popular.paper()
    assert "| parameter | default | `paper` | meaning |" in parameters_markdown(Preset)
    assert "| `power` | 1.0 | 3.0 | Power. |" in parameters_markdown(Preset)
    assert "| `depth` | 2 | | Depth. |" in parameters_markdown(Preset)


@pytest.mark.parametrize(("cls", "preset"), [(c, p) for c in methods().values() for p in c.presets])
def test_every_preset_names_parameters_with_values_that_are_allowed(cls, preset):
    cls.from_preset(preset).check_params()
    assert cls.presets[preset] or preset == "paper", "it sets something, unless our defaults are the paper's"
