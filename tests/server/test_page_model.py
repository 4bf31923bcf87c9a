"""The model view in a browser: learning, versions and labels, on a server whose model these tests change."""

import shutil

import pytest

from tests.browser import needs_chromium, problems
from tests.server.conftest import documents, running_servers
from tests.server.load import MODEL

sync_api = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
expect = sync_api.expect
pytestmark = [pytest.mark.slow, needs_chromium]
RYE, TEA, SALMON = "food > bread > rye", "drink > tea", "food > fish > salmon"
OFFERED = '[data-testid="search-option"][aria-selected="true"]:visible'
SIZES = [{"width": 390, "height": 844}, {"width": 1400, "height": 900}]
PATIENCE = 60_000  # milliseconds for a job, on a machine that is busy


@pytest.fixture
def server(trained, data_folder, tmp_path):
    """A server of a model of the test's own."""
    shutil.copytree(trained, tmp_path / "foods")
    with running_servers(tmp_path) as start:
        yield start(str(tmp_path / "foods"), "--data", str(data_folder))


@pytest.fixture
def page(browser, server):
    """The model view, for axe as well: it needs a context without the policy; a script error fails the test."""
    faults = []
    with browser.new_context(bypass_csp=True, reduced_motion="reduce", viewport=SIZES[1]) as context:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: faults.append(str(error)))
        show(page, server)
        yield page
    assert not faults


def show(page, server):
    page.goto("about:blank")
    page.goto(f"{server.url}/#/model")
    page.get_by_test_id("version").first.wait_for()


def version(page, number):
    return page.locator(f'[data-testid="version"][data-number="{number}"]')


def best(server, text):
    return server.post(f"{MODEL}/suggest", {"text": text, "k": 1})["suggestions"][0]["label"]


def examine(page):
    """The page in all sizes and colors, in which axe finds nothing, and nothing is wider than the window."""
    for size in SIZES:
        page.set_viewport_size(size)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert problems(page) == [], (size, scheme)


def test_feedback_is_learned_and_one_goes_back_in_a_click(page, server):
    entries = [{"text": f"orange juice {i}", "added": ["drink > juice"], "allow_new_labels": True} for i in range(6)]
    server.post(f"{MODEL}/feedback", entries)
    show(page, server)
    expect(page.get_by_test_id("n-feedback")).to_contain_text("6 decisions stored, 6 of them not learned yet")
    page.get_by_test_id("learn").click()
    expect(version(page, 2)).to_contain_text("in use", timeout=PATIENCE)
    expect(version(page, 2)).to_contain_text("6 new")
    expect(page.get_by_test_id("n-feedback")).to_contain_text("all learned")
    expect(page.get_by_test_id("job-result")).to_contain_text("Version 2 was learned.")
    assert best(server, "orange juice") == "drink > juice"
    examine(page)

    way = version(page, 1).get_by_test_id("go-back")
    way.click()
    examine(page)
    page.get_by_test_id("confirm-no").click()
    expect(page.get_by_test_id("confirm")).to_have_count(0)
    expect(version(page, 2)).to_contain_text("in use")
    way.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # the answer that has the focus
    expect(version(page, 3)).to_contain_text("in use", timeout=PATIENCE)
    expect(version(page, 3)).to_contain_text("return to 1")
    expect(page.get_by_test_id("n-feedback")).to_contain_text("6 of them not learned yet")
    assert best(server, "orange juice") != "drink > juice"


