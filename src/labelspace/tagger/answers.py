"""Choose the labels of an answer: the best allowed ones, the sure ones among these, and their ancestors."""

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelspace.errors import ParameterError
from labelspace.features.views import TEXT, Views, n_rows
from labelspace.labels.edits import allowed_by_model, answered, ranked_labels, without_retired
from labelspace.labels.hierarchy import ancestor_probabilities, include_ancestors
from labelspace.labels.keep_rule import KeepRule, Omitted, omitted
from labelspace.labels.selection import Selection, listed, select_labels
from labelspace.labels.tag_options import SelectOptions, TagOptions
from labelspace.models.base import Model
from labelspace.models.capabilities import Calibrated, Explains, HasMembers, KnowsWords, LearnsPrecision, require
from labelspace.models.checks import Inputs, check_inputs, check_k
from labelspace.models.evidence import Evidence
from labelspace.training.precision_thresholds import CLOSED, PrecisionThreshold, PrecisionThresholds
from labelspace.types import Bools, Columns, Hierarchy, Ints, LabelSpace, TopK

Tags = list[tuple[str, float]]
EMPTY = "is empty"
UNKNOWN = "has no word that the model knows"
PLURAL = {EMPTY: "are empty", UNKNOWN: "have no word that the model knows"}
SURE_K = 16  # labels that are ranked at least, before unsure labels give way to their ancestors
CONSISTENT_K = 50  # labels that are ranked at least, before ancestors are included and the list is cut at k


class LeftOut(NamedTuple):
    """One of the k best labels of a document, by its name, that is not in the answer."""

    label: str
    score: float
    reason: str


class Answer(NamedTuple):
    """The tags of a document, and the labels among its k best that are not tags."""

    tags: Tags
    left_out: list[LeftOut]


class DocumentAnswer(NamedTuple):
    """The answer to one document by label ids."""

    labels: list[int]  # best first, without padding
    scores: list[float]
    left_out: list[Omitted]
    is_read: bool  # whether the model knows a word of the document
    probabilities: list[float] | None = None  # of an answer that was to be reranked, whose scores are combined ones
    is_reranked: bool | None = None  # None if it was not to be

    def first(self, k: int) -> "DocumentAnswer":
        """Return the answer with its k best labels."""
        kept = None if self.probabilities is None else self.probabilities[:k]
        return self._replace(labels=self.labels[:k], scores=self.scores[:k], probabilities=kept)

    def named(self, names: Sequence[str]) -> Answer:
        """Return the answer by label names."""
        tags = [(names[label], score) for label, score in zip(self.labels, self.scores, strict=True)]
        return Answer(tags, [LeftOut(names[each.label], each.score, each.reason) for each in self.left_out])

    def problem(self, content: str) -> str | None:
        """Return what is wrong with a document of this content, so that its labels are of no use; None if nothing is.

        >>> DocumentAnswer([], [], [], is_read=False).problem("qzxj")
        'has no word that the model knows'
        """
        if not content.strip():
            return EMPTY
        return None if self.is_read else UNKNOWN


class Answers(NamedTuple):
    """Answers by label ids, and what they were chosen from."""

    answer: TopK
    ranked: TopK  # the k best labels
    judged: TopK  # what the rule was applied to
    rule: KeepRule | None
    are_read: Callable[[], Bools]  # see ``LabelChoice.are_read``; called only where the answer to a document needs it

    def documents(self, labels: LabelSpace) -> list[DocumentAnswer]:
        """Return the answer to each document."""
        left_out: list[list[Omitted]] = [[] for _ in range(len(self.answer))]
        if self.rule is not None:
            left_out = omitted(self.ranked, self.judged, self.answer, self.rule, labels)
        tops = zip(self.answer.labels.tolist(), self.answer.scores.tolist(), strict=True)
        found = []
        for (ids, scores), out, is_read in zip(tops, left_out, self.are_read().tolist(), strict=True):
            kept = [score for label, score in zip(ids, scores, strict=True) if label >= 0]
            found.append(DocumentAnswer([label for label in ids if label >= 0], kept, out, is_read))
        return found


