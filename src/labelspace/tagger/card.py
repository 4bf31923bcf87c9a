"""The README.md of a model folder: a model card, with the front matter that the Hugging Face Hub reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labelspace.tagger.description import describe, facts

TAGS = ("labelspace", "multi-label-classification", "extreme-multi-label-classification")
MAX_CELL = 300  # characters: names of labels and files are as long as their maker wants
JOINERS = "\u200c\u200d"  # zero-width, but part of the spelling in some scripts
# ASCII characters that are more than themselves in Markdown or HTML, or part of what becomes a link.
_MARKUP = re.compile(r"""[!"#$&'*+<>?@\[\\\]^`{|}~]|:(?! )|(?<![0-9])\.|\.(?![0-9])|(?<![^\W_])_|_(?![^\W_])""")
_TEXTS = 'tagger.tag_batch(["a text to tag"], k=5)'
_FEATURES = "tagger.tag_batch(X, k=5)  # a matrix with the features of the training"


def model_card(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Return the model card of a folder with this manifest: equal folders have equal cards."""
    about = describe(folder, manifest)
    rows = [f"| {escaped(heading)} | {escaped(words)} |" for heading, words in facts(about)]
    return "\n".join(
        [
            *_front_matter(about),
            "# A labelspace model",
            "",
            f"It tags documents with the few right ones of {about['labels']['n']:,} labels.",
            "",
            "```python",
            "import labelspace",
            "",
            'tagger = labelspace.load("FOLDER")  # or labelspace.Tagger.from_pretrained("OWNER/NAME")',
            _TEXTS if about["features"] else _FEATURES,
            "```",
            "",
            "| | |",
            "|---|---|",
            *rows,
            "",
            "Written by labelspace, which writes it anew whenever the model changes.",
            "",
        ]
    )


def _front_matter(about: Mapping[str, Any]) -> list[str]:
    """Return the lines of the YAML at the top; all of its texts are ours or checked, and quoted."""
    optional = {key: about[key].lower() for key in ("license", "language") if about[key] is not None}
    values = {"library_name": "labelspace", "pipeline_tag": "text-classification", **optional}
    listed = [f"- {json.dumps(tag)}" for tag in TAGS]
    return ["---", *(f"{key}: {json.dumps(value)}" for key, value in values.items()), "tags:", *listed, "---", ""]


def escaped(text: str) -> str:
    r"""Return a text on one line in which no character means anything in Markdown or HTML.

    >>> escaped("a|b *c*\n<img>")
    'a&#124;b &#42;c&#42; &#60;img&#62;'
    """
    line = " ".join(text.split())
    line = line if len(line) <= MAX_CELL else line[: MAX_CELL - 1] + "…"
    line = "".join(c if c.isprintable() or c in JOINERS else "\N{REPLACEMENT CHARACTER}" for c in line)
    return _MARKUP.sub(lambda found: f"&#{ord(found[0])};", line)
