import math

import pytest

from labelspace.data.source import open_source, write_dataset
from labelspace.errors import ParameterError
from labelspace.experiment import Limits, Recipe, megabytes, train
from labelspace.experiment.cost_model import Cost, CostModel
from labelspace.experiment.plan import Planner
from labelspace.experiment.timing import parse_duration
from labelspace.models.blend import Blend
from labelspace.models.blend.members import Member
from labelspace.models.fit_context import Budget
from labelspace.types import Dataset

SECONDS = {"label_tree": 2.0, "pdsparse": 8.0, "neighbors": 1.0, "network": 20.0, "glas": 30.0, "lexical": 0.5}


@pytest.fixture
def priced(monkeypatch):
    """Members of known cost: as many megabytes as CPU seconds, and a tenth as many milliseconds."""

    def member(self, member):
        seconds = SECONDS[member.method] * (1 if member.view in ("words", "text") else 2)
        return Cost(seconds, 0.0, seconds, seconds / 10)

    monkeypatch.setattr(CostModel, "member", member)
    monkeypatch.setattr(CostModel, "view", lambda self, name: Cost(0.0, 0.0, 0.0, 0.0))


def planner(data, limits, optimize="nDCG@5", n_validation=100, spent=0.0):
    texts = Dataset(data[0].Y, data[0].labels, texts=data[0].texts)
    now = iter([0.0])
    return Planner(texts, limits, optimize, n_validation, Budget(math.inf, lambda: next(now, spent)))


def chosen(plan):
    return sorted(map(str, plan.members))


def test_without_tight_limits_all_members_are_planned(data, priced):
    plan = planner(data, Limits(cpu_seconds=1000)).choose()
    assert chosen(plan) == ["glas:words", "lexical", "neighbors:words", "network:words", "pdsparse:words+chars"]
    assert not plan.left_out
    assert plan.seconds == pytest.approx(16 + 1 + 20 + 30 + 0.5, abs=0.1)


def test_the_greatest_gain_within_the_budget_is_planned_and_the_rest_said(data, priced):
    plan = planner(data, Limits(cpu_seconds=20)).choose()
    assert chosen(plan) == ["lexical", "neighbors:words", "pdsparse:words+chars"]
    assert plan.left_out.keys() == {"network:words", "glas:words"}
    assert "would take about 38 s" in plan.left_out["network:words"]
    tight = planner(data, Limits(cpu_seconds=10)).choose()
    assert chosen(tight) == ["label_tree:words+chars", "lexical", "neighbors:words"]
    assert "pdsparse:words+chars" in tight.left_out
    assert chosen(planner(data, Limits(cpu_seconds=20), spent=9.2).choose()) == chosen(tight)  # reading took it


def test_size_and_latency_are_limits_too(data, priced):
    assert chosen(planner(data, Limits(model_mb=12)).choose()) == ["lexical", "neighbors:words", "pdsparse:words"]
    assert chosen(planner(data, Limits(latency_ms=0.5)).choose()) == ["label_tree:words", "lexical"]


def test_rare_labels_make_names_of_labels_worth_more(data, priced, monkeypatch):
    monkeypatch.setitem(SECONDS, "lexical", 6.5)
    limits = Limits(cpu_seconds=10.5)
    assert chosen(planner(data, limits).choose()) == ["neighbors:words", "pdsparse:words"]
    assert "lexical" in chosen(planner(data, limits, "PSP@5").choose())


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (Limits(cpu_seconds=1), r"nothing fits --budget 1s for 700 .* would take about 2.0 s; give at least --budget"),
        (Limits(model_mb=0.5), r"nothing fits --max-model-mb 0.5 .*the model would have about 2.* MB; give at least"),
        (Limits(latency_ms=0.01), r"nothing fits --max-latency-ms 0.01 .* a document would take about 0.38 ms"),
    ],
)
def test_what_nothing_fits_is_refused(data, priced, limits, message):
    with pytest.raises(ParameterError, match=message):
        planner(data, limits).choose()


def test_a_member_too_dear_to_measure_is_left_out(data, priced, monkeypatch):
    known = CostModel.member
    monkeypatch.setattr(CostModel, "member", lambda self, m: None if m.method == "glas" else known(self, m))
    plan = planner(data, Limits(cpu_seconds=1000)).choose()
    assert plan.left_out == {"glas:words": "measuring it would take too long"}