def test_a_refused_version_says_why_and_may_be_insisted_on(page, server):
    rows = documents()
    others = rows[len(rows) // 2 :] + rows[: len(rows) // 2]
    wrong = [
        {
            "text": f"{row['text']} again",
            "rejected": row["labels"],
            "added": sorted({*other["labels"]} - {*row["labels"]}),
        }
        for row, other in zip(rows, others, strict=True)
    ]
    for at in range(0, len(wrong), 30):
        server.post(f"{MODEL}/feedback", wrong[at : at + 30])
    page.get_by_test_id("learn").click()
    result = page.get_by_test_id("job-result")
    expect(result).to_contain_text("The new version was refused. nDCG@5 falls from", timeout=PATIENCE)
    expect(page.get_by_test_id("version")).to_have_count(1)
    show(page, server)  # it is still offered
    page.get_by_test_id("insist").wait_for()
    examine(page)
    page.get_by_test_id("insist").click()
    expect(version(page, 2)).to_contain_text("insisted", timeout=PATIENCE)
    assert server.get(MODEL)["n_new_feedback"] == 0


def test_labels_are_edited_by_keyboard_alone(page, server):
    def find(label):
        page.get_by_test_id("label-search").focus()
        page.keyboard.type(label.rsplit(" > ", 1)[-1])
        page.locator(OFFERED).wait_for()
        page.keyboard.press("Enter")
        page.get_by_test_id("label-open").wait_for()
        expect(page.get_by_test_id("label-name")).to_be_focused()

    def saved(number):
        expect(version(page, number)).to_contain_text("in use", timeout=PATIENCE)
        expect(page.get_by_test_id("labels")).to_be_focused()

    find(RYE)
    examine(page)
    page.keyboard.press("End")
    page.keyboard.type(" bread")
    page.keyboard.press("Enter")
    saved(2)
    assert best(server, "rye sourdough") == f"{RYE} bread"

    find(TEA)
    page.get_by_test_id("label-retire").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    saved(3)
    assert best(server, "green tea leaves") != TEA

    find(SALMON)
    page.get_by_test_id("label-merge").focus()
    page.keyboard.type("tuna")
    page.locator(OFFERED).wait_for()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("confirm")).to_contain_text("Merge salmon into tuna?")
    page.keyboard.press("Enter")
    saved(4)
    found = server.post(f"{MODEL}/suggest", {"text": "smoked salmon fillet"})["suggestions"]
    assert SALMON not in {each["label"] for each in found} >= {"food > fish > tuna"}

    page.get_by_test_id("label-add").focus()
    page.keyboard.press("Enter")
    examine(page)
    for text in ("drink > juice", "squash", "Pressed from fruit.", "a glass of orange juice"):
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    saved(5)
    assert best(server, "orange juice") == "drink > juice"
    assert [each["made_by"] for each in server.get(f"{MODEL}/versions")["versions"]] == ["train", *["labels"] * 4]


def test_a_description_is_written_shown_and_removed(page, server):
    def open_rye():
        page.get_by_test_id("label-search").fill("rye")
        page.locator(OFFERED).click()
        page.get_by_test_id("label-open").wait_for()

    text = "Bread of rye, often dark and sour. " * 20
    open_rye()
    page.get_by_test_id("label-description").fill(text)
    page.get_by_test_id("label-save").click()
    expect(version(page, 2)).to_contain_text("in use", timeout=PATIENCE)
    page.get_by_test_id("label-search").fill("rye")
    expect(page.locator(OFFERED)).to_contain_text("often dark and sour")
    examine(page)
    page.locator(OFFERED).click()
    expect(page.get_by_test_id("label-description")).to_have_value(text.strip())
    examine(page)

    page.goto(f"{server.url}/#/")
    page.get_by_test_id("text").fill("rye sourdough crust")
    row = page.locator(f'[data-testid="suggestion"][data-label="{RYE}"]')
    expect(row.locator("[title^='Bread of rye']")).to_be_visible()
    row.get_by_test_id("suggestion-name").click()
    why = page.get_by_test_id("why-description")
    why.get_by_role("button", name="more").click()
    expect(why).to_have_text(text.strip())
    examine(page)

    show(page, server)
    open_rye()
    page.get_by_test_id("label-description").fill("")
    page.get_by_test_id("label-save").click()
    expect(version(page, 3)).to_contain_text("in use", timeout=PATIENCE)
    assert server.get(f"{MODEL}/labels?q=rye")["labels"][0]["description"] is None


def test_an_edit_that_cannot_be_made_says_why_and_keeps_what_was_typed(page, server):
    page.get_by_test_id("label-add").click()
    page.get_by_test_id("label-name").fill(RYE)
    page.get_by_test_id("label-save").click()
    expect(page.get_by_test_id("notice")).to_contain_text("label names must be unique")
    expect(page.get_by_test_id("label-name")).to_have_value(RYE)
    expect(page.get_by_test_id("label-save")).to_be_enabled()


def test_a_server_that_takes_no_changes_only_shows_the_versions(browser, trained, tmp_path):
    with running_servers(tmp_path) as start, browser.new_context() as context:
        server = start(str(trained), "--read-only", "--database", f"sqlite:///{tmp_path / 'feedback.db'}")
        page = context.new_page()
        show(page, server)
        assert page.get_by_test_id("labels").count() == page.get_by_test_id("go-back").count() == 0
        assert not page.get_by_test_id("learn").is_visible()
