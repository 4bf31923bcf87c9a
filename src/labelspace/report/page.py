"""Parts of all HTML pages of reports, which work offline: style, page, table."""

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """Return the text of a style sheet, script or page of this folder."""
    return files("labelspace.report").joinpath(name).read_text(encoding="utf-8")


def html_page(title: str, parts: Sequence[str], style: str = "", script: str = "") -> str:
    """Return a page with a title and these parts, which are HTML; ``style`` is added to that of all pages.

    On a page with a ``script`` no other one runs, whatever the parts hold, and nothing is loaded.
    """
    policy, added = (_policy(script), f"<script>{script}</script>") if script else ("", "")
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'>{policy}"
        f"<style>{asset('page.css')}{style}</style></head><body>{''.join(parts)}{added}</body></html>\n"
    )


def _policy(script: str) -> str:
    digest = b64encode(sha256(script.encode()).digest()).decode()
    allowed = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return f'<meta http-equiv="Content-Security-Policy" content="{allowed}">'


def paragraph(text: str) -> str:
    """Return a paragraph with this text."""
    return f"<p>{escape(text)}</p>"


def html_figure(heading: str, *parts: str) -> str:
    """Return a heading with parts of a page below it, such as a paragraph and a plot."""
    return f"<figure><h3>{escape(heading)}</h3>{''.join(parts)}</figure>"


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]], titles: Sequence[str] | None = None) -> str:
    """Return a table of texts, which scrolls on a narrow page; ``titles`` are shown under the pointer, one a row.

    >>> html_table(["", "P@1"], [["a & b", "50.00"]])
    "<div class='wide'><table><tr><th></th><th>P@1</th></tr><tr><td>a &amp; b</td><td>50.00</td></tr></table></div>"
    """
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = ""
    for at, row in enumerate(rows):
        title = "" if titles is None else f" title='{escape(titles[at])}'"
        body += f"<tr{title}>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
    return f"<div class='wide'><table><tr>{head}</tr>{body}</table></div>"