def test_costs_grow_with_the_documents(data):
    texts = Dataset(data[0].Y, data[0].labels, texts=data[0].texts)
    costs = CostModel(texts, math.inf, Budget(math.inf).clock)
    at = {50: 0.1, 250: 1.0, 700: 2.0}
    costs._probe_member = lambda member, size: Cost(at[size], at[size], at[size], at[size])
    costs.n = 7000
    costs.sizes = [250, 700]
    cost = costs.member(Member("sleec", "words"))
    assert cost.seconds == pytest.approx(2.0 * 10**1.4)
    assert cost.mb == pytest.approx(2.0 * 10 ** (math.log(2) / math.log(2.8)))
    assert cost.latency_ms == pytest.approx(2.0 * 10**0.4)
    poor = CostModel(texts, 10.0, Budget(math.inf).clock)
    poor._probe_member = costs._probe_member
    assert poor.member(Member("sleec", "words")) is None


@pytest.mark.parametrize("text", ["", "fast", "2x", "-5s", "m"])
def test_a_duration_that_is_none_is_refused(text):
    with pytest.raises(ParameterError, match=r"--budget must be a duration such as 90s, 2m or 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe("label_tree"), "limits choose the members of blend, but the method is label_tree"),
        (Recipe(params={"n_folds": 3}), "limits choose members, views and folds, but n_folds is given"),
        (Recipe(preset="best"), "but preset is given"),
        (Recipe(feature_params={"ngrams": 1}), r"but features\.ngrams is given"),
    ],
)
def test_what_limits_choose_is_not_given_too(folder, recipe, message):
    with pytest.raises(ParameterError, match=message):
        train(open_source(folder), recipe, limits=Limits(cpu_seconds=60))


def test_limits_are_positive(folder):
    with pytest.raises(ParameterError, match="--max-model-mb must be a positive number, but is -1"):
        train(open_source(folder), Recipe(), limits=Limits(model_mb=-1))


def test_checkpoints_and_limits_exclude_each_other(folder, tmp_path):
    with pytest.raises(ParameterError, match="leave the limits out"):
        train(open_source(folder), Recipe(), checkpoint=tmp_path / "c", limits=Limits(model_mb=1))


@pytest.mark.slow
def test_a_training_within_limits_ends_within_them(data, tmp_path, monkeypatch):
    plans = []
    few = data[0].rows(range(200))
    write_dataset(Dataset(few.Y, few.labels, texts=few.texts), tmp_path / "few.jsonl")
    source, recipe = open_source(tmp_path / "few.jsonl"), Recipe(params={"boosting_rounds": 5})
    tagger = train(source, recipe, limits=Limits(300.0, 20.0, 50.0), tell=plans.append)
    assert plans[0].params()["members"] == tagger.model.members
    all_members = [member.name for member in tagger.model.members_]
    assert {"pdsparse", "lexical"} <= set(all_members)
    mb = max(0.3, _saved(tagger, tmp_path / "all") * 0.5)
    plans.clear()
    monkeypatch.setattr("labelspace.experiment.plan.Planner._exceeded", lambda self, plan: None)  # nothing is foreseen
    smaller = train(source, recipe, limits=Limits(model_mb=mb), tell=plans.append)
    assert len(smaller.model.members_) < len(all_members)
    assert len(plans) == 2
    assert all("the model has" in reason for reason in plans[1].left_out.values())
    assert _saved(smaller, tmp_path / "smaller") <= mb
    assert set(smaller.features_.made_by_) == set(smaller.model.widths_)
    assert smaller.tag_batch(data[1].texts[:3]) == type(smaller).load(tmp_path / "smaller").tag_batch(data[1].texts[:3])


@pytest.mark.slow
def test_folds_and_members_that_a_budget_does_not_suffice_for_are_left_out(data, monkeypatch):
    train_set = data[0]
    budget = Budget(1e-9)
    model = Blend(members="label_tree,neighbors", n_folds=3, boosting_rounds=5)
    budget.expected = {"label_tree:words": 1.0, "neighbors:words": 1.0}
    model.fit(train_set.X, train_set.Y, budget=budget)
    assert budget.left_out == ["fold 2 of 3", "fold 3 of 3", "neighbors:words"]
    assert [member.name for member in model.members_] == ["label_tree"]
    assert model.predict_topk(data[1].X, 3).labels.shape == (data[1].X.shape[0], 3)


def _saved(tagger, folder):
    tagger.save(folder)
    return megabytes(folder)
