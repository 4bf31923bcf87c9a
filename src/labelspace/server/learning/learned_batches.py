"""Which feedback a model has learned: its lineage says so, and the database follows it.

1. Entries that were not learned are stored as a batch, whose name is a hash of them, before they are learned.
2. The version that learned them has this name in its lineage.
3. Entries of the batches in the lineage are marked as learned.

A process that is killed after step 1 leaves entries that are learned next time. One that is killed after step 2 leaves
entries that the next one marks, before it takes any. After a rollback, what later versions had learned is new again. It
may become part of a further batch, and stays in its first one too, since one can return to the version that learned it.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from labelspace.server.database import Database
from labelspace.server.learning.outcome import FEEDBACK
from labelspace.tagger.lineage import Version
from labelspace.tagger.versions import open_versioned, rollback


class LearnedBatches(NamedTuple):
    """The batches of feedback in a model."""

    names: frozenset[str]
    known: frozenset[str]  # those that any version of the lineage has learned
    is_complete: bool  # whether the lineage reaches back to a training without feedback


def learned_batches(lineage: Sequence[Version]) -> LearnedBatches:
    """Return the batches that the last version of a lineage has learned, itself or before.

    >>> lineage = [Version(1, "train"), Version(2, "learn", data="feedback", sha256="a"),
    ...     Version(3, "learn", data="feedback", sha256="b"), Version(4, "rollback", restored=2)]
    >>> sorted(learned_batches(lineage).names), learned_batches(lineage).is_complete
    (['a'], True)
    """
    known = frozenset(version.sha256 for version in lineage if version.data == FEEDBACK and version.sha256 is not None)
    made_from = list(ancestors(lineage))
    names = frozenset(version.sha256 for version in made_from if version.sha256 in known)
    return LearnedBatches(names, known, bool(made_from) and _is_first(made_from[-1]))


def learned_files(lineage: Sequence[Version]) -> list[Version]:
    """Return the versions that learned documents other than feedback since the last training, the last one first.

    >>> lineage = [Version(1, "train"), Version(2, "learn", data="feedback", sha256="a", n_new_documents=1),
    ...     Version(3, "learn", data="new.jsonl", n_new_documents=5)]
    >>> [version.data for version in learned_files(lineage)]
    ['new.jsonl']
    """
    since = takewhile(lambda version: version.made_by != "train", ancestors(lineage))
    return [version for version in since if version.n_new_documents and version.data != FEEDBACK]


def ancestors(lineage: Sequence[Version]) -> Iterator[Version]:
    """Yield the last version and those that it was made from, back to a training without feedback.

    Versions from which a rollback went back are left out.
    """
    places = {version.number: at for at, version in enumerate(lineage)}
    at = len(lineage) - 1
    while at >= 0:
        version = lineage[at]
        if version.restored is not None:
            before = places.get(version.restored, -1)
            at = before if before < at else -1  # a rollback goes to an earlier version
            continue
        yield version
        if _is_first(version):
            return
        at -= 1


def _is_first(version: Version) -> bool:
    return version.made_by == "train" and (version.data != FEEDBACK or version.sha256 is None)


def settle(database: Database, model: str, lineage: Sequence[Version]) -> None:
    """Mark the feedback that a model has learned; only the process that may change the model does so."""
    learned = learned_batches(lineage)
    database.settle_feedback(model, learned.names, learned.is_complete, learned.known)


def go_back(folder: Path, database: Database, model: str, to: int, n_kept: int) -> Version:
    """Go back to a kept version; what later versions learned from feedback is new again."""
    made = rollback(folder, to, n_kept)
    with open_versioned(folder) as versions:
        settle(database, model, versions.lineage)
    return made
