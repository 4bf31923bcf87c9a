"""The versions of a model as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from labelspace.report.tables import filled_table

if TYPE_CHECKING:
    from rich.console import Group

    from labelspace.tagger.lineage import Figure, Version
    from labelspace.tagger.versions import ListedVersion

HEADINGS = ["version", "when (UTC)", "made by", "documents", "new", "labels", "new labels", "nDCG@5", ""]


def versions_table(title: str, versions: Sequence[ListedVersion]) -> Group:
    """Return a table with a line per version, oldest first."""
    return filled_table(title, HEADINGS, map(_row, versions), left=3)


def _row(listed: ListedVersion) -> list[str]:
    version = listed.version
    held_out = version.held_out
    state = "" if listed.is_kept else "dropped"
    return [
        str(version.number),
        "" if version.time is None else version.time.replace("T", " ").removesuffix("Z"),
        shown_origin(version),
        f"{version.n_documents:,}",
        f"{version.n_new_documents:,}" if version.made_by == "learn" else "",
        f"{version.n_labels:,}",
        f"{version.n_new_labels:,}" if version.n_new_labels else "",
        "" if held_out is None else shown_figure(held_out.new),
        "current" if listed.is_current else state,
    ]


def shown_origin(version: Version) -> str:
    """Return how a version was made, in a few words."""
    if version.restored is not None:
        return f"rollback to {version.restored}"
    source = "" if version.data is None else f" {version.data}"
    return f"{version.made_by}{source}{' --force' if version.forced else ''}"


def shown_figure(figure: Figure) -> str:
    """Return a figure with its interval.

    >>> from labelspace.tagger.lineage import Figure
    >>> shown_figure(Figure(61.25, 58.1, 64.02))
    '61.25 (58.1 to 64.0)'
    """
    return f"{figure.value:.2f} ({figure.low:.1f} to {figure.high:.1f})"


def versions_json(versions: Sequence[ListedVersion]) -> list[dict[str, Any]]:
    """Return the versions as plain values."""
    rows = []
    for listed in versions:
        shown = listed.version.to_json()
        shown = {"version": shown.pop("number"), **shown}
        rows.append({**shown, "is_current": listed.is_current, "is_kept": listed.is_kept})
    return rows
