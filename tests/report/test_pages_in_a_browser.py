"""The page of a comparison, and the label map, in a browser: Debian's Chromium, driven by Playwright."""

import numpy as np
import pytest

from labelspace.report.comparison.page import comparison_page
from labelspace.report.map import map_page
from labelspace.types import LabelSpace
from tests.browser import needs_chromium, problems

pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
pytestmark = [pytest.mark.slow, needs_chromium]
WIDTHS = (360, 800, 1400, 1920)
SCREENS = ((360, 640), (640, 360), (800, 600), (1400, 900), (1920, 1080))


def row(i):
    value = 70.0 - i
    groups = {group: {"n_labels": 9, "recall": value - 9 * at} for at, group in enumerate(("head", "torso", "tail"))}
    bins = [{"n": 90, "probability": 10.0 * p, "accuracy": 9.0 * p} for p in range(1, 10)]
    metrics = {f"{kind}@{k}": value - k for kind in ("P", "nDCG", "PSP") for k in (1, 3, 5)}
    costs = {"train_cpu_seconds": 10.0**i, "model_mb": 3.0 + i * i, "latency_ms_p50": 0.5, "peak_memory_mb": 240.0 + i}
    more = {"by_frequency": groups, "reliability": bins, "ECE@5": 1.0, "ci": {"P@1": [value - 2, value]}}
    return {"method": f"method_{i}", "P@1_std": 0.2, **metrics, **costs, **more}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    rows = [*map(row, range(6)), {"method": "broken", "error": "it must be whole, but is broken; mend it"}]
    found = {"difference": 1.0, "interval": [0.5, 1.5], "p": 0.01, "p_holm": 0.02, "significant": True}
    others = {f"method_{i}": found for i in range(1, 6)}
    tests = {key: {"best": "method_0", "others": others} for key in ("P@1", "nDCG@5")}
    results = {"data": "D", "n_train": 9, "n_test": 9, "n_labels": 9, "test": "the test file", "rows": rows}
    results["paired_test"] = {"n_resamples": 2000, "significance": 0.05, "metrics": tests}
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(comparison_page(results), encoding="utf-8")
    return file.as_uri()


@pytest.fixture(scope="module")
def tabs(browser):
    """Pages by the options of their contexts; all tests share them."""
    found = {}

    def call(**options):
        key = frozenset(options.items())
        if key not in found:
            found[key] = browser.new_context(**options).new_page()
        return found[key]

    return call


@pytest.fixture
def opened(tabs):
    """Opens a page; an error of its script, or of its policy, fails the test."""
    faults, used = [], []

    def on_error(error):
        faults.append(str(error))

    def on_console(message):
        if message.type == "error":
            faults.append(message.text)

    def call(address, width=1280, height=720, **options):
        page = tabs(**options)
        used.append(page)
        page.on("pageerror", on_error)
        page.on("console", on_console)
        page.set_viewport_size({"width": width, "height": height})
        page.goto(address)
        return page

    yield call
    for page in used:
        page.goto("about:blank")
        page.remove_listener("pageerror", on_error)
        page.remove_listener("console", on_console)
    assert not faults


def test_the_page_is_as_wide_as_the_window_and_nothing_is_cut(opened, report):
    page = opened(report)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        cut = page.evaluate(
            "[...document.querySelectorAll('svg text, .dots-value, li, p')].filter(e => {"
            " const box = e.getBoundingClientRect(); return box.width && !e.closest('.wide')"
            " && (box.left < -1 || box.right > innerWidth + 1); }).map(e => e.textContent)"
        )
        assert cut == []


def test_a_heading_sorts_by_keyboard_and_says_so(opened, report):
    page = opened(report)
    names = "[...document.querySelectorAll('.sortable tbody th')].map(e => e.textContent)"
    ours = [f"method_{i}" for i in range(6)]
    heading = page.locator(".sortable th", has_text="P@1").first
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert page.evaluate(names) == [*ours, "broken"]
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    assert page.evaluate(names) == [*reversed(ours), "broken"], "those that failed stay last"
    page.locator(".sortable th", has_text="model MB").locator("button").click()
    assert heading.get_attribute("aria-sort") is None
    assert page.evaluate(names) == [*ours, "broken"], "the smallest first"


def test_both_axes_are_chosen_and_blocks_are_shown_by_lists(opened, report):
    page = opened(report)
    point = page.locator(".trade-off [data-method='1'] .point")
    before = point.get_attribute("cx"), point.get_attribute("cy")
    page.locator("#trade-off-x").select_option("model_mb")
    page.locator("#trade-off-y").select_option("PSP@5")
    assert page.locator(".trade-off .x-title").inner_text() == "model MB"
    assert page.locator(".trade-off .y-title").inner_text() == "PSP@5, %"
    assert point.get_attribute("cx") != before[0]
    assert page.locator("[data-block='differences']:visible").count() == 1
    page.locator("[data-shows='differences']").select_option("nDCG@5")
    shown = page.locator("[data-block='differences']:visible")
    assert shown.get_attribute("data-key") == "nDCG@5"


def test_without_scripts_plots_and_tables_are_there(opened, report):
    page = opened(report, java_script_enabled=False)
    assert page.locator(".trade-off .point").count() == 6
    assert page.locator("#trade-off-x").is_hidden()
    assert page.locator("[data-block='differences']:visible").count() == 2


def test_nothing_serious_for_screen_readers(opened, report):
    page = opened(report, 1000, 800, bypass_csp=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert problems(page) == [], scheme


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 2))
    points *= rng.uniform(0.2, 0.7, (60, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    labels = LabelSpace([f"label {i}" for i in range(60)], counts=np.arange(60, 0, -1), n_documents=99)
    file = tmp_path_factory.mktemp("map") / "map.html"
    file.write_text(map_page(points, labels, "Labels of a model"), encoding="utf-8")
    return file.as_uri()


@pytest.mark.parametrize(("width", "height"), SCREENS)
def test_the_whole_disk_is_seen_at_every_size_of_the_window(opened, disk, width, height):
    page = opened(disk, width, height)
    box = page.locator("#names").bounding_box()
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= height
    # The boundary of the disk is drawn on the upper canvas: at the middle of each side.
    seen = """() => {
      const canvas = document.getElementById("names"), context = canvas.getContext("2d");
      const x = canvas.width / 2, y = canvas.height / 2, r = Math.min(x, y) - 8;
      const inked = (u, v) => context.getImageData(u - 9, v - 9, 18, 18).data.some(Boolean);
      return inked(x - r, y) && inked(x + r, y) && inked(x, y - r) && inked(x, y + r);
    }"""
    page.wait_for_function(seen, timeout=10_000)
