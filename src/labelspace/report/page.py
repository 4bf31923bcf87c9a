"""Parts of all HTML pages of reports, which work offline: style, page, table."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1b1c1f; --soft: #5b5e65; --line: #e3e3dd; --ground: #ffffff; --edge: #8b8c86;
  --mark: #3a4fc4; --against: #ad2a2a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e8ea; --soft: #a3a8b1; --line: #2e3239; --ground: #16181c;
  --edge: #777d88; --mark: #9aacff; --against: #ff9c9c; } }
* { box-sizing: border-box; } [hidden] { display: none !important; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); margin: 2rem auto;
  max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; } p { color: var(--soft); }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } td.best { font-weight: 700; } td i { visibility: hidden; }
.charts { display: grid; gap: 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); }
svg { max-width: 100%; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .soft { fill: var(--soft); } svg line { stroke: var(--line); }
figure { margin: 0; flex: 1 1 20rem; max-width: 30rem; } h3 { font-size: 1rem; margin: .5rem 0; } svg { height: auto; }
svg .middle { text-anchor: middle; } svg .end { text-anchor: end; } svg .small { font-size: 10px; }
svg .bar, svg .count { fill: var(--mark); opacity: .25; } svg .point { fill: var(--mark); }
svg .curve { fill: none; stroke: var(--mark); stroke-width: 2; } svg .range { stroke: var(--mark); stroke-width: 1.5; }
svg .halo { paint-order: stroke; stroke: var(--ground); stroke-width: 4px; }
svg .dashed { stroke: var(--soft); stroke-dasharray: 4 4; }
"""


def html_page(title: str, parts: Sequence[str], style: str = "", script: str = "") -> str:
    """A page with a title and these parts, which are HTML; ``style`` is added to that of all pages.

    On a page with a ``script`` no other one runs, whatever the parts hold, and nothing is loaded.
    """
    policy, added = (_policy(script), f"<script>{script}</script>") if script else ("", "")
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'>{policy}"
        f"<style>{STYLE}{style}</style></head><body>{''.join(parts)}{added}</body></html>\n"
    )


def _policy(script: str) -> str:
    digest = b64encode(sha256(script.encode()).digest()).decode()
    allowed = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return f'<meta http-equiv="Content-Security-Policy" content="{allowed}">'


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts; it scrolls where the page is narrow.

    >>> html_table(["", "P@1"], [["a & b", "50.00"]])
    "<div class='wide'><table><tr><th></th><th>P@1</th></tr><tr><td>a &amp; b</td><td>50.00</td></tr></table></div>"
    """
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class='wide'><table><tr>{head}</tr>{body}</table></div>"
