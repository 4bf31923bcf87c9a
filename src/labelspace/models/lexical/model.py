"""Lexical: label names and synonyms found in the text.

1. Every name, every synonym, and their parts (without brackets, between commas, without a leading code) are phrases of
   stems: lower case, punctuation and hyphens as spaces, endings cut as the language of the texts has it. All go into
   one trie.
2. One pass over a document finds all its phrases. Phrases of which only some words occur are found by the rarer of
   their words. The cost does not depend on the number of labels.
3. A match is graded: name, synonym or part; number of words; free or inside a longer phrase; exact or by stem; how
   often; how early. Each combination of grades is a bucket (``kernels.py``).
4. For each bucket, count over all labels how often it was right in training: its prior probability. If counts are few,
   the probability is smoothed by a logistic model of the grades, and the model by weights measured on other data.
5. For each label, at each of five levels of evidence, count matches and hits, and compare them with what the buckets
   predict: the label's log-odds are shifted by the difference. A label that was never matched has no shift.
6. The score of a label is the probability of its bucket, shifted.

Without training documents, steps 4 and 5 leave the measured weights as they are: zero-shot tagging.

Where we differ from Maui, MLLM and STWFSA, and why: they learn one classifier over all labels from the features of a
match, so a label whose name misleads stays misjudged. Step 5 corrects each label by its own record, yet a label
without documents keeps the prior, so new labels are suggested from their names.

The counts of steps 4 and 5 are kept, and documents that are learned later (``partial_fit``) are added to them: the
result is that of training with all documents, except for three things. Training counts buckets on a sample of at most
5000 documents, and later documents all count. Where the names of new labels change how others match, the counts of
earlier documents stay. The language stays as it was found.
"""

import threading
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from labelspace.errors import DataError, ParameterError
from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import boolean, one_of, real
from labelspace.estimator.state_constraints import array, part, plain
from labelspace.features.language import AUTO, LANGUAGE, NAMES, UNKNOWN, Language, language_of
from labelspace.features.stems import (
    KEEP_ACCENTS,
    LANGUAGES,
    NO_STEMMING,
    STRIP_ACCENTS,
    stemming_language,
    usual_accents,
)
from labelspace.features.tokenizer import map_blocks
from labelspace.features.views import TEXT
from labelspace.kernels.knn import LabelSets
from labelspace.kernels.ngrams import lookup_keys
from labelspace.labels.masks import kept_entries
from labelspace.models.base import Model
from labelspace.models.evidence import Evidence, logit
from labelspace.models.fit_context import FitContext
from labelspace.models.lexical import kernels as matching
from labelspace.models.lexical.counts import Counts, Tally, matches_among
from labelspace.models.lexical.kernels import N_BUCKETS, N_LEVELS, PROBABILITY_SCALE, Phrases
from labelspace.models.lexical.phrases import PhraseEvidence, WordStems, index_phrases
from labelspace.models.partial_fit import NewDocuments
from labelspace.training.losses import sigmoid
from labelspace.types import Bools, Csr, Doubles, Floats, Ints, LabelSpace, Longs, TopK

Weights = npt.NDArray[np.float64]

BUCKET_SAMPLE = 5000  # documents on which buckets are counted
RIDGE = 3.0  # regularization of the grades' weights towards the measured weights
BUCKET_PRIOR = 20.0  # documents for which the model of the grades counts in a bucket
NEWTON_STEPS = 20  # of the model of the grades, each at most 1 long per weight

