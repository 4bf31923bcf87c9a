"""The page in a browser: Debian's Chromium, driven by Playwright, against a server that runs."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import needs_chromium, problems
from tests.server.conftest import RunningServer, running_servers, wait_until

sync_api = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
expect = sync_api.expect
pytestmark = [pytest.mark.slow, needs_chromium]
TEXT = "a loaf of rye sourdough with smoked salmon"
INBOX = ("rye loaf", "tuna steak or coffee beans", "green tea cup")
MAX_FIRST_PAINT = 200_000  # bytes
DESKTOP = {"width": 1280, "height": 800}


@pytest.fixture(scope="module")
def server(
    trained: Path, odd: Path, data_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    """A server of both models, with three documents to review."""
    folder = tmp_path_factory.mktemp("page")
    inbox = folder / "inbox.jsonl"
    inbox.write_text("".join(json.dumps({"id": str(at), "text": text}) + "\n" for at, text in enumerate(INBOX)))
    with running_servers(folder) as start:
        database = f"sqlite:///{folder / 'feedback.db'}"
        yield start(str(trained), str(odd), "--database", database, "--inbox", str(inbox), "--data", str(data_folder))


@pytest.fixture(scope="module")
def tab(browser: sync_api.Browser) -> Iterator[sync_api.Page]:
    """A page for all tests."""
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(30_000)
        yield page


@pytest.fixture
def page(tab: sync_api.Page, server: RunningServer) -> Iterator[sync_api.Page]:
    """The start of the page, as if opened for the first time; a script error, or a violated policy, fails the test."""
    faults: list[str] = []

    def on_error(error):
        faults.append(str(error))

    def on_console(message):
        if "Content Security" in message.text:
            faults.append(message.text)

    tab.on("pageerror", on_error)
    tab.on("console", on_console)
    tab.set_viewport_size(DESKTOP)
    tab.goto(server.url)
    yield tab
    tab.unroute_all()
    tab.evaluate("localStorage.clear()")
    tab.goto("about:blank")
    tab.remove_listener("pageerror", on_error)
    tab.remove_listener("console", on_console)
    assert not faults


def paste(page, text=TEXT):
    page.get_by_test_id("text").fill(text)
    page.get_by_test_id("suggestion").first.wait_for()


def suggestion(page, label):
    return page.locator(f'[data-testid="suggestion"][data-label="{label}"]')


def stored(server, model="foods"):
    return server.get(f"/v1/models/{model}/feedback")["feedback"]


def test_paste_accept_reject_search_and_save(page, server):
    paste(page)
    rye, salmon = suggestion(page, "food > bread > rye"), suggestion(page, "food > fish > salmon")
    assert "bread" in rye.inner_text()  # its place in the hierarchy
    rye.get_by_test_id("accept").click()
    salmon.get_by_test_id("reject").click()
    assert (rye.get_attribute("data-state"), salmon.get_attribute("data-state")) == ("accepted", "rejected")
    assert salmon.is_visible()
    search = page.get_by_test_id("search")
    search.fill("cofee")  # one typo
    expect(page.get_by_test_id("search-option").first).to_contain_text("coffee")
    search.press("Enter")
    expect(page.get_by_test_id("chip")).to_have_count(2)
    before = len(stored(server))
    page.get_by_test_id("save").click()
    expect(page.get_by_test_id("saved")).to_contain_text("Saved")
    entry = stored(server)[-1]
    assert len(stored(server)) == before + 1
    assert {*entry["accepted"], *entry["added"]} == {"food > bread > rye", "drink > coffee"}
    assert entry["rejected"] == ["food > fish > salmon"]
    page.get_by_test_id("undo").click()
    expect(page.get_by_test_id("undo")).to_be_hidden()
    assert len(stored(server)) == before


def test_words_that_speak_for_a_suggestion_are_marked(page):
    paste(page)
    suggestion(page, "food > bread > rye").hover()
    page.get_by_test_id("why").get_by_text("sourdough").first.wait_for()
    assert "rye" in page.get_by_test_id("legend").inner_text()
    assert "sourdough" in page.locator(".text-marks mark.for").all_inner_texts()


def test_the_slider_says_what_to_expect(page):
    def with_thresholds(route):  # the few documents of the tests show no precision
        answer = route.fetch()
        body = answer.json()
        rows = [
            {"precision": p / 100, "threshold": p / 200, "coverage": 1 - p / 200, "shown": True} for p in range(50, 91)
        ]
        for model in body.get("models", [body]):
            model["precision"] = rows
        route.fulfill(response=answer, json=body)

    page.route("**/v1/models", with_thresholds)
    page.route("**/v1/models/foods", with_thresholds)
    page.reload()
    paste(page)
    slider = page.get_by_test_id("sure")
    slider.focus()
    slider.press("End")
    expect(page.get_by_test_id("sure-meaning")).to_contain_text("About 90 % of the shown labels are right")
    slider.press("Home")
    expect(page.get_by_test_id("sure-value")).to_have_text("everything")


def test_branches_limit_the_suggestions(page):
    paste(page)
    page.get_by_test_id("filter").click()
    drink = page.get_by_test_id("tree-item").filter(has_text="drink").first
    drink.wait_for()
    drink.get_by_test_id("tree-only").first.click()
    page.get_by_test_id("filter-chip").first.wait_for()
    expect(suggestion(page, "food > bread > rye")).to_have_count(0)
    rows = page.get_by_test_id("suggestion").all()
    assert rows
    assert all(row.get_attribute("data-label").startswith("drink") for row in rows)
    page.get_by_test_id("clear-filters").first.click()
    suggestion(page, "food > bread > rye").wait_for()


def test_by_keyboard_alone(page):
    page.get_by_test_id("text").wait_for()
    for _ in range(20):
        if page.evaluate("document.activeElement.dataset.testid") == "text":
            break
        page.keyboard.press("Tab")
    page.keyboard.insert_text(TEXT)
    page.get_by_test_id("suggestion").first.wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.wait_for_selector('[data-testid="suggestion"][data-state="accepted"]')
    page.keyboard.press("j")
    page.keyboard.press("r")
    page.wait_for_selector('[data-testid="suggestion"][data-state="rejected"]')
    page.keyboard.press("/")
    page.keyboard.type("tuna")
    expect(page.get_by_test_id("search-option").first).to_contain_text("tuna")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("chip")).to_have_count(2)
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.get_by_test_id("keys-dialog").is_visible()


def test_review_walks_the_inbox_and_undoes(page, server):
    page.get_by_test_id("view-review").click()
    page.get_by_test_id("suggestion").first.wait_for()
    text = page.get_by_test_id("text")
    shown = text.input_value()
    assert shown in INBOX
    page.get_by_test_id("accept").first.click()
    page.get_by_test_id("save-next").click()
    expect(text).not_to_have_value(shown)
    assert stored(server)[-1]["text"] == shown
    assert server.get("/v1/models/foods/review")["progress"]["done"] == 1
    page.get_by_test_id("review-undo").click()
    expect(text).to_have_value(shown)
    assert server.get("/v1/models/foods/review")["progress"]["done"] == 0
    page.get_by_test_id("skip").click()
    expect(text).not_to_have_value(shown)
    assert server.get("/v1/models/foods/review")["progress"]["skipped"] == 1


def test_a_csv_file_is_tagged(page, tmp_path):
    file = tmp_path / "texts.csv"
    with file.open("w", newline="") as output:
        rows = csv.writer(output)
        rows.writerow(["number", "title"])
        rows.writerows([at, f'rye loaf, "{at}"\nsecond line'] for at in range(70))
    page.get_by_test_id("view-batch").click()
    page.get_by_test_id("file").set_input_files(file)
    page.get_by_test_id("batch-start").click()
    expect(page.get_by_test_id("batch-status")).to_contain_text("70")
    download = page.get_by_test_id("batch-jsonl")
    download.wait_for()
    with page.expect_download() as started:
        download.click()
    lines = [json.loads(line) for line in Path(started.value.path()).read_text().splitlines()]
    assert len(lines) == 70


def test_the_model_view_has_figures_and_diagrams(page, server):
    wait_until(lambda: server.get("/v1/models/foods/figures")["state"] == "ready")
    page.get_by_test_id("view-model").click()
    page.get_by_test_id("figures").wait_for()
    expect(page.get_by_test_id("facts")).to_contain_text("label_tree (words)")
    page.locator("svg [class=point], svg .point").first.wait_for()
    assert page.get_by_test_id("by-frequency").is_visible()


def test_hostile_names_and_texts_are_data(page):
    page.get_by_test_id("model-menu").select_option("odd")
    paste(page, '<img src=x onerror="window.hit=1"><script>window.hit=1</script> one two three')
    for row in page.get_by_test_id("suggestion").all():
        row.hover()
    expect(page.get_by_test_id("why-description")).to_contain_text("<img src=x onerror")
    page.get_by_test_id("search").fill("<")
    expect(page.get_by_test_id("search-option").first).to_contain_text("<img src=x onerror")
    expect(page.get_by_test_id("search-option").first).to_contain_text("<script>")
    assert page.evaluate("window.hit") is None
    assert page.locator("main img, main script").count() == 0


@pytest.fixture(scope="module")
def examined(browser: sync_api.Browser) -> Iterator[sync_api.Page]:
    """A page that axe may examine; colors change at once, else axe may see one between light and dark."""
    with browser.new_context(bypass_csp=True, viewport=DESKTOP, reduced_motion="reduce") as context:
        yield context.new_page()


@pytest.mark.parametrize("view", ["", "review", "batch", "model"])
def test_nothing_serious_for_screen_readers(examined, server, view):
    examined.goto("about:blank")  # else only the part after # would change
    examined.goto(f"{server.url}/#/{view}")
    examined.get_by_test_id("view-tag").wait_for()
    if not view:
        paste(examined)
    examined.wait_for_load_state("networkidle")
    for scheme in ("light", "dark"):
        examined.emulate_media(color_scheme=scheme)
        assert problems(examined) == [], scheme


def test_dark_mode_is_chosen_and_kept(page):
    def ground():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = ground()
    page.get_by_test_id("theme").click()
    dark = ground()
    page.reload()
    page.get_by_test_id("text").wait_for()
    assert light != dark == ground()


@pytest.mark.parametrize("view", ["", "review", "batch", "model"])
def test_no_view_is_wider_than_the_window(page, server, view):
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto(f"{server.url}/#/{view}")
    page.get_by_test_id("view-tag").wait_for()
    page.wait_for_load_state("networkidle")
    for width in (360, 768, 1920):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_first_paint_is_small_and_loads_nothing_from_elsewhere(browser, server):
    context = browser.new_context()
    page = context.new_page()
    sizes: list[int] = []
    addresses: list[str] = []
    page.on("response", lambda answer: addresses.append(answer.url))
    page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
    page.goto(server.url)
    page.get_by_test_id("text").wait_for()
    page.wait_for_load_state("networkidle")
    context.close()
    assert 0 < sum(sizes) < MAX_FIRST_PAINT
    assert all(address.startswith((server.url, "data:")) for address in addresses)


def test_the_api_page_lists_the_operations_and_tries_one(page, server):
    page.goto(f"{server.url}/docs")
    page.get_by_test_id("operation").first.wait_for()
    assert page.get_by_test_id("operation").count() > 20
