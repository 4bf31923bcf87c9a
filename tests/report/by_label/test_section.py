"""The labels of an evaluation as a part of its page."""

import json
import re
import zlib
from base64 import b64decode

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace import metrics
from labelspace.experiment.by_label import LabelDetails, LabelExample, LabelReport, worst_first
from labelspace.report.by_label.section import label_section
from labelspace.report.evaluation_page import evaluation_page
from labelspace.types import Hierarchy, LabelSpace, TopK
from tests.browser import launched, needs_chromium
from tests.checks import outline
from tests.report.test_evaluation_page import FIGURES

EVIL = "</script><img src=x onerror=document.title='hacked'>'$(id)'"


def report_of(Y, top, names, edges=(), details=None):
    figures = metrics.label_figures(metrics.ScoredPairs.from_topk(Y, top), 0.5)
    hierarchy = Hierarchy.from_edges(edges, len(names)) if len(edges) else None
    labels = LabelSpace(names, counts=np.arange(len(names)) % 50, n_documents=len(names), hierarchy=hierarchy)
    confused = metrics.confusions(Y, top.at_least(0.5))
    return LabelReport(labels, figures, confused, worst_first(figures), details or {}, 0.5, True, top.k)


@pytest.fixture
def small():
    """Three labels below one that no document has; label 0 is missed once, and label 1 is answered in its place."""
    Y = sp.csr_matrix(np.array([[1, 0, 0, 0], [0, 0, 1, 0]], np.float32))
    top = TopK.from_scores([[0.1, 0.9, 0.2, 0.0], [0.1, 0.2, 0.9, 0.0]], 3)
    missed = LabelExample("-7 'x'", EVIL, 0.1, [EVIL], ["one"])
    details = {0: LabelDetails(["word"], [], [missed])}
    return report_of(Y, top, [EVIL, "one", "two", "branch"], [(0, 3), (1, 3)], details)


def unpacked(page):
    packed = re.search(r"id='label-data'>([^<]*)<", page)[1]
    return json.loads(zlib.decompress(b64decode(packed)))


def test_columns_by_hand(small):
    data = unpacked(label_section(small, "labelspace explain m --of d"))
    assert data["names"][1:] == ["one", "two", "branch"]
    assert data["parents"] == [3, 3, [], []]
    assert (data["n"], data["answered"], data["right"]) == ([1, 0, 1], [0, 1, 1], [0, 0, 1])
    assert (data["ap"], data["threshold"]) == ([50.0, None, 100.0], [0.1, None, 0.9])  # 0.1 has document 1 too
    assert (data["instead"], data["beside"]) == ([[1, 1], [], []], [[], [0, 1], []])
    assert data["details"][0][0] == EVIL


def test_the_page_runs_its_own_script_only(small):
    page = evaluation_page(FIGURES, "mine", "blend", "test.csv", label_section(small, None))
    assert outline(page)["script"] == 2  # of which one is data
    assert "img" not in outline(page)
    assert re.search(r"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-[^']+'\"", page)
    assert not re.search(r"https?:|//[a-z]|@import|url\(|src=|href=", re.sub(r"'label-data'>[^<]*<", "", page))


@pytest.mark.slow
@pytest.mark.parametrize(("n_words", "fits"), [(300, True), (100_000, False)])
def test_100000_labels_take_less_than_two_megabytes(n_words, fits):
    n, rng = 100_000, np.random.default_rng(0)
    letters = rng.integers(97, 117, (n_words, 7)).astype(np.uint8)
    words = [bytes(row).decode() for row in letters]
    names = [f"{words[a]} {words[b]}" for a, b in rng.integers(0, n_words, (n, 2))]
    true = np.stack([np.arange(n), rng.integers(0, n, n)], axis=1)
    Y = sp.csr_matrix((np.ones(2 * n, np.float32), true.ravel(), np.arange(0, 2 * n + 1, 2)), shape=(n, n))
    Y.sum_duplicates()
    Y.data[:] = 1
    labels = np.stack([true[:, 0], (true[:, 0] + rng.integers(2, n, n)) % n, (true[:, 0] + 1) % n], axis=1)
    scores = -np.sort(-rng.random((n, 3)), axis=1)
    edges = np.stack([np.arange(1, n), np.arange(1, n) // 10], axis=1)
    report = report_of(Y, TopK(labels, scores), names, edges)
    page = evaluation_page(FIGURES, "mine", "blend", "test.csv", label_section(report, None))
    assert len(report.order) == n
    assert len(page.encode()) < 2_000_000
    shown = len(unpacked(page)["n"])
    assert shown == n if fits else 50_000 < shown < n
    assert ("fit into this page; the file has all 100,000" in page) != fits


@pytest.mark.slow
@needs_chromium
def test_search_branch_sorting_and_details_in_a_browser(small, tmp_path):
    pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    file = tmp_path / "e.html"
    section = label_section(small, "labelspace explain m --of d")
    file.write_text(evaluation_page(FIGURES, "mine", "blend", "test.csv", section), encoding="utf-8")
    with launched() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 800})
        faults = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(file.as_uri())
        page.wait_for_selector("[data-row]")
        listed = lambda: page.locator("#label-table tbody button").all_text_contents()  # noqa: E731
        assert listed() == [EVIL, "one", "two"]
        page.click("[data-row='0']")
        said = page.text_content("td.details")
        assert "Given instead, where it was missed: one (1)" in said
        assert "Telling words: word" in said
        quoted = EVIL.replace("'", "'\\''")
        assert f"labelspace explain m --of d --label '{quoted}' -- '-7 '\\''x'\\'''" in said
        page.fill("#label-branch", "BRANCH")
        assert listed() == [EVIL, "one"]
        page.fill("#label-search", "on")
        page.fill("#label-least", "1")
        assert listed() == [EVIL]
        for name in ("branch", "search", "least"):
            page.fill(f"#label-{name}", "")
        page.click("thead button >> text=recall")
        assert listed() == ["two", EVIL, "one"]
        assert page.title() == "labelspace: mine on test.csv"
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        assert not faults
