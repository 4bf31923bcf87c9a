"""Turn the evidence of a model into explanations in the words of a text."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from labelspace.explain.explanation import Explanation, FeatureShare, Neighbor, PathNode, Phrase, WordShare
from labelspace.explain.training_documents import TrainingDocuments
from labelspace.explain.words import ColumnSpans, TextWords
from labelspace.features.views import ViewTransformer, joined_parts
from labelspace.models.evidence import Evidence, Step, Voter
from labelspace.training.losses import sigmoid
from labelspace.types import LabelSpace

MAX_NEIGHBORS = 3  # training documents that an explanation shows: more crowd out the words
SHARED_WORDS = 5  # words that are listed with each of these documents
MIN_SHARE = 1e-12  # of a listed word: smaller shares are rounding errors


@dataclass
class Explainer:
    """Explains labels of one document: a text, or a row of ready-made features."""

    labels: LabelSpace
    calibrated: bool
    features: ViewTransformer | None
    documents: TrainingDocuments | None
    text: str | None

    def __post_init__(self) -> None:
        self.words = TextWords.of(self.text or "")
        self._spans: dict[str, ColumnSpans | None] = {}

    def explanation(self, label: int, evidence: Evidence) -> Explanation:
        """Return the explanation of one label."""
        score = evidence.score
        if score is None:
            score = float(sigmoid(np.array([evidence.log_odds]))[0])
        words = [] if self.text is None else self._words(evidence)
        features = self._features(evidence) if self.text is None else []
        explained = sum(map(itemgetter(-1), words)) + sum(map(itemgetter(-1), features))
        return Explanation(
            label=self.labels.names[label],
            synonym=self._synonym(label),
            score=score,
            probability=score if self.calibrated else None,
            log_odds=evidence.log_odds,
            baseline=evidence.baseline,
            words=words,
            features=features,
            phrases=[Phrase((self.text or "")[each.start : each.stop], *each) for each in evidence.phrases],
            neighbors=[self._neighbor(voter) for voter in _first(evidence.voters)],
            path=list(map(self._node, evidence.path)),
            members=list(evidence.members),
            remainder=evidence.difference - explained,
            n_words=len(self.words.starts),
        )

    def _node(self, step: Step) -> PathNode:
        names = [self.labels.names[label] for label in step.labels]
        return PathNode(names, step.n_labels, float(np.exp(step.log_probability)), step.share)

    def _synonym(self, label: int) -> str | None:
        """Return the first synonym that is not a part of the name; None if there is none."""
        if self.labels.synonyms is None:
            return None
        name = self.labels.names[label].lower()
        return next((other for other in self.labels.synonyms[label] if other.lower() not in name), None)

    def _words(self, evidence: Evidence) -> list[WordShare]:
        found = ((self._find(view), shares) for view, shares in evidence.columns.items())
        shares = self.words.shares(((at, own) for at, own in found if at is not None), evidence.phrases)
        text, listed = self.text or "", np.flatnonzero(np.abs(shares) > MIN_SHARE)
        starts, stops = self.words.starts[listed].tolist(), self.words.stops[listed].tolist()
        words = [text[start:stop] for start, stop in zip(starts, stops, strict=True)]
        return list(map(WordShare, words, starts, stops, shares[listed].tolist()))

    def _find(self, view: str) -> ColumnSpans | None:
        """Return the places of the columns of a view in the text, found once for all labels."""
        if view not in self._spans:
            found = None
            if self.features is not None and view in self.features.made_by_ and self.text is not None:
                found = self.features.features_[self.features.made_by_[view]].occurrences(self.text)
            self._spans[view] = None if found is None else ColumnSpans.of(found)
        return self._spans[view]

    def _features(self, evidence: Evidence) -> list[FeatureShare]:
        totals: dict[int, float] = {}
        for part in evidence.columns.values():
            for column, share in zip(part.columns.tolist(), part.shares.tolist(), strict=True):
                totals[column] = totals.get(column, 0.0) + share
        ranked = sorted(totals.items(), key=lambda entry: -abs(entry[1]))
        return [FeatureShare(column, share) for column, share in ranked if abs(share) > MIN_SHARE]

    def _neighbor(self, voter: Voter) -> Neighbor:
        named, text = (str(voter.row + 1), None) if self.documents is None else self.documents[voter.row]
        return Neighbor(named, voter.similarity, voter.share, self._shared_words(voter), text)

    def _shared_words(self, voter: Voter) -> list[str]:
        """Return the words of the text behind the columns that a voter shares with the text."""
        found = None if len(joined_parts(voter.view)) > 1 else self._find(voter.view)
        if found is None or self.text is None:
            return []
        spans = (found.first(column) for column in voter.shared.tolist())
        words = [word for span in spans if span is not None for word in self.words.touched(*span)]
        names = (self.text[start:stop].lower() for start, stop in words)
        return list(dict.fromkeys(names))[:SHARED_WORDS]


def _first(voters: Sequence[Voter]) -> list[Voter]:
    """Return the voters that count most, each document once."""
    ranked = sorted(voters, key=lambda voter: abs(voter.share))
    by_row = {voter.row: voter for voter in ranked}  # the one that counts most is the last
    return sorted(by_row.values(), key=lambda voter: -abs(voter.share))[:MAX_NEIGHBORS]
