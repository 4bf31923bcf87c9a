"""Ask for the scores of shortlists, several documents at a time, and combine them with our probabilities."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from labelspace.data.answer_files import LabelDisplay
from labelspace.data.records import Record
from labelspace.errors import ParameterError
from labelspace.tagger.answers import DocumentAnswer
from labelspace.tagger.reranking.endpoint import AnswerError, ChatEndpoint
from labelspace.tagger.reranking.prompt import MAX_SCORE, candidate_line, messages, read_scores
from labelspace.tagger.tagger import Tagger
from labelspace.types import Doubles, TopK

MAX_FAILURES = 10  # in a row, after which the endpoint is not asked again
AT_ONCE = 64  # documents of a stream that are in memory


class RerankSettings(NamedTuple):
    """How a shortlist is reranked."""

    n_candidates: int = 50  # labels per document that are scored
    weight: float = 0.5  # of the endpoint's scores: 0 leaves them out, 1 leaves ours out
    timeout: float = 30.0  # seconds for a document
    total_timeout: float = 600.0  # seconds for all documents
    n_parallel: int = 4  # requests at a time


@dataclass
class Tally:
    """What was asked, what it cost, and why documents kept our order."""

    documents: int = 0
    reranked: int = 0
    requests: int = 0
    characters: int = 0  # of the messages that were sent
    prompt_tokens: int = 0  # as the endpoint reports
    completion_tokens: int = 0
    fell_back: Counter[str] = field(default_factory=Counter)  # documents by reason

    def to_json(self) -> dict[str, Any]:
        """Return the counts as plain values."""
        return {**vars(self), "fell_back": dict(self.fell_back)}


class Reranker:
    """Orders the labels of an answer by the geometric mean of our probability and the score of an endpoint.

    Where there is no valid answer in time, a document keeps our order and our scores. Methods without probabilities
    count by their order, as 1, 1/2, 1/3 and so on.
    """

    def __init__(
        self, endpoint: ChatEndpoint, tagger: Tagger, settings: RerankSettings, language: str | None = None
    ) -> None:
        if tagger.ready_made:
            rule = "a rerank endpoint reads texts, but the model was trained on ready-made features"
            raise ParameterError(f"{rule}; train one on texts")
        self.endpoint, self.settings = endpoint, settings
        self.tally = Tally()
        self._gives_probabilities = tagger.gives_probabilities
        self._labels = tagger.labels_
        self._display = LabelDisplay(tagger.labels_, language)
        self._lock = Lock()  # of the tally, and of what follows
        self._failures = 0  # in a row
        self._deadline: float | None = None  # of all documents, from the first request on

    def rerank(self, texts: Sequence[str], answers: Sequence[DocumentAnswer], k: int) -> list[DocumentAnswer]:
        """Return the k best labels of each document, in the new order, with combined scores."""
        with ThreadPoolExecutor(self.settings.n_parallel) as threads:
            return [answer.first(k) for answer in threads.map(self._reranked, texts, answers)]

    def stream(
        self, documents: Iterable[tuple[Record, DocumentAnswer]], k: int
    ) -> Iterator[tuple[Record, DocumentAnswer]]:
        """Yield documents with the k best labels of each, in the new order."""
        rest = iter(documents)
        while batch := list(islice(rest, AT_ONCE)):
            records = [record for record, _ in batch]
            texts = [record.text or "" for record in records]
            yield from zip(records, self.rerank(texts, [answer for _, answer in batch], k), strict=True)

    def topk(self, texts: Sequence[str], top: TopK, k: int) -> TopK:
        """Return the k best labels of each document, in the new order, given those of the model."""
        rows = zip(top.labels, top.scores, strict=True)
        answers = [
            DocumentAnswer(labels[labels >= 0].tolist(), scores[labels >= 0].tolist(), [], is_read=True)
            for labels, scores in rows
        ]
        found = TopK.empty(len(top), k)
        for row, answer in enumerate(self.rerank(texts, answers, k)):
            found.labels[row, : len(answer.labels)] = answer.labels
            found.scores[row, : len(answer.labels)] = answer.scores
        return found

    def _reranked(self, text: str, answer: DocumentAnswer) -> DocumentAnswer:
        with self._lock:
            self.tally.documents += 1
        own = np.asarray(answer.scores, np.float64)
        answer = answer._replace(probabilities=answer.scores if self._gives_probabilities else None, is_reranked=False)
        if len(own) < 2 or not text.strip():
            return answer
        try:
            scores = self._ask(text, answer.labels)
        except AnswerError as error:
            self._count_failure(str(error))
            return answer
        own = np.clip(own, 0.0, 1.0) if self._gives_probabilities else 1.0 / np.arange(1, len(own) + 1)
        combined = combine(own, scores, self.settings.weight)
        order = np.argsort(-combined, kind="stable").tolist()
        return answer._replace(
            labels=[answer.labels[at] for at in order],
            scores=combined[order].tolist(),
            probabilities=own[order].tolist() if self._gives_probabilities else None,
            is_reranked=True,
        )

    def _ask(self, text: str, labels: Sequence[int]) -> Doubles:
        """Return the endpoint's scores of labels, from 0 to 1; raise AnswerError if it gives none."""
        asked = messages(text, [candidate_line(label, self._labels, self._display) for label in labels])
        seconds = self._begin(sum(len(message["content"]) for message in asked))
        completion = self.endpoint.ask(asked, seconds)
        with self._lock:
            self.tally.prompt_tokens += completion.prompt_tokens
            self.tally.completion_tokens += completion.completion_tokens
        scores = read_scores(completion.content, len(labels))
        with self._lock:
            self.tally.reranked += 1
            self._failures = 0
        return scores

    def _begin(self, n_characters: int) -> float:
        """Count a request, and return the seconds that it has; raise AnswerError if it is not to be made."""
        with self._lock:
            now = time.monotonic()
            if self._deadline is None:
                self._deadline = now + self.settings.total_timeout
            if self._failures >= MAX_FAILURES:
                raise AnswerError(f"not asked after {MAX_FAILURES} failures in a row")
            if now >= self._deadline:
                raise AnswerError("not asked after the time for all documents")
            self.tally.requests += 1
            self.tally.characters += n_characters
            return min(self.settings.timeout, self._deadline - now)

    def _count_failure(self, reason: str) -> None:
        with self._lock:
            self.tally.fell_back[reason] += 1
            self._failures += 1


def combine(own: Doubles, scores: Doubles, weight: float) -> Doubles:
    """Return the weighted geometric mean of our probabilities and the endpoint's scores, all from 0 to 1.

    A score ``s`` of 0 to 100 counts as ``(s + 1) / 101``: labels that the endpoint rejects keep their order.

    >>> combine(np.array([0.81, 0.25]), np.array([0.0, 1.0]), 0.5).round(3).tolist()
    [0.09, 0.5]
    """
    shifted = (MAX_SCORE * scores + 1) / (MAX_SCORE + 1)
    mean: Doubles = own ** (1 - weight) * shifted**weight
    return mean
