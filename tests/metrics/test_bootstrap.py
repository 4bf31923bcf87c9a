import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

from labelspace.errors import ParameterError
from labelspace.metrics import DocumentValues, compare_with_best, confidence_intervals, evaluate, per_document
from labelspace.metrics.bootstrap import holm, interval, resampled
from labelspace.types import TopK
from tests.metrics.random_cases import cases, unhurried


def mean(values):
    return DocumentValues.of_mean(np.asarray(values, float))


@unhurried
@given(case=cases())
@pytest.mark.parametrize("unlabelled", ["skip", "count"])
def test_documents_add_up_to_the_metrics(case, unlabelled):
    given = (case.Y, case.topk, case.counts, case.n_documents, (1, case.k))
    table = evaluate(*given, unlabelled=unlabelled)
    values = per_document(*given, unlabelled=unlabelled)
    assert {name: round(100 * value.value(), 4) for name, value in values.items()} == {
        name: value for name, value in table.items() if "@" in name and not name.startswith("coverage")
    }
    assert {len(value.numerators) for value in values.values()} == {table["n"]}


def test_what_is_no_way_to_count_is_refused():
    with pytest.raises(ParameterError, match="unlabelled must be skip or count, but is 'drop'"):
        per_document(sp.csr_matrix(np.eye(2)), TopK.from_scores(np.eye(2), 1), [1, 1], 2, (1,), unlabelled="drop")


def test_an_interval_of_a_mean_is_that_of_the_normal_approximation():
    values = mean(np.random.default_rng(1).random(2000) < 0.3)
    low, high = confidence_intervals({"P@1": values}, n_resamples=4000)["P@1"]
    p = values.value()
    half = 1.96 * np.sqrt(p * (1 - p) / 2000)
    assert (low, high) == pytest.approx((p - half, p + half), abs=0.002)


def test_intervals_cover_the_true_value_about_95_times_in_100():
    rng, covered = np.random.default_rng(0), 0
    for seed in range(200):
        weights = rng.random(150) + 0.5
        low, high = confidence_intervals(
            {"r": DocumentValues(weights * (rng.random(150) < 0.4), weights)}, n_resamples=400, seed=seed
        )["r"]
        covered += low <= 0.4 <= high
    assert 180 <= covered <= 199


def test_a_ratio_is_resampled_as_a_ratio_of_sums():
    # Two documents: a resample has both (1/2), the first twice (1/4) or the second twice (1/4).
    values = DocumentValues(np.array([1.0, 0.0]), np.array([1.0, 3.0]))
    samples = resampled([values], 4000)[:, 0]
    seen, counts = np.unique(samples, return_counts=True)
    assert seen.tolist() == [0.0, 0.25, 1.0]
    assert (counts / 4000).tolist() == pytest.approx([0.25, 0.5, 0.25], abs=0.03)
    assert interval(np.arange(101.0), 0.9) == pytest.approx((5, 95))


def test_the_same_seed_gives_the_same_intervals_in_blocks_of_any_size(monkeypatch):
    values = {"a": mean(np.arange(50)), "b": mean(np.arange(50) % 7)}
    first = confidence_intervals(values)
    monkeypatch.setattr("labelspace.metrics.bootstrap.AT_ONCE", 130)
    assert confidence_intervals(values) == {name: pytest.approx(pair) for name, pair in first.items()}
    assert confidence_intervals(values, seed=1) != first
    assert confidence_intervals({}) == {}


def test_holm_by_hand():
    # 0.01 * 4, then 0.02 * 3, 0.03 * 2 stays at 0.06, 0.5 * 1.
    assert holm([0.5, 0.01, 0.03, 0.02]).tolist() == pytest.approx([0.5, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


def test_a_small_difference_on_the_same_documents_is_seen_where_unpaired_intervals_overlap():
    rng = np.random.default_rng(0)
    hard = rng.random(400)
    best, worse, same = mean(hard), mean(hard - 0.01), mean(rng.permutation(hard) - 0.01)
    values = {"worse": {"P@1": worse}, "best": {"P@1": best}, "other": {"P@1": same}}
    test = compare_with_best(values)["P@1"]
    assert test["best"] == "best"
    assert list(test["others"]) == ["worse", "other"]
    assert test["others"]["worse"]["difference"] == pytest.approx(0.01)
    assert test["others"]["worse"]["interval"] == pytest.approx((0.01, 0.01))
    assert test["others"]["worse"]["significant"]
    assert test["others"]["other"]["difference"] == pytest.approx(0.01)
    assert not test["others"]["other"]["significant"]
    assert test["others"]["worse"]["p"] == pytest.approx(2 / 2001)
    assert test["others"]["worse"]["p_holm"] == pytest.approx(4 / 2001)
    intervals = confidence_intervals({"best": best, "worse": worse})
    assert intervals["worse"][1] > intervals["best"][0]


def test_methods_that_answer_alike_are_not_different():
    value = mean(np.random.default_rng(0).random(99))
    test = compare_with_best({"a": {"P@1": value}, "b": {"P@1": value}})["P@1"]
    assert test["best"] == "a"
    assert test["others"]["b"] == {"difference": 0, "interval": (0, 0), "p": 1, "p_holm": 1, "significant": False}


def test_one_method_is_compared_with_nothing_and_a_metric_that_some_lack_is_left_out():
    value = mean([1, 0])
    assert compare_with_best({"a": {"P@1": value}}) == compare_with_best({}) == {}
    assert list(compare_with_best({"a": {"P@1": value, "x": value}, "b": {"P@1": value}})) == ["P@1"]


def test_methods_that_are_equally_good_are_seldom_called_different():
    rng, called = np.random.default_rng(0), 0
    for seed in range(100):
        values = {name: {"P@1": mean(rng.random(80) < 0.5)} for name in "abc"}
        others = compare_with_best(values, n_resamples=300, seed=seed)["P@1"]["others"]
        called += any(other["significant"] for other in others.values())
    assert called <= 12  # 6 to 7 in 100: the best is chosen after the fact
