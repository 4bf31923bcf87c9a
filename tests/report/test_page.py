import re
from base64 import b64encode
from hashlib import sha256

from labelspace.report.page import html_page
from tests.checks import outline


def test_a_page_loads_nothing_and_runs_its_own_script_only():
    page = html_page("a & <b>", ["<p>text</p>"], "p { color: red }", "let x = 1 < 2;")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    digest = b64encode(sha256(b"let x = 1 < 2;").digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert "<title>a &amp; &lt;b&gt;</title>" in page
    assert outline(page)["script"] == 1
    plain = html_page("t", ["<p>text</p>"])
    assert "http" not in plain
    assert "script" not in outline(plain)
