import re

import pytest

from labelspace.report.curves import compact, precision_coverage_svg, reliability_svg
from labelspace.report.evaluation_page import evaluation_page
from tests.report.test_page import outline

COSTS = {"predict_seconds": 0.5, "latency_ms_p50": 1.0, "latency_ms_p99": 2.0, "model_mb": 3.0}
FIGURES = {
    "P@1": 70.0,
    "P@5": 30.0,
    "ECE@5": 1.23,
    "reliability": [{"n": 0}] * 14 + [{"n": 1200, "probability": 97.0, "accuracy": 95.5}],
    "micro_f1": 60.0,
    "micro_f1_threshold": 0.25,
    "coverage_at_precision_90": 40.0,
    "threshold_at_precision_90": 0.8,
    "coverage_at_precision_95": 0.0,
    "threshold_at_precision_95": None,
    "precision_coverage": [[0.9, 94.0, 10.0], [0.5, 60.0, 80.0]],
    "by_frequency": {"head": {"n_labels": 3, "recall": 12.0}},
    "n": 1000,
    "n_without_labels": 0,
    "n_labels": 7,
    **COSTS,
}
LEVEL = dict.fromkeys(
    ("accuracy", "accuracy_with_na", "best_micro_f1", "best_macro_f1", "tail_macro_f1", "micro_f1_with_na"), 55.5
) | dict.fromkeys(("n_labels", "n_occurrences", "n_na", "n_tail"), 0)


def page_of(figures=FIGURES, model="mine", data="test.csv"):
    return evaluation_page(figures, model, "blend", data)


def test_the_page_is_well_formed_and_has_every_part():
    page = page_of()
    seen = outline(page)
    assert seen["svg"] == seen["figure"] == 2
    assert "<h1>mine on test.csv</h1>" in page
    assert "<td>P</td><td>70.00</td><td>30.00</td>" in page
    assert "1.2 percentage points away from how often it is right (ECE@5 1.23 %)" in page
    assert "with 90 % precision, 40.0 % of the right labels; 95 % precision is not reached" in page
    assert "<td>micro F1, at its best threshold</td><td>60.00</td><td>0.25</td>" in page
    assert "<td>coverage at 95 % precision</td><td>0.00</td><td>none</td>" in page
    assert "1.2k" in page
    assert "In parentheses" not in page


def test_the_page_needs_no_network_and_no_script():
    page = page_of()
    assert not {"script", "link", "img", "iframe", "object"} & set(outline(page))
    assert not re.search(r"https?:|//|@import|url\(|src=|href=", page)


def test_intervals_are_shown_and_explained():
    page = page_of({**FIGURES, "ci": {"P@1": [68.0, 72.04]}})
    assert "<td>P</td><td>70.00 (68.0 to 72.0)</td><td>30.00</td>" in page
    assert "95 % confidence intervals" in page


def test_without_probabilities_there_is_a_sentence_in_place_of_the_diagram():
    figures = {key: value for key, value in FIGURES.items() if key not in ("ECE@5", "reliability")}
    page = page_of(figures)
    assert outline(page)["svg"] == 1
    assert "There is no reliability diagram: the scores of blend order labels" in page
    assert "no reliability diagram" not in page_of()


def test_what_was_not_measured_is_left_out_and_groups_are_shown():
    figures = {key: FIGURES[key] for key in ("P@1", "by_frequency", "n", "n_without_labels", "n_labels", *COSTS)}
    assert "svg" not in outline(page_of(figures))
    assert "How sure" not in page_of(figures)
    level = page_of({**figures, "by_level": {"0": LEVEL}, "deepest_accuracy": 44.0})
    assert "By level of the hierarchy" in level
    assert "accuracy at the deepest level: 44.00 %" in level
    assert "<td>0</td><td>55.50</td>" in level


def test_documents_seen_in_training_and_unknown_labels_are_told():
    page = page_of({**FIGURES, "seen_in_training": 12.5, "n_unknown_labels": 3})
    assert "12.5 % of these documents were in the training data." in page
    assert "3 of their labels are unknown to the model" in page
    assert "training data" not in page_of({**FIGURES, "seen_in_training": None, "n_unknown_labels": 0})


def test_names_are_text_and_no_markup():
    evil = "</td><script>alert('1')</script>\"><img src=x onerror=alert(1)>"
    figures = {**FIGURES, "by_frequency": {evil: {"n_labels": 1}}}
    seen = outline(evaluation_page(figures, evil, evil, evil))
    assert "script" not in seen
    assert "img" not in seen


def test_points_lie_where_they_should():
    svg = reliability_svg([{"n": 1, "probability": 0.0, "accuracy": 0.0}, {"n": 3, "probability": 100, "accuracy": 50}])
    assert "cx='56' cy='316'" in svg
    assert "cx='456' cy='166'" in svg
    assert "3 predictions of probability 100.0 %: 50.0 % right" in svg
    svg = precision_coverage_svg([[0.9, 100.0, 0.0], [0.1, 0.0, 100.0]], {90: 100.0})
    assert "points='56,16 456,316'" in svg
    assert "cx='456' cy='46'" in svg


def test_an_evaluation_without_predictions_is_drawn_too():
    assert outline(reliability_svg([{"n": 0}] * 15)).get("circle", 0) == 0
    assert outline(precision_coverage_svg([], {90: 0.0})).get("polyline", 0) == 0


@pytest.mark.parametrize("n", [0, 7, 999, 1000, 9949, 9951, 99_499, 999_499, 1_000_000, 99_000_000])
def test_counts_are_short(n):
    assert len(compact(n)) <= 4
