"""An explanation for users: why a text has a label, in the words of the text."""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from labelspace.models.evidence import MemberShare

MARKED_SHARE = 1 / 8  # of the words, at most: people mark about that many when they give reasons
MIN_MARKED = 0.05  # of the largest share: less is not worth a mark
MIN_LISTED = 0.02  # of the largest share, for a list of words
DIGITS = 6  # of numbers as plain values


class WordShare(NamedTuple):
    """A word of the text, characters ``start`` to ``end``, and its share; below 0 it speaks against the label."""

    text: str
    start: int
    end: int
    share: float


class Phrase(NamedTuple):
    """Words of the text that name the label: by its ``name``, a ``synonym``, or a ``part`` of one."""

    text: str
    start: int
    end: int
    kind: str
    share: float


class Neighbor(NamedTuple):
    """A training document that voted for the label."""

    id: str
    similarity: float
    share: float
    words: list[str]  # that it shares with the text, most important first
    text: str | None  # None if the model keeps no texts


class PathNode(NamedTuple):
    """A step down a tree of labels, to a node with these labels."""

    labels: list[str]  # some of them
    n_labels: int
    probability: float
    share: float

    @property
    def name(self) -> str:
        """Return some of the labels, and the number of the others.

        >>> PathNode(["rye", "oat"], 30, 0.9, 1.0).name
        'rye, oat and 28 more'
        """
        more = self.n_labels - len(self.labels)
        return ", ".join(self.labels) + (f" and {more:,} more" if more else "")


class FeatureShare(NamedTuple):
    """A column of ready-made features, and its share."""

    column: int
    share: float


class ValueShare(NamedTuple):
    """A value that stands beside the text, such as ``brand = Amul``, and its share."""

    name: str
    share: float


@dataclass(frozen=True)
class Explanation:
    """Why a text has a label.

    Shares are in units of log-odds. The shares of all words and values (or of all features, if there are no texts) and
    the ``remainder`` add up to ``log_odds - baseline``; so do the shares of the members of an ensemble. ``baseline`` is
    the log-odds of the label for an empty document, or by the frequency of the label.
    """

    label: str
    synonym: str | None  # the first one, if any: what a code means
    description: str | None
    score: float
    probability: float | None  # None if the method is not calibrated
    log_odds: float
    baseline: float
    words: list[WordShare]  # in the order of the text; all of them that have a share
    features: list[FeatureShare]  # of ready-made features, largest first
    values: list[ValueShare]  # beside the text
    phrases: list[Phrase]
    neighbors: list[Neighbor]
    path: list[PathNode]
    members: list[MemberShare]
    remainder: float
    n_words: int  # of the text

    @property
    def total(self) -> float:
        """The sum of all shares."""
        return self.log_odds - self.baseline

    @property
    def summary(self) -> str:
        """The probability, or the score, and the log-odds with their baseline."""
        kind = "probability" if self.probability is not None else "score"
        return f"{kind} {self.score:.3f}: log-odds {self.log_odds:+.2f}, baseline {self.baseline:+.2f}"

    @property
    def named_by(self) -> list[tuple[str, str]]:
        """The different phrases that name the label, in lower case, each with its kind."""
        return list(dict.fromkeys((phrase.text.lower(), phrase.kind) for phrase in self.phrases))

    @property
    def ranked_members(self) -> list[MemberShare]:
        """The members by falling share."""
        return sorted(self.members, key=lambda member: -abs(member.share))

    def marked(self) -> list[WordShare]:
        """Return the words to show, in the order of the text: the largest shares, at most an eighth of all words."""
        n = max(1, int(MARKED_SHARE * self.n_words))
        largest = sorted(self.words, key=lambda word: -abs(word.share))[:n]
        shown = [word for word in largest if abs(word.share) >= MIN_MARKED * abs(largest[0].share)]
        return sorted(shown, key=lambda word: word.start)

    def for_and_against(self, n: int = 5) -> tuple[list[WordShare], list[WordShare]]:
        """Return the n words that speak most for the label, and the n most against it; equal words are merged."""
        merged: dict[str, WordShare] = {}
        for word in self.words:
            key = word.text.lower()
            known = merged.get(key)
            merged[key] = word if known is None else known._replace(share=known.share + word.share)
        least = MIN_LISTED * max((abs(word.share) for word in merged.values()), default=0.0)
        ranked = sorted(merged.values(), key=lambda word: -word.share)
        speak_for = [word for word in ranked[:n] if word.share > least]
        return speak_for, [word for word in ranked[::-1][:n] if word.share < -least]

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain values, for JSON."""
        values = asdict(self)
        for name in ("words", "features", "values", "phrases", "neighbors", "path", "members"):
            values[name] = [_rounded(entry._asdict()) for entry in getattr(self, name)]
        speak_for, against = self.for_and_against()
        values["for"] = [word.text for word in speak_for]
        values["against"] = [word.text for word in against]
        return _rounded(values)


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    return {key: round(value, DIGITS) if isinstance(value, float) else value for key, value in values.items()}
