"""The options of tagging, each declared once: which labels an answer may have, next to their number k.

Python callers give them as keywords, ``labelspace predict`` has a flag and the service a field of a request for each.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypedDict

from labelspace.options import Option

Given = str | Path | Sequence[str | Path] | None
"""One label or several, by name or id; a ``Path`` is a file with one of these per line."""
_ITEMS = ": a name, an id, or a file with one of these per line. Repeatable."
_BRANCHES = ": a name or the end of a path, such as 'food > bread'. Repeatable."
_UNDER = "Allow also the branches of these labels in the hierarchy"
_MIN_PROBABILITY = "Leave out labels that are right with a lower probability."
_PRECISION = "Keep labels of which at least this share is right, by thresholds learned on held-out documents."


class SelectOptions(TypedDict, total=False):
    """Which labels are allowed: see ``labels/selection.py``."""

    include: Annotated[Given, Option("Allow only these labels", "LABEL", _ITEMS, repeats=True)]
    exclude: Annotated[Given, Option("Never answer these labels", "LABEL", ", given as for --include.", repeats=True)]
    under: Annotated[Given, Option(_UNDER, "LABEL", _BRANCHES, repeats=True)]


class TagOptions(SelectOptions, total=False):
    """Which labels an answer has; every method of a tagger that tags takes these options."""

    min_probability: Annotated[float | None, Option(_MIN_PROBABILITY, "P", bounds={"ge": 0, "le": 1})]
    precision: Annotated[float | None, Option(_PRECISION, "P", bounds={"gt": 0, "lt": 1})]
    consistent: Annotated[bool, Option("Include the ancestors of every label in the hierarchy, ranked above it.")]
