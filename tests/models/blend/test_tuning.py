import numpy as np
import pytest

from labelspace.data.synthetic import planted
from labelspace.features.views import GIVEN, Views
from labelspace.models.blend import Blend
from labelspace.models.blend import members as blend_members
from labelspace.models.blend.members import Member, parse_members
from labelspace.training.model_selection import Choice
from labelspace.types import TopK

data = planted(n=400, d=200, l=20, seed=3)
VIEWS = Views({GIVEN: data.X})


def test_linear_members_get_the_c_that_ranks_held_out_documents_best(monkeypatch):
    asked = []

    def chooses(tables, Y, Cs, rank, random_state, progress, fewest_labels):
        asked.append((list(tables), Cs))
        top = rank(data.X[:300], data.Y[:300], data.X[300:], Cs[0], 3)
        assert isinstance(top, TopK)
        assert top.labels.shape == (100, 3)
        return Choice("words", 2.0)

    monkeypatch.setattr(blend_members, "choose", chooses)
    members = parse_members("neighbors,pdsparse")
    assert blend_members.tuned_params(members, VIEWS, data.Y, 0) == {Member("pdsparse", "words"): {"C": 2.0}}
    assert asked == [(["words"], (0.5, 1.0, 2.0))]
    model = Blend(members="neighbors,pdsparse", n_folds=2, boosting_rounds=3).fit(data.X, data.Y)
    assert model.members_[1].C == 2.0
    assert model.report() == {"C of pdsparse": 2.0}


def test_without_documents_to_choose_by_there_is_no_choice():
    assert blend_members.tuned_params(parse_members("pdsparse"), Views({GIVEN: data.X[:30]}), data.Y[:30], 0) == {}


@pytest.mark.slow
def test_the_choice_is_the_same_again():
    first, second = (blend_members.tuned_params(parse_members("pdsparse"), VIEWS, data.Y, 1) for _ in range(2))
    assert first == second
    assert np.isin(next(iter(first.values()))["C"], blend_members.CANDIDATES["pdsparse"])
