import pytest

from labelspace.report.tuning import (
    best_trials,
    metric_axis,
    parameter_svg,
    plotted,
    trials_svg,
    tuning_lines,
    tuning_page,
)
from tests.checks import outline

RANGES = {"C": {"low": 0.1, "high": 10.0, "log": True, "integer": False}, "loss": {"values": [None, "bce"]}}


def trial(number, value, rank=1, error=None, **params):
    made = {"trial": number, "value": value, "rank": rank, "params": params, "changed": params, "cpu_seconds": 1.0}
    return made if error is None else {**made, "error": error}


def results(trials, **changes):
    best = max((t for t in trials if t["value"] is not None), key=lambda t: t["value"], default=None)
    return {
        "data": "D", "method": "glas", "metric": "nDCG@5", "n_train": 5000, "n_validation": 10, "validation": "a part",
        "n_trials": len(trials), "n_failed": sum("error" in t for t in trials), "cpu_seconds": 12.0, "fixed": {},
        "default": trials[0]["value"], "importance": {"C": 0.9, "loss": 0.1}, "ranges": RANGES, "trials": trials,
        "searched": {"C": "0.1:10:log", "loss": "none,bce"},
        "best": best and {"gain": 2.5, "value": best["value"], "command": "labelspace train D --set C=2"},
        **changes,
    }  # fmt: skip


TRIALS = [
    trial(0, 50.0, 2, C=1.0, loss=None),
    trial(1, 52.5, 1, C=2.0, loss="bce"),
    trial(2, None, None, "no memory", C=3.0, loss="bce"),
    trial(3, 2.0, 3, C=0.1, loss="bce"),
]


def test_the_page_draws_every_trial_and_every_parameter():
    page = tuning_page(results(TRIALS))
    seen = outline(page)
    assert seen["svg"] == 1 + 2
    assert seen["circle"] == 3 * 3
    assert page.count("class='dashed'") == 3, "the default"
    assert "Better than the default by 2.50: nDCG@5 50.00 -&gt; 52.50." in page
    assert "Importance of parameters: C 90 %, loss 10 %." in page
    assert "Trial 2 failed (C=3.0, loss=bce): no memory" in page
    assert "http" not in page, "opens offline"


def test_names_and_errors_are_text_and_no_markup():
    evil = "</td><script>alert('1')</script>\"><img src=x onerror=alert(1)>"
    trials = [trial(0, 50.0, C=1.0, loss=evil), trial(1, None, None, evil, C=1.0)]
    made = results(trials, data=evil, validation=evil, fixed={"a": evil}, searched={evil: evil})
    made["ranges"] = {**RANGES, "loss": {"values": [evil]}}
    made["best"]["command"] = evil
    seen = outline(tuning_page(made))
    assert "script" not in seen
    assert "img" not in seen


def test_a_search_whose_trials_all_fail_has_a_page_and_a_line():
    made = results([trial(0, None, None, "bad")], importance={})
    assert tuning_lines(made) == ["Every trial failed."]
    assert "Trial 0 failed (the default): bad" in tuning_page(made)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"gain": 0.0}, "No trial is better than the default, which has nDCG@5 50.00."),
        ({"gain": None}, "The default failed; the best has nDCG@5 52.50. Chosen on"),
        ({}, "Better than the default by 2.50: nDCG@5 50.00 -> 52.50. Chosen on"),
    ],
)
def test_what_is_said_of_the_best(changes, said):
    made = results(TRIALS)
    lines = tuning_lines({**made, "best": {**made["best"], **changes}})
    assert lines[0].startswith(said)
    assert lines[-1] == "  labelspace train D --set C=2"


def test_the_best_trials_are_first_and_the_default_is_always_there():
    assert [t["trial"] for t in best_trials(results(TRIALS))] == [1, 0, 3]
    assert [t["trial"] for t in best_trials(results(TRIALS), n=1)] == [1, 0]


def test_important_parameters_are_drawn_first_and_unused_ones_not_at_all():
    made = results(TRIALS, importance={"loss": 0.9}, ranges={**RANGES, "margin": {"low": 1, "high": 2, "log": False}})
    assert plotted(made) == ["loss", "C"]


def test_trials_far_below_are_hollow_at_the_lower_edge():
    svg = trials_svg(TRIALS, "nDCG@5")
    axis = metric_axis(TRIALS)
    assert 2.0 < axis.low < 50
    assert svg.count("point hollow") == 1
    assert "cy='256'" in svg


def test_a_parameter_that_few_trials_have_is_drawn_for_these():
    trials = [*TRIALS, trial(4, 51.0, 2, margin=1.5)]
    svg = parameter_svg(trials, "margin", {"low": 1, "high": 2, "log": False}, "P@1")
    assert outline(svg)["circle"] == 1
    one = parameter_svg([trial(0, 1.0, loss=True)], "loss", {"values": [1, True]}, "P@1")
    assert "cx='350'" in one, "true is the second value, not 1"
