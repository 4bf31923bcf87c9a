"""Text that is safe to show: names and texts come from files, and a terminal obeys control characters."""

import json
import re
import unicodedata
from math import isfinite
from typing import Any

JOINERS = "\u200c\u200d"  # zero-width, but part of the spelling in some scripts
# Left as they are by json.dumps: DEL, C1, line separators, overrides of the direction, lone surrogates.
UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return a text on one line: control characters and those that change the direction of writing are escaped.

    >>> print(printable("two\nlines, \x1b[31mred"))
    two\nlines, \x1b[31mred
    """
    if text.isprintable():
        return text
    return "".join(c if _is_plain(c) else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, length: int) -> str:
    """Return a text of at most this length; one that is cut ends with an ellipsis.

    >>> shortened("rye bread", 9), shortened("rye bread", 5)
    ('rye bread', 'rye …')
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def json_text(value: object, ensure_ascii: bool = False, **options: Any) -> str:  # noqa: ANN401 - options of json.dumps
    r"""Return JSON on one line that every parser reads: NaN and infinities are null, control characters are escaped.

    >>> print(json_text({"label": "caf\u00e9 \x9b", "score": float("nan")}))
    {"label": "café \u009b", "score": null}
    """
    try:
        text = json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False, **options)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=ensure_ascii, allow_nan=False, **options)
    return UNSAFE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _finite(value: Any) -> Any:  # noqa: ANN401 - any plain value
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _is_plain(char: str) -> bool:
    return char.isprintable() or char in JOINERS or unicodedata.category(char) == "Zs"
