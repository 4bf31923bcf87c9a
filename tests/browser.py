"""A browser for the tests of pages: Debian's Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The shell draws no window around a page, which takes half of the time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
SERIOUS = {"serious", "critical"}
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium was found; install it, or name it in CHROMIUM"
)


@contextmanager
def launched() -> Iterator["Browser"]:
    """A browser that runs."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def problems(page) -> list[str]:
    """What axe finds on a page that a screen reader would miss; the context of the page must bypass its policy."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [each["id"] for each in found if each["impact"] in SERIOUS]
