"""The options and the outcome of learning from feedback, for models that go on learning and for new ones."""

from dataclasses import dataclass
from typing import Any

from labelspace.store.versions import KEPT
from labelspace.tagger.lineage import Version

FEEDBACK = "feedback"  # the data of a version that learned feedback; its hash is the name of the batch


@dataclass(frozen=True)
class LearnOptions:
    """What a request to learn may say, and what the server was started with."""

    full: bool = False  # train again on the data and all feedback
    force: bool = False  # use the new version even if it is worse
    n_kept: int = KEPT  # older versions


def refused(reason: str) -> dict[str, Any]:
    """Return the part of a result that says why a new version is not used."""
    return {"swapped": False, "refused": True, "reason": f"{reason}; the current model is kept", "version": None}


def swapped(reason: str, version: Version) -> dict[str, Any]:
    """Return the part of a result that describes the new version."""
    return {
        "swapped": True,
        "refused": False,
        "reason": reason,
        "version": version.number,
        "n_new_labels": version.n_new_labels,
        "new_labels": list(version.new_labels),
        "left_out": list(version.left_out),
        "forced": version.forced,
    }