# Weights of one logistic model over the training documents of CookingSE, EURLEX57K, WordNetHyper and YSO-Finna-EN, each
# set with its own base and the same weight in sum; the base here is the mean of those (docs/methods/lexical.md).
WHOLE_WEIGHTS = np.array(
    [
        *(-2.7,),  # base
        *(0.5, -0.4, -0.2),  # name, synonym, part
        *(-0.8, 0.3, 0.4),  # 1, 2, 3 or more words
        *(-0.5, 0.4),  # inside a longer phrase, free
        *(-0.9, 0.8),  # by stems, exact
        *(-0.5, 0.1, 0.4, -0.1),  # once, twice, 3 to 5 times, more
        *(0.6, 0.5, 0.1, -1.2),  # first among words 1 to 4, to 12, to 32, beyond
    ]
)
SOME_WEIGHTS = np.array(
    [
        *(-4.0,),  # base
        *(-2.2, -1.1, 1.0, 2.1),  # share of the phrase's weight up to 0.45, 0.6, 0.8, 1
        *(0.0, -0.2),  # last word missing, present
        *(0.3, -0.5),  # one word, more
        *(-0.3, -0.1, 0.2, 0.0),  # as above
        *(0.5, 0.3, 0.0, -0.9),
    ]
)


class Lexical(Model):
    """Label names and synonyms that occur in a text.

    >>> labels = LabelSpace(["gluten-free", "bread"], [[], ["loaf"]])
    >>> top = Lexical.from_labels(labels).predict_topk(["Two loaves, gluten free"], k=2)
    >>> [labels.names[label] for label in top.labels[0]]
    ['gluten-free', 'bread']
    """

    name = "lexical"
    title = "label names and synonyms found in the text"
    choose_when = "label names say what labels mean: new and rare labels, or no training documents at all"
    view = TEXT
    prior_strength: float = param(3.0, real(above=0), "Weight of the prior against a label's own counts, in documents.")
    language: str = param(AUTO, LANGUAGE, "Language of texts and label names; auto detects it.")
    stemming: str = param(
        AUTO, one_of(AUTO, NO_STEMMING, *LANGUAGES), "Stems of words: auto takes those of the language."
    )
    strip_accents: str = param(
        AUTO,
        one_of(AUTO, KEEP_ACCENTS, STRIP_ACCENTS),
        "Compare words without accents; auto does so in languages where these are often left out.",
    )

    new_labels: bool = param(
        False,
        boolean(),
        "Expect labels without documents to be as frequent as the rarer half of the others, once they have some.",
    )

    phrases_: Phrases = learned(part(Phrases, n_labels="n_labels"))
    log_odds_: Floats = learned(array("float32", N_BUCKETS))  # of a bucket being right
    shift_: Floats = learned(array("float32", "n_labels", N_LEVELS))
    # None in models saved before counts were kept: these cannot go on learning.
    counts_: Counts | None = learned(part(Counts, optional=True, n_labels="n_labels"), default=None)
    language_: str = learned(plain(one_of(UNKNOWN, *NAMES)), default=UNKNOWN)
    language_share_: float = learned(plain(real(at_least=0, at_most=1)), default=1.0)  # of the texts

    _last_read: tuple[str, Phrases, tuple[tuple[Ints, Longs], Ints]] | None = None

    @classmethod
    def from_labels(cls, labels: LabelSpace, **params: Any) -> Self:  # noqa: ANN401 - parameters are of any type
        """Make a model that tags without training documents, only from names and synonyms."""
        return cls(**params).fit_labels(labels)

    def _fit(self, texts: Sequence[str], Y: Csr, context: FitContext) -> None:
        labels = context.require_labels(self.name)
        self._set_language(texts, labels)
        self.phrases_ = phrases = index_phrases(labels, self._word_stems)  # step 1
        in_sample = np.zeros(len(texts), np.bool_)
        in_sample[:: -(-len(texts) // BUCKET_SAMPLE)] = True
        self.counts_ = self._count(phrases, texts, Y, in_sample)  # steps 2 and 3
        self._weigh_counts()

    def _weigh_counts(self) -> None:
        """Learn the log-odds of buckets (step 4) and the shifts of labels (step 5) from the counts."""
        expected = bucket_probabilities(self._counts().by_bucket)
        self.log_odds_ = _log_odds(expected).astype(np.float32)
        by_label, n_documents = self._by_label(expected)
        self.shift_ = _log_odds_shift(by_label, float(self.prior_strength))
        if self.new_labels:
            is_new = n_documents == 0
            self.shift_[is_new] = self._shift_if_new(by_label, n_documents)[is_new]

    def _by_label(self, expected: Doubles) -> tuple[Longs, Longs]:
        """Return matches, hits and expected hits by label and level, and the training documents of each label."""
        by_label = self._counts().by_label(np.round(PROBABILITY_SCALE * expected).astype(np.int64))
        n_documents = np.zeros(len(by_label), np.int64)  # labels that came after the training have none
        if self.labels_ is not None and self.labels_.counts is not None:
            n_documents[: len(self.labels_)] = self.labels_.counts
        return by_label, n_documents

    def _shift_if_new(self, by_label: Longs, n_documents: Longs) -> Floats:
        """Return the shift of each label as if it had no documents.

        It may have as many hits as expected, but no more than the rarer half of the labels with documents have on
        average: a name that is found more often than that is a common word.
        """
        found, has_documents = by_label.astype(np.float64), n_documents > 0
        if has_documents.any():
            rare = has_documents & (n_documents <= np.median(n_documents[has_documents]))
            found[:, :, 1] = np.minimum(found[:, :, 2] / PROBABILITY_SCALE, found[rare, :, 1].mean(axis=0))
        return _log_odds_shift(found, float(self.prior_strength))

    def _counts(self) -> Counts:
        if self.counts_ is None:
            rule = f"{self.name} goes on learning from what it counted in training, which was not saved with this model"
            raise ParameterError(f"{rule}, but by later versions only; train it again")
        return self.counts_

    def partial_fit(self, new: NewDocuments) -> Sequence[str]:
        """Count the matches of documents too; index all phrases again if there are new labels or names.

        Of a document that may have further labels, only matches of its labels and of rejected ones count, and not for
        the buckets: what else was right is not known.
        """
        if new.labels is None:
            raise DataError(f"{self.name} must know the names of the labels, but labels is None; give labels")
        counts = self._counts()
        if not _same_phrases(self.labels_, new.labels):
            self.phrases_ = index_phrases(new.labels, self._word_stems)
        partly = ~new.are_complete
        for rows, only in ((new.are_complete, None), (partly, (new.Y + new.rejected)[partly])):
            texts = [new.X[i] for i in np.flatnonzero(rows).tolist()]
            in_sample = np.full(len(texts), only is None)
            counts = counts.plus(self._count(self.phrases_, texts, new.Y[rows], in_sample, only))
        self.counts_ = counts
        self._weigh_counts()
        return ()

    def relabel(self, labels: LabelSpace) -> None:
        """Take the names and synonyms of the labels in use, in place; what was counted for a label stays.

        Labels that came after the last documents that this model could learn from are left out.
        """
        self.phrases_ = index_phrases(labels.first(self.n_labels_), self._word_stems)

    def fit_labels(self, labels: LabelSpace, label_features: object = None) -> Self:
        """Fit to only the names and synonyms of labels, not to their features: zero-shot tagging."""
        self.check_params()
        if not len(labels):
            raise DataError("there must be at least one label, but there are 0; give some labels")
        self.forget()
        self.widths_, self.n_labels_ = {TEXT.name: 0}, len(labels)
        self.labels_ = replace(labels, counts=np.zeros(len(labels), np.int64), n_documents=0)
        self._set_language([], labels)
        self.phrases_ = index_phrases(labels, self._word_stems)
        self.counts_ = Counts.nothing(len(labels))
        self._weigh_counts()
        return self

    def _set_language(self, texts: Sequence[str], labels: LabelSpace) -> None:
        """Set the language of the texts, or of the label names if the texts do not tell it."""
        found = language_of(self.language, texts)
        if found.name == UNKNOWN:
            found = language_of(self.language, labels.texts())
        self.language_, self.language_share_ = found.name, found.share

    @cached_property
    def _word_stems(self) -> WordStems:
        stemming = stemming_language(self.language_) if self.stemming == AUTO else self.stemming
        return WordStems(stemming, usual_accents(stemming) if self.strip_accents == AUTO else self.strip_accents)

    def report(self) -> dict[str, Any]:
        """Report the language by which names and texts are compared."""
        self.check_fitted()
        return {"language": Language(self.language_, share=self.language_share_).described(self.language)}

    def _count(
        self, phrases: Phrases, texts: Sequence[str], Y: Csr, in_sample: Bools, only: Csr | None = None
    ) -> Counts:
        """Count matches and hits by label, bucket and level; and by bucket, over the documents ``in_sample``.

        Of each document only the labels in ``only`` (n, n_labels) count, if it is given.
        """
        tallies: dict[int, Tally] = {}  # one per thread
        ends = Y.indptr.astype(np.int64)

        def count(start: int, stop: int) -> None:
            tally = tallies.setdefault(threading.get_ident(), Tally())
            found, found_ends = self._matches(phrases, texts[start:stop], Y.shape[1])
            if only is not None:
                found, found_ends = matches_among(found, found_ends, only[start:stop])
            truth = LabelSets(Y.indices, ends[start : stop + 1])
            tally.add(found, found_ends, truth, Y.shape[1], in_sample[start:stop])

        map_blocks(count, texts)
        return Counts.of_tallies(tallies.values(), Y.shape[1])

    def _predict(self, texts: Sequence[str], k: int, allowed: Bools | None = None) -> TopK:
        return self._rank(texts, (k, allowed))[0]

    def predict_twice(self, texts: Sequence[str], k: int, depth: int, allowed: Bools) -> tuple[TopK, TopK]:
        """Return the k best of all labels and the ``depth`` best of the allowed ones, by the same matches."""
        every, among = self._rank(texts, (k, None), (depth, allowed))
        return every, among

    def text_topk(self, texts: Sequence[str], k: int, allowed: Bools) -> TopK:
        """Return the k best allowed labels of each text as if they had no documents."""
        as_if_new = copy(self)
        as_if_new.shift_ = self._shift_if_new(*self._by_label(bucket_probabilities(self._counts().by_bucket)))
        return as_if_new._predict(texts, k, allowed)

    def _rank(self, texts: Sequence[str], *wanted: tuple[int, Bools | None]) -> list[TopK]:
        """Return the best labels for each of ``wanted``: a number of labels, and which labels are allowed."""
        tops = [TopK.empty(len(texts), k) for k, _ in wanted]

        def find(start: int, stop: int) -> None:
            found, ends = self._matches(self.phrases_, texts[start:stop], self.n_labels_)
            for out, (_, allowed) in zip(tops, wanted, strict=True):
                rows = found, ends
                if allowed is not None:
                    kept, kept_ends = kept_entries(found[:, 0], ends, allowed)
                    rows = found[kept], kept_ends
                part = out.labels[start:stop], out.scores[start:stop]
                matching.topk_matches(*rows, self.log_odds_, self.shift_, *part)

        map_blocks(find, texts)
        return tops

    def knows_words(self, texts: Sequence[str]) -> Bools:
        """Return whether each text has a phrase that names a label. Shape (n,)."""
        _, ends = self._matches(self.phrases_, texts, self.n_labels_)
        return np.diff(ends, prepend=0) > 0

    def explain(self, texts: Sequence[str], labels: Ints) -> list[Evidence]:
        """Explain the scores of labels by the phrases of the text that name them."""
        (found, _), words = self._read(self.phrases_, texts, self.n_labels_)
        matched = {label: (bucket, level) for label, bucket, level in found.tolist()}
        located = PhraseEvidence(self.phrases_, texts[0], words)
        evidence = []
        for label in labels.tolist():
            baseline = self._baseline(label)
            if label not in matched:
                evidence.append(Evidence(logit(0.0), baseline))
                continue
            bucket, level = matched[label]
            log_odds = float(self.log_odds_[bucket]) + float(self.shift_[label, level])
            evidence.append(located.evidence(label, log_odds, baseline))
        return evidence

    def _baseline(self, label: int) -> float:
        """Return the log-odds of the label's frequency, which is equal for all labels without training documents."""
        known = self.labels_
        if known is None or known.counts is None or not known.n_documents:
            return logit(1 / self.n_labels_)
        return logit(int(known.counts[label]) / known.n_documents)

    def _matches(self, phrases: Phrases, texts: Sequence[str], n_labels: int) -> tuple[Ints, Longs]:
        """Return rows of label, bucket and level, and the rows up to the end of each text."""
        return self._read(phrases, texts, n_labels)[0]

    def _read(self, phrases: Phrases, texts: Sequence[str], n_labels: int) -> tuple[tuple[Ints, Longs], Ints]:
        """Return the matches and all words of texts, kept for a single text, since it may be explained next."""
        last = self._last_read
        if last is not None and len(texts) == 1 and last[0] is texts[0] and last[1] is phrases:
            return last[2]
        stems, forms, ends = self._word_stems.read(texts)
        words = lookup_keys(phrases.stems, stems)
        found = (matching.find_matches(words, forms, ends, phrases, matching.empty_scratch(phrases, n_labels)), words)
        if len(texts) == 1:
            self._last_read = (texts[0], phrases, found)
        return found


def _same_phrases(known: LabelSpace | None, new: LabelSpace) -> bool:
    """Return whether labels have the same names and synonyms, and the same ones are in use."""
    if known is None or not np.array_equal(known.in_use, new.in_use):
        return False
    if known.names is new.names and known.synonyms is new.synonyms:
        return True
    synonyms = [list(map(list, labels.synonyms or ())) for labels in (known, new)]
    return list(known.names) == list(new.names) and synonyms[0] == synonyms[1]


def bucket_probabilities(by_bucket: npt.NDArray[np.generic]) -> Weights:
    """Return the probability of each bucket (step 4), from how often it matched and was right. Shape (n_buckets,)."""
    matched, right = np.asarray(by_bucket, np.float64).T
    n = matching.N_FULL_BUCKETS
    full = _smoothed(matched[:n], right[:n], matching.FULL_GRADES, WHOLE_WEIGHTS)
    some = _smoothed(matched[n:], right[n:], matching.PARTIAL_GRADES, SOME_WEIGHTS)
    return np.asarray((right + BUCKET_PRIOR * np.concatenate([full, some])) / (matched + BUCKET_PRIOR))


def _smoothed(matched: Weights, right: Weights, sizes: tuple[int, ...], measured: Weights) -> Weights:
    """Fit a logistic model of the grades by Newton's method, regularized towards the measured weights."""
    A = indicators(sizes)  # (n_buckets, 1 + n_grades)
    w = measured.copy()
    for _ in range(NEWTON_STEPS):
        p = sigmoid(A @ w)
        gradient = A.T @ (right - matched * p) - RIDGE * (w - measured)
        hessian = (A * (matched * p * (1 - p))[:, None]).T @ A + RIDGE * np.eye(w.size)
        w = w + np.clip(np.linalg.solve(hessian, gradient), -1, 1)  # a long step may overshoot
    return sigmoid(A @ w)


def indicators(sizes: tuple[int, ...]) -> Weights:
    """Return a one, and a one for each grade that a bucket has. Shape (n_buckets, 1 + n_grades)."""
    table = matching.bucket_grades(np.arange(np.prod(sizes)), sizes)
    return np.hstack([np.ones((len(table), 1)), *(np.eye(size)[table[:, i]] for i, size in enumerate(sizes))])


def _log_odds(p: Weights) -> Weights:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(p) - np.log1p(-p))


def _log_odds_shift(by_label: Longs | Doubles, prior_strength: float) -> Floats:
    """Return how much each label's log-odds differ from those expected, per level. Shape (n_labels, n_levels)."""
    matched, right, summed = np.moveaxis(by_label, -1, 0).astype(np.float64)
    expected = summed / PROBABILITY_SCALE / np.maximum(matched, 1)
    smoothed = (right + prior_strength * expected) / (matched + prior_strength)
    return np.where(matched > 0, _log_odds(smoothed) - _log_odds(expected), 0).astype(np.float32)
