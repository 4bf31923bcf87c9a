import json
import re

import pytest

from labelspace.report.comparison.page import comparison_page
from tests.checks import outline

GROUPS = {
    group: {"n_labels": 3, "recall": 10.0 * i, "precision": 5.0, "macro_f1": 2.0 + i}
    for i, group in enumerate(("head", "torso", "tail"), start=1)
}
GOOD = {
    "method": "good",
    "P@1": 90.0,
    "P@5": 60.0,
    "train_cpu_seconds": 12.0,
    "model_mb": 3.0,
    "by_frequency": GROUPS,
    "ci": {"P@1": [88.0, 92.0]},
}
POOR = {**GOOD, "method": "poor", "P@1": 80.0, "P@5": 5.0, "train_cpu_seconds": 0.0, "model_mb": 1.0}
BAD = {"method": "bad", "error": "C must be above 0"}
SIZES = {"data": "D", "n_train": 5000, "n_test": 10, "n_labels": 7, "test": "the test file"}
EVIL = "</td></script><script>alert('1')</script>\"><img src=x onerror=alert(1)>"


def page_of(*rows, **more):
    return comparison_page({**SIZES, "rows": list(rows), **more})


def data_of(page):
    return json.loads(re.search(r"<script type='application/json' id='data'>(.*?)</script>", page, re.DOTALL)[1])


def paired(worse):
    other = {"difference": 10.0, "interval": [8.0, 12.0], "p": 0.001, "p_holm": 0.002, "significant": worse}
    return {"n_resamples": 2000, "significance": 0.05, "metrics": {"P@1": {"best": "good", "others": {"poor": other}}}}


def test_the_page_is_well_formed_and_draws_every_method():
    page = page_of(GOOD, POOR, BAD)
    seen = outline(page)
    assert seen["circle"] == (2 + 1) + 2 + 3 * 3 * 2  # P@1, and P@5 where poor lies beyond; a point each; 3 groups
    assert page.count("bad failed: C must be above 0") == 1
    assert "5,000 training and 10 test documents (the test file), 7 labels" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", ""), "opens offline"


def test_names_and_errors_are_text_and_no_markup():
    rows = [{**GOOD, "method": EVIL, "params": {EVIL: EVIL}}, {"method": EVIL, "error": EVIL}]
    page = page_of(*rows, data=EVIL, test=EVIL, left_out={EVIL: EVIL})
    seen = outline(page)
    assert seen["script"] == 2, "the data and our own"
    assert "img" not in seen
    assert "&lt;script&gt;" in page
    assert data_of(page)["y"]["P@1"]["names"] == [EVIL[:22] + "…"]


def test_the_best_of_each_column_is_marked():
    page = page_of(GOOD, POOR)
    assert "<td data-value='90'><b>90.00</b></td>" in page
    assert "<td data-value='1'><b>1.00</b></td>" in page, "the smaller model"
    assert "<td data-value='80'>80.00</td>" in page


def test_methods_that_are_not_significantly_worse_are_marked_and_differences_listed():
    page = page_of(GOOD, POOR, BAD, paired_test=paired(worse=True))
    assert "<b>90.00<span class='star'>*</span></b>" in page
    assert "80.00<span class='star'></span>" in page, "as wide as a star"
    cells = ["−10.00", "−12.00 to −8.00", "0.002", "yes"]
    assert "".join(f"<td>{cell}</td>" for cell in cells) in page
    assert "significantly better than all others" in page
    page = page_of(GOOD, POOR, paired_test=paired(worse=False))
    assert "80.00<span class='star'>*</span>" in page
    assert "not significantly worse: poor" in page
    alone = page_of(GOOD, paired_test={**paired(worse=True), "metrics": {}})
    assert "Differences to the best" not in alone
    assert "class='star'" not in alone


def test_means_over_seeds_have_deviations_and_single_seeds():
    runs = [{"seed": seed, "P@1": 89.0 + seed} for seed in (0, 1, 2)]
    drawn = {**GOOD, "P@1_std": 1.0, "runs": runs, "seeds": [0, 1, 2], "peak_memory_mb": 240.2}
    page = page_of(drawn, {**POOR, "seeds": [0]}, seeds=[0, 1, 2])
    assert "<td data-value='90'><b>90.00</b><small>±1.00</small></td>" in page
    assert page.count("class='seed'") == 3
    assert "3 seeds each" in page
    assert "Trained once, since nothing is drawn at random: poor." in page
    assert "the smallest here is 240 MB" in page


def test_every_pair_of_axes_has_its_places():
    data = data_of(page_of(GOOD, POOR, {**POOR, "method": "dear", "P@1": 70.0, "train_cpu_seconds": 99.0}))
    assert set(data["y"]) == {"P@1", "P@5"}
    assert set(data["x"]) == {"train_cpu_seconds", "model_mb"}
    assert data["filled"]["P@1|train_cpu_seconds"] == [True, True, False]
    assert data["x"]["train_cpu_seconds"]["name"] == "train CPU s (logarithmic)"
    assert data["x"]["model_mb"]["name"] == "model MB"
    heights = data["y"]["P@1"]["at"]
    assert heights == sorted(heights), "better is higher"
    assert data["y"]["P@5"]["names"] == ["good", "poor ↓ 5.0", "dear ↓ 5.0"]
    names = sorted(data["y"]["P@5"]["heights"])
    assert all(b - a >= 17 for a, b in zip(names, names[1:], strict=False)), "they do not overprint"


def test_reliability_is_drawn_of_calibrated_methods():
    bins = [{"n": 0}, *({"n": 50, "probability": p, "accuracy": p - 5} for p in (20.0, 60.0)), {"n": 3}]
    page = page_of({**GOOD, "reliability": bins, "ECE@5": 5.0}, POOR)
    assert "Are the probabilities right?" in page
    assert "Mean distance (ECE@5): good 5.00 %" in page
    assert "50 predictions of probability 60.0 %, 55.0 % right" in page
    assert "Are the probabilities right?" not in page_of(GOOD, POOR)


@pytest.mark.parametrize("row", [BAD, {"method": "bare", "train_cpu_seconds": 1.0}])
def test_a_page_without_accuracies_has_no_plots(row):
    assert outline(page_of(row)).get("svg", 0) == 0


def test_equal_methods_and_zeros_can_be_drawn():
    zero = {**GOOD, "P@1": 0.0, "P@5": 0.0, "train_cpu_seconds": 0.0, "model_mb": 0.0, "ci": {}}
    zero["by_frequency"] = {group: dict.fromkeys(("recall", "precision", "macro_f1"), 0.0) for group in GROUPS}
    page = page_of(zero, {**zero, "method": "other"})
    assert outline(page)["svg"] > 0
    assert "nan" not in page
