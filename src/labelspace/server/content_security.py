"""Content security policies: what pages may load and run."""

import base64
import hashlib
import re

PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
INLINE = re.compile(r"<(script|style)([^>]*)>(.*?)</\1>", re.DOTALL)


def hashed_policy(page: str) -> str:
    """The policy of a page of ours with its scripts and styles inside: these alone, by their hashes.

    >>> hashed_policy("<style>p{}</style><script>go()</script>").count("sha256-")
    2
    """
    hashes: dict[str, list[str]] = {"script": [], "style": []}
    for kind, _, content in INLINE.findall(page):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        hashes[kind].append(f"'sha256-{digest}'")
    listed = "; ".join(f"{kind}-src {' '.join(found) or repr('none')}" for kind, found in hashes.items())
    return f"default-src 'none'; {listed}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
