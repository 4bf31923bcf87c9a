from labelspace.report.page import comparison_page
from tests.checks import outline

GROUPS = {group: {"recall": 10.0 * i} for i, group in enumerate(("head", "torso", "tail"))}
GOOD = {"method": "good", "P@1": 90.0, "P@5": 60.0, "train_cpu_seconds": 12.0, "model_mb": 3.0, "by_frequency": GROUPS}
POOR = {
    "method": "poor & <b>",
    "P@1": 10.0,
    "P@5": 5.0,
    "train_cpu_seconds": 0.0,
    "model_mb": 1.0,
    "by_frequency": GROUPS,
}
BAD = {"method": "bad", "error": "C must be above 0"}
SIZES = {"data": "D", "n_train": 5000, "n_test": 10, "n_labels": 7, "test": "the test file"}


def test_the_page_is_well_formed_and_draws_every_method():
    page = comparison_page({**SIZES, "rows": [GOOD, POOR, BAD]})
    seen = outline(page)
    assert seen["circle"] == 2
    assert seen["rect"] == 2 * 2 + 3 * 2  # P@1 and P@5, then head, torso and tail, for two methods
    assert "bad failed: C must be above 0" in page
    assert "poor &amp; &lt;b&gt;" in page
    assert "<b>" not in page
    assert "http" not in page.replace("http-equiv", ""), "opens offline"


def test_names_and_errors_are_text_and_no_markup():
    evil = "</td><script>alert('1')</script>\"><img src=x onerror=alert(1)>"
    rows = [{**GOOD, "method": evil}, {"method": evil, "error": evil}]
    page = comparison_page({**SIZES, "data": evil, "test": evil, "rows": rows})
    seen = outline(page)
    assert "script" not in seen
    assert "img" not in seen
    assert "&lt;script&gt;" in page


def test_the_best_of_each_column_is_marked():
    page = comparison_page({**SIZES, "rows": [GOOD, POOR]})
    assert "<td class=best>90.00</td>" in page
    assert "<td class=best>1.00</td>" in page
    assert "<td class=best>10.00</td>" not in page


def paired(worse):
    other = {"difference": 80.0, "interval": [70.0, 90.0], "p": 0.001, "p_holm": 0.002, "significant": worse}
    return {"n_resamples": 2000, "significance": 0.05, "metrics": {"P@1": {"best": "good", "others": {"poor": other}}}}


def test_methods_that_are_not_significantly_worse_are_marked_and_differences_listed():
    rows = [GOOD, {**POOR, "method": "poor"}, BAD]
    page = comparison_page({**SIZES, "rows": rows, "paired_test": paired(worse=True)})
    assert outline(page)["details"] == 1
    assert "<td class=best>90.00*</td>" in page
    assert "<td>10.00<i>*</i></td>" in page, "as wide as a star, and not seen"
    cells = ["P@1", "good", "poor", "80.00", "70.00 to 90.00", "0.002", "yes"]
    assert "".join(f"<td>{cell}</td>" for cell in cells) in page
    page = comparison_page({**SIZES, "rows": rows, "paired_test": paired(worse=False)})
    assert "<td>10.00*</td>" in page
    alone = comparison_page({**SIZES, "rows": [GOOD], "paired_test": {**paired(worse=True), "metrics": {}}})
    assert "*<" not in alone
    assert "details" not in outline(alone)


def test_nothing_but_failures_is_a_page_too():
    assert outline(comparison_page({**SIZES, "rows": [BAD]})).get("svg", 0) == 0