class Selections:
    """Selects the labels that options allow; keeps the last selection."""

    def __init__(self) -> None:
        self._last: tuple[list[list[str | Path]], Selection] | None = None

    def get(self, labels: LabelSpace, options: SelectOptions) -> Selection | None:
        """Return the labels that options allow; None if they allow all labels."""
        given = [listed(options.get("include")), listed(options.get("exclude")), listed(options.get("under"))]
        if not any(given):
            return None
        last = self._last
        if last is not None and last[0] == given and last[1].labels is labels:
            return last[1]
        chosen = select_labels(labels, *given)
        self._last = None if chosen is None or chosen.reads_files else (given, chosen)  # a file may change
        return chosen


class LabelChoice(NamedTuple):
    """How a model chooses the labels of documents."""

    model: Model
    labels: LabelSpace
    columns: Columns | None  # of the table that the model learned from

    def answers(
        self, views: Inputs, k: int, calibrated: bool, options: TagOptions, selection: Selection | None
    ) -> Answers:
        """Return the k best labels of each document; ``selection`` is what the options allow."""
        rule = self.keep_rule(options)
        allowed = None if selection is None else selection.allowed
        calibrated = calibrated or rule is not None
        are_read = partial(self.are_read, views)
        if not options.get("consistent"):
            top = self.predict_topk(views, k, calibrated, allowed)
            return Answers(top if rule is None else rule.kept(top), top, top, rule, are_read)
        hierarchy = self.hierarchy() if selection is None else selection.hierarchy
        deep = max(2 * k, CONSISTENT_K) if rule is None else max(k, SURE_K)  # labels of equal score may rank beyond k
        top = self.predict_topk(views, min(deep, len(self.labels)), calibrated, allowed)
        if rule is None:
            closed = include_ancestors(top, hierarchy, k)
            return Answers(closed, closed, closed, None, are_read)
        judged = ancestor_probabilities(top, hierarchy, max(k, CLOSED))
        return Answers(rule.kept(judged).padded(k), top.padded(k), judged, rule, are_read)

    def predict_topk(self, views: Inputs, k: int, calibrated: bool = False, allowed: Bools | None = None) -> TopK:
        """Return the k best of the allowed labels that are in use."""
        if self.labels.current is None:  # the usual case
            return self.model.predict_topk(views, k, calibrated=calibrated, allowed=allowed)
        mask = allowed_by_model(self.labels, allowed)
        if mask is not None and not mask.any():
            return TopK.empty(check_inputs(views).n, k)
        top = self.model.predict_topk(views, ranked_labels(self.labels, k), calibrated=calibrated, allowed=mask)
        return answered(self.labels, top, k, calibrated or self.gives_probabilities)

    @property
    def gives_probabilities(self) -> bool:
        """True if scores are probabilities: the method is calibrated, and ranks by them."""
        return isinstance(self.model, Calibrated) and bool(getattr(self.model, "ranks_by_probability", True))

    def are_read(self, inputs: Inputs) -> Bools:
        """Return whether the model knows a word of each document; features that come ready-made always count."""
        if not isinstance(inputs, Views):
            return np.ones(n_rows(inputs), bool)
        found = inputs.are_read()
        texts = inputs.tables.get(TEXT.name)
        if texts is None or found.all():
            return found
        others = np.flatnonzero(~found)
        unread = [texts[row] for row in others.tolist()]
        if isinstance(self.model, KnowsWords):
            found[others] = self.model.knows_words(unread)
        else:  # a method that makes its own tokens of texts as they are
            found[others] = [bool(text.strip()) for text in unread]
        return found

    def check(self, options: TagOptions) -> None:
        """Raise ParameterError unless the model can follow the options."""
        self.keep_rule(options)
        if options.get("consistent"):
            self.hierarchy()

    def keep_rule(self, options: TagOptions) -> KeepRule | None:
        """Return the rule that keeps labels which are sure enough; None keeps all labels."""
        probability, precision = options.get("min_probability"), options.get("precision")
        if probability is not None and precision is not None:
            rule = "either min_probability or precision decides which labels are kept"
            raise ParameterError(f"{rule}, but both are given, {probability} and {precision}; leave one out")
        if precision is not None:
            found = self.precision_threshold(precision, bool(options.get("consistent")))
            return KeepRule(found.threshold, found.most, precision)
        if probability is None:
            return None
        if not 0 <= probability <= 1:
            rule = "a probability must lie between 0 and 1"
            raise ParameterError(f"{rule}, but min_probability is {probability}; give such a number")
        require(self.model, Calibrated)
        return KeepRule(probability)

    def probabilities(self, top: TopK, options: TagOptions) -> TopK | None:
        """Return answers to these options with probabilities as scores; None if the method is not calibrated."""
        if not isinstance(self.model, Calibrated):
            return None
        return top if self.keep_rule(options) is not None else self.model.to_probabilities(top)

    def precision_threshold(self, precision: float, consistent: bool = False) -> PrecisionThreshold:
        """Return the threshold that reaches a precision, inf if none does, and the coverage to expect."""
        if not 0 < precision < 1:
            raise ParameterError(f"a precision must lie between 0 and 1, but is {precision}; give such a number")
        return self.precision_thresholds(consistent).at(precision)

    def precision_thresholds(self, consistent: bool = False) -> PrecisionThresholds:
        """Return the thresholds that were learned in training, with ``consistent`` for answers with all ancestors."""
        method = require(self.model, LearnsPrecision)
        if consistent:
            self.hierarchy()
        thresholds = method.precision_thresholds(consistent)
        if thresholds is None:
            rule = "a precision needs thresholds that are learned in training, but the model has none for such answers"
            raise ParameterError(f"{rule}; train it again, or use min_probability")
        return thresholds

    def hierarchy(self) -> Hierarchy:
        """Return the hierarchy of the labels; raise ParameterError if there is none."""
        if self.labels.hierarchy is None:
            remedy = "put a hierarchy.tsv into the data folder, or name labels as paths ('a > b')"
            if self.columns is not None:
                remedy = "name columns that are levels: --outputs 'department>aisle>shelf'"
            rule = "consistent answers need a hierarchy of the labels, but the model was trained without one"
            raise ParameterError(f"{rule}; {remedy}, and train again")
        return self.labels.hierarchy


