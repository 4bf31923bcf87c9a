"""Feedback as documents to learn from: one document of each text, with the labels that all its entries agree on."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from labelspace.data.label_mapping import labels_by_synonym, ones_of_rows
from labelspace.experiment.learning.held_out import LearningDocuments
from labelspace.server.database import Feedback
from labelspace.types import Dataset, LabelSpace

RETIRED = -1  # the id of a label that is not answered any more


class CurrentLabels:
    """Find labels by names that files and feedback may still use, after labels were renamed, merged or retired.

    >>> import numpy as np
    >>> current = np.array([0, -1, 0])
    >>> found = CurrentLabels(LabelSpace(["house cat", "dog", "kitten"], [["cat"], [], []], current=current))
    >>> [found.find(name) for name in ("cat", "kitten", "dog", "cow")]
    [0, 0, -1, None]
    """

    def __init__(self, labels: LabelSpace) -> None:
        self.labels = labels

    def find(self, name: str) -> int | None:
        """Return the id of the label that is answered for a name, ``RETIRED``, or None for a new name."""
        found = self.labels.find(name)
        if found is None:
            found = self._by_synonym.get(name)
        if found is None or self.labels.current is None:
            return found
        return int(self.labels.current[found])

    def ids(self, names: Iterable[str]) -> set[int]:
        """Return the ids of the labels that are answered for some names; unknown and retired ones are left out."""
        return {label for label in map(self.find, names) if label is not None and label != RETIRED}

    @cached_property
    def _by_synonym(self) -> Mapping[str, int]:
        return labels_by_synonym(self.labels)


class Decisions(NamedTuple):
    """What all entries of a text say; later ones override earlier ones."""

    right: list[str]
    wrong: list[str]


def decisions_by_text(entries: Iterable[Feedback], texts: Iterable[str]) -> dict[str, Decisions]:
    """Return the decisions on some texts, in the order of the texts.

    >>> entries = [Feedback(text="a", accepted=["x"]), Feedback(text="a", added=["y"], rejected=["x"])]
    >>> decisions_by_text(entries, ["a"])["a"]
    Decisions(right=['y'], wrong=['x'])
    """
    found: dict[str, dict[str, bool]] = {text: {} for text in texts}
    for entry in entries:
        if entry.text in found:
            found[entry.text] |= dict.fromkeys((*entry.accepted, *entry.added), True)
            found[entry.text] |= dict.fromkeys(entry.rejected, False)
    return {text: _decided(labels) for text, labels in found.items()}


def _decided(labels: Mapping[str, bool]) -> Decisions:
    right = [name for name, is_right in labels.items() if is_right]
    wrong = [name for name, is_right in labels.items() if not is_right]
    return Decisions(right, wrong)


def learning_documents(new: Sequence[Feedback], every: Sequence[Feedback], labels: LabelSpace) -> LearningDocuments:
    """Return a document for each text of new entries; earlier entries on these texts count too.

    Right labels that are not known are new ones. A text without a label that the model has, or is to get, is left out.
    """
    known = CurrentLabels(labels)
    decided = decisions_by_text(every, (entry.text for entry in new))
    names = (name for decisions in decided.values() for name in decisions.right)
    space = labels.extended(name for name in names if known.find(name) is None)
    current = CurrentLabels(space)
    texts: list[str] = []
    right: list[list[int]] = []
    wrong: list[list[int]] = []
    for text, decisions in decided.items():
        accepted, rejected = current.ids(decisions.right), current.ids(decisions.wrong)
        if accepted or rejected:
            texts.append(text)
            right.append(sorted(accepted))
            wrong.append(sorted(rejected - accepted))
    documents = Dataset(ones_of_rows(right, len(space)), space, texts)
    return LearningDocuments(documents, ones_of_rows(wrong, len(space)))
