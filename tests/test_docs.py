"""Docs that are made from the code agree with it."""

import re
from pathlib import Path

import pytest

from docs.update_tables import with_tables
from labelspace.models.registry import METHODS, method

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md")) + [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
]


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_page_with_its_parameters(name):
    page = (ROOT / "docs" / "methods" / f"{name}.md").read_text(encoding="utf-8")
    if method(name).params:
        assert f"<!-- parameters: {name} -->" in page
    assert with_tables(page) == page, "run: make docs"


def test_parameters_that_methods_share_are_explained_once():
    page = (ROOT / "docs" / "methods" / "README.md").read_text(encoding="utf-8")
    assert "| `random_state` | Seed of everything drawn at random. |" in page
    assert with_tables(page) == page, "run: make docs"


def test_the_list_of_published_tables_is_that_of_the_code():
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert "<!-- published tables -->" in page
    assert with_tables(page) == page, "run: make docs"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_and_files_that_pages_name_exist(path):
    page = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"
    for module in re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)`", page):
        assert any((root / module).exists() for root in (ROOT, ROOT / "src" / "labelspace")), module