def members_topk(model: HasMembers, labels: LabelSpace, inputs: Inputs, k: int) -> dict[str, TopK]:
    """Return the k best labels in use of each document by each member; merged labels count as those in their place."""
    if labels.current is None:
        return model.predict_members(inputs, k)
    check_k(k)
    n_out = int((~labels.in_use).sum())
    depth = k
    while True:  # members rank labels that are not in use too
        depth = min(2 * depth, k + n_out)
        found = {
            name: answered(labels, without_retired(labels, top), k, are_probabilities=False)
            for name, top in model.predict_members(inputs, depth).items()
        }
        if depth == k + n_out or all((top.labels >= 0).all() for top in found.values()):
            return found


def best_evidence(model: Explains, labels: LabelSpace, X: Any, ids: Ints) -> list[Evidence]:  # noqa: ANN401 - as ``read`` gives it
    """Return the evidence for labels in one document: of each and those merged into it, that with the highest score."""
    if not labels.n_merged or labels.current is None:
        return model.explain(X, ids)
    sources = [[label, *np.flatnonzero(labels.current == label).tolist()] for label in ids.tolist()]
    every = np.unique([label for some in sources for label in some]).astype(np.int32)
    found = dict(zip(every.tolist(), model.explain(X, every), strict=True))
    return [max((found[label] for label in some), key=attrgetter("log_odds")) for some in sources]
