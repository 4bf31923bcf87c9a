"""Blend: a stacked ensemble of several methods; better than each, and the default.

1. Choose the members that suit the data, each with the view of the documents that it reads: words, bigrams, words
   together with character n-grams where texts are short, raw text; stems in place of words where the texts are not in
   English; and the regularization of linear members on a sample.
2. Predict documents that the members have not seen: those given for validation; else training documents out of fold;
   else, where documents are many, a sample held out once.
3. A document's candidates are the labels that any member ranks among its first ``n_candidates``. For each candidate
   note every member's score, rank, score relative to its best, and that best; the label's count in training, the sum
   of the scores, and how many members list the label: a row of the stacking table.
4. Learn from these rows whether a label is right: gradient-boosted trees with a logistic loss.
5. Learn it again for each document's 16 most probable labels, from how these go together: a second pass of trees.
6. Train the members on all training documents (with validation documents, or a sample: that was step 2 already).
7. To tag, predict by every member, score the candidates by both passes, and rank by the probability of being right.
   Where a filter or a large k requires labels beyond the candidates, they rank below them (``stacking_table.py``).

The trees are fitted by log-loss on documents no member was trained on, so their scores are probabilities that can be
acted on (``calibrated=True``, ``--min-probability``). On half of these documents at a time the trees are fitted again
without them, and tell above which probability a given share of the labels is right (``--precision``).
"""

import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from labelspace.estimator import learned, param
from labelspace.estimator.parameter_constraints import Constraint, integer, list_of, one_of, optional, real, text
from labelspace.estimator.state_constraints import array, must, part, parts, plain
from labelspace.features.language import AUTO, LANGUAGE, NAMES, UNKNOWN, Language, language_of
from labelspace.features.views import (
    EMBEDDINGS,
    GIVEN,
    STEM_BIGRAMS,
    STEMS,
    TEXT,
    VIEWS,
    WORDS,
    View,
    Views,
    joined_parts,
)
from labelspace.models import checks, parameters
from labelspace.models.base import Model
from labelspace.models.batched_prediction import PREDICTED_LABELS, in_batches
from labelspace.models.blend import label_texts, learning, training
from labelspace.models.blend import stacking_table as stacking
from labelspace.models.blend.boosting.forest import Forest
from labelspace.models.blend.checkpoints import FinishedSteps, training_data
from labelspace.models.blend.explanations import BlendEvidence
from labelspace.models.blend.kernels import N_COLUMNS
from labelspace.models.blend.label_texts import VECTORS
from labelspace.models.blend.members import (
    BEST,
    CANDIDATES,
    EFFORTS,
    FAST,
    MEMBERS,
    NORMAL,
    WIDE_VIEWS,
    Member,
    base_views,
    choose_members,
    choose_members_on_features,
    encoder_for,
    is_member_view,
    member_params,
    member_view,
    on_features,
    parse_members,
    tuned_params,
    wide_view,
    word_view,
)
from labelspace.models.blend.recalibration import Recalibration
from labelspace.models.blend.rejections import Rejections
from labelspace.models.blend.stacking_model import Candidates, Cooccurrence, count_pairs, fit_passes, second_pass
from labelspace.models.blend.stacking_table import MemberTopK, StackingTable
from labelspace.models.blend.steps import Steps
from labelspace.models.blend.text_evidence import READERS, WITHOUT_DOCUMENTS, TextEvidence
from labelspace.models.blend.training import HeldOut, MemberTraining, Training
from labelspace.models.capabilities import KnowsWords, ReadsLabelNames, ZeroShot, require
from labelspace.models.checks import Inputs
from labelspace.models.evidence import Evidence
from labelspace.models.fit_context import FitContext, Held
from labelspace.models.partial_fit import NewDocuments, growing_views
from labelspace.models.registry import create, method
from labelspace.training.model_selection import ndcg
from labelspace.training.precision_thresholds import PrecisionThresholds, learn_consistent_precision, learn_precision
from labelspace.types import Bools, Csr, Dataset, Floats, Ints, LabelSpace, Longs, Progress, TopK, no_progress
from labelspace.types.propensity import propensity_weights
from labelspace.version import __version__

METRIC = Constraint(
    "a metric such as P@5, nDCG@5, R@5, RP@5, PSP@5 or PSnDCG@5",
    lambda value: isinstance(value, str) and re.fullmatch(r"(P|nDCG|R|RP|PSP|PSnDCG)@[1-9]\d*", value) is not None,
)
MIN_WORTH = 1e-6  # of a label, relative to the largest: a probability times it must not vanish
MIN_VECTOR_GAIN = 0.3  # points of nDCG@5: below, the time of the encoder is not worth it
PREDICTED_AT_ONCE = 8192  # documents per batch: the stacking table of all documents may not fit into memory


class Blend(Model):
    """The best of several methods, with probabilities.

    >>> from labelspace import Tagger
    >>> texts = [f"{a} {b}" for a in ("bread", "fish", "rice") for b in ("hot", "cold", "old", "new", "raw")]
    >>> tagger = Tagger(Blend(members="neighbors,label_tree")).fit(texts, [[text.split()[0]] for text in texts])
    >>> tagger.tag("cold fish", k=1)[0][0]
    'fish'
    """

    name = "blend"
    title = "several methods, weighed by boosted trees on held-out documents"
    choose_when = "labels should be as good as they get: the default"
    resumes_training = True
    trains_in_tasks = True
    weighs_documents = True
    weighs_labels = True
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {FAST: {"effort": FAST}, BEST: {"effort": BEST}}
    effort: str = param(
        NORMAL, one_of(*EFFORTS), "What training and prediction may cost: fewer members and folds, or more of them."
    )
    optimize: str = param(
        "nDCG@5", METRIC, "Metric that labels are ranked for; PSP@k and PSnDCG@k put rare labels higher."
    )
    members: str | None = param(
        None, MEMBERS, "Methods separated by commas, each optionally with :view; none chooses them by the data."
    )
    n_folds: int | None = param(
        None, integer(1), "Folds for out-of-fold predictions; none chooses the number, 1 holds out one sample."
    )
    n_candidates: int = param(10, integer(1), "Candidate labels taken from each member.")
    boosting_rounds: int = param(40, integer(1), "Rounds of gradient boosting of each pass of the stacking model.")
    language: str = param(AUTO, LANGUAGE, "Language of the texts, for members that use it; auto detects it.")
    random_state: int = parameters.random_state()

    members_: list[Model] = learned(parts(method, "n_members"))
    member_views_: list[str] = learned(plain(list_of(text())))  # the view of each member
    forest_: Forest = learned(part(Forest, n_columns="n_columns"))
    second_forest_: Forest = learned(part(Forest, n_columns="n_context_columns"))
    pairs_: Cooccurrence = learned(part(Cooccurrence, n_labels="n_labels"))
    precision_: PrecisionThresholds | None = learned(part(PrecisionThresholds, optional=True), default=None)
    consistent_precision_: PrecisionThresholds | None = learned(part(PrecisionThresholds, optional=True), default=None)
    recalibration_: Recalibration | None = learned(part(Recalibration, optional=True), default=None)
    rejections_: Rejections | None = learned(
        part(Rejections, optional=True, n_labels="n_labels", n_features="n_compared"), default=None
    )
    label_weight_: Floats | None = learned(array("float32", "n_labels", optional=True), default=None)  # at most 1
    vector_gain_: float | None = learned(plain(optional(real())), default=None)  # points of nDCG@5 by ``semantic``
    text_evidence_: TextEvidence | None = learned(part(TextEvidence, optional=True), default=None)
    language_: str = learned(plain(one_of(UNKNOWN, *NAMES)), default=UNKNOWN)
    language_share_: float = learned(plain(real(at_least=0, at_most=1)), default=1.0)  # of the texts
    out_of_fold: Sequence[HeldOut] = ()  # kept of a training with a budget, for members to be left out

    def sizes(self) -> dict[str, int]:
        """Members, and the columns of the stacking table."""
        n_members = len(self.member_views_)
        columns = {"n_columns": stacking.n_columns(n_members), "n_context_columns": N_COLUMNS}
        view = self.compared_view
        columns["n_compared"] = 0 if view is None else self.width(VIEWS[view])
        return {"n_labels": self.n_labels_, "n_members": n_members, **columns}

    def check_state(self) -> None:
        """Check that the members have the model's labels, and the views that they will read unchecked."""
        weights = self.label_weight_
        must(weights is None or bool(((weights > 0) & (weights <= 1)).all()), "weights of labels above 0, at most 1")
        for member, view in zip(self.members_, self.member_views_, strict=True):
            must(view == TEXT.name or is_member_view(view), f"a view {view}")
            width = sum(self.width(VIEWS[part]) for part in joined_parts(view))
            must(member.n_labels_ <= self.n_labels_, "members of no other labels")  # not all can add labels
            must(member.widths_ == {member.view.name: width}, f"a member of {width} columns for {view}")
            must((view != TEXT.name) == member.view.is_matrix, f"a member that reads {view}")
            must(member.view.is_matrix or view == member.view.name, f"a member that reads {view}")

    def views(self, documents: Dataset) -> tuple[View, ...]:
        """Return the views of all members (step 1)."""
        texts = documents.texts or []
        language = language_of(self.language, texts).name
        words = word_view(language)
        possible = {words, TEXT.name, *joined_parts(wide_view(texts, words))}
        encoder = encoder_for(texts)
        if encoder is not None and self.effort != FAST:
            possible.add(EMBEDDINGS.name)
        names = base_views(self._members(documents.Y.shape, possible, documents.labels))
        if STEMS.name in names or STEM_BIGRAMS.name in names:
            names = list(dict.fromkeys([*names, TEXT.name]))  # to tell the language
        made = [member_view(name, len(texts), language) for name in names]
        chosen = {"encoder": encoder} if encoder else {}
        return tuple(replace(view, params=chosen) if view == EMBEDDINGS else view for view in made)

    def label_views(self) -> tuple[View, ...]:
        """Return the views of the members that tag by labels alone; the network reads texts, if it is installed."""
        return (TEXT,) if encoder_for([]) is None else (TEXT, EMBEDDINGS)

    def label_text_view(self) -> View | None:
        """Return the view of the member that reads label texts as vectors."""
        return EMBEDDINGS

    def read(self, views: Views) -> Views:
        """Return all views: each member reads its own."""
        return views

    def _members(self, shape: tuple[int, int], views: Collection[str], labels: LabelSpace | None) -> list[Member]:
        """Return the members for texts, of which there can be these views: the one plan, before and in the training."""
        if self.members is not None:
            return parse_members(self.members)
        words = STEMS.name if STEMS.name in views else WORDS.name
        wide = next((name for name in WIDE_VIEWS[words] if set(joined_parts(name)) <= set(views)), words)
        with_text = TEXT.name in views and labels is not None and labels.are_named
        return choose_members(shape, wide, with_text, self.effort, words, EMBEDDINGS.name in views)

    def _members_on_features(self, Y: Csr) -> list[Member]:
        """Return the members for ready-made features."""
        if self.members is not None:
            return on_features(parse_members(self.members))
        return choose_members_on_features(Y.shape, Y.nnz / Y.shape[0], self.effort)

    def _fit(self, views: Views, Y: Csr, context: FitContext) -> None:
        if GIVEN in views.tables:
            members = self._members_on_features(Y)
        else:
            members = self._members(Y.shape, views.tables, context.labels)
        self.member_views_ = [member.view for member in members]
        self._set_language(views)
        fingerprint = self._fingerprint(members, views, Y, context)
        train, held_out = self._split(Training(views, Y, context.sample_weight), context.validation)
        views, Y = train.views, train.Y
        self.pairs_ = count_pairs(Y)
        self.recalibration_ = self.rejections_ = None
        worth = context.label_weight
        self.label_weight_ = None if worth is None else np.maximum(worth / worth.max(), MIN_WORTH).astype(np.float32)
        by_text = self.n_folds is None and set(READERS) <= {member.method for member in members}
        holds_out = held_out is None and not (by_text and training.are_too_few(Y))
        folds = training.folds(Y, self.n_folds, self.effort, self.random_state) if holds_out else []
        fold_sizes = [Y.shape[0] - len(fold.held) for fold in folds]
        steps = Steps(training.plan(members, fold_sizes, Y.shape[0]), context.progress)
        tuned = tuned_params(members, views, Y, self.random_state)
        settings = training.MemberSettings(
            members, self.random_state, context.labels, tuned, self.language_, context.label_features
        )
        k = self.n_predicted(Y.shape[1])
        with (
            training.steps_folder(context.checkpoint, context.executor) as folder,
            FinishedSteps(folder, fingerprint).in_use() as finished,
        ):
            if context.executor is not None:
                data = training.StepData(settings, train, folds, k)
                training.train_on_cluster(context.executor, data, finished, context.progress)
            trainer = MemberTraining(settings, steps, finished, context.budget)
            predicted: list[HeldOut] = []
            for number, fold in enumerate(folds, 1):
                if not predicted or not trainer.must_skip_fold(number, len(folds)):
                    predicted.append(trainer.out_of_fold(number, fold, train, k))
            predicted = self._keep(trainer.final_members(train), predicted)  # step 6
            if held_out is not None:
                documents, truth = held_out
                predicted = [HeldOut(self.member_topk(documents), truth, self.pairs_)]
            with steps.running() as progress:
                quality = self._fit_stacking(predicted, progress)
        self._weigh_vectors(predicted, quality)
        self.text_evidence_ = label_texts.fit_text_evidence(self, views, Y)
        self.out_of_fold = predicted if context.budget is not None else []

    def fit_labels(self, labels: LabelSpace, label_features: Inputs | None = None) -> Self:
        """Fit to only the texts of labels, and to their vectors if these are given: zero-shot tagging."""
        self.check_params()
        members = [create("lexical", language=self.language)]
        members += [create(VECTORS)] if label_features is not None else []
        for member in members:
            require(member, ZeroShot).fit_labels(labels, label_features)
        self.forget()
        self.labels_, self.n_labels_ = members[0].labels_, len(labels)
        self.members_, self.member_views_ = members, [member.view.name for member in members]
        self.widths_ = {view: width for member in members for view, width in member.widths_.items()}
        found = language_of(self.language, labels.texts())
        self.language_, self.language_share_ = found.name, found.share
        self.pairs_ = count_pairs(sp.csr_matrix((0, len(labels)), dtype=np.float32))
        self.recalibration_ = self.rejections_ = self.label_weight_ = None
        self.text_evidence_ = TextEvidence(WITHOUT_DOCUMENTS) if label_features is not None else None
        self._fit_stacking([], no_progress)
        self.vector_gain_ = None
        return self

    def _set_language(self, views: Views) -> None:
        """Detect the language of the texts, once for all members and folds."""
        found = language_of(self.language, views[TEXT.name] if TEXT.name in views.tables else [])
        self.language_, self.language_share_ = found.name, found.share

    def _split(self, train: Training, validation: Held | None) -> tuple[Training, Held | None]:
        """Part the documents for the members from the validation documents, or a sample, for the stacking model."""
        self.trained_rows = None
        # Members are trained once, without a sample, if training them again would cost too much.
        n = train.Y.shape[0]
        holds_out_once = n > training.MAX_OUT_OF_FOLD and self.n_folds is None and self.effort != BEST
        if validation is not None or not holds_out_once:
            return train, validation
        held = training.held_out_folds(n, 1, self.random_state)[0]
        rest = np.setdiff1d(np.arange(n), held)
        self.trained_rows = rest
        return train.rows(rest), (train.views.rows(held), train.Y[held])

    def _keep(self, members: Mapping[int, Model], predicted: Sequence[HeldOut]) -> list[HeldOut]:
        """Keep these members, by their place, their views, and what they predicted."""
        self.members_ = list(members.values())
        self.member_views_ = [self.member_views_[at] for at in members]
        read = {GIVEN, *(part for view in self.member_views_ for part in joined_parts(view))}
        self.widths_ = {view: width for view, width in self.widths_.items() if view in read}
        return [held._replace(topk=held.topk.of(list(members))) for held in predicted]

    def leave_out(self, place: int) -> float:
        """Drop a member, learn the stacking model of the others, and return its nDCG@5 on held-out documents.

        Only for a model just fitted with a budget.
        """
        kept = {at: member for at, member in enumerate(self.members_) if at != place}
        self.out_of_fold = self._keep(kept, self.out_of_fold)
        return self._fit_stacking(self.out_of_fold, no_progress)

    def _weigh_vectors(self, predicted: Sequence[HeldOut], quality: float) -> None:
        """Leave out the default's member that reads vectors unless it gains on held-out documents.

        It stays for labels without documents, and where nothing is held out.
        """
        self.vector_gain_ = None
        if self.members is not None or VECTORS not in self.member_names or not predicted:
            return
        without = copy(self)
        without.out_of_fold = predicted
        gain = 100 * (quality - without.leave_out(self.member_names.index(VECTORS)))
        if gain < MIN_VECTOR_GAIN and self.pairs_.counts.all():
            vars(self).update(vars(without))
        self.vector_gain_ = gain

    def _fit_stacking(self, predicted: Sequence[HeldOut], progress: Progress) -> float:
        """Steps 3 to 5: the stacking model of what members predicted for documents that they had not seen.

        Return its nDCG@5 on halves of these that it was not fitted on.
        """
        candidates = []
        for held in predicted:
            table = stacking.stacking_table(held.topk, self.n_candidates, held.pairs.log_counts)
            candidates.append(Candidates(table, table.targets(held.truth), held.pairs))
        columns = stacking.n_columns(len(self.member_views_))
        passes = fit_passes(candidates, columns, self.boosting_rounds, self.random_state, progress)
        self.forest_, self.second_forest_ = passes.first, passes.second
        truth = [held.truth for held in predicted]
        hierarchy = None if self.labels_ is None else self.labels_.hierarchy
        self.precision_ = learn_precision(passes.unseen, truth, self.random_state)
        self.consistent_precision_ = learn_consistent_precision(passes.unseen, truth, hierarchy, self.random_state)
        found = zip(truth, passes.unseen, strict=True)
        total = sum(Y.shape[0] * ndcg(top.padded(5), Y) for Y, top in found)
        return float(total / max(sum(Y.shape[0] for Y in truth), 1))

    def n_predicted(self, n_labels: int, k: int = 0) -> int:
        """Return how many labels every member predicts: at least twice as many as become candidates."""
        return min(max(2 * self.n_candidates, k), n_labels)

    def member_topk(self, views: Views, k: int = 0, allowed: Bools | None = None) -> MemberTopK:
        """Return what every member predicts: at least twice as many labels as become candidates, or k allowed ones."""
        k = self.n_predicted(self.n_labels_, k) if allowed is None else k
        named = zip(self.members_, self.member_views_, strict=True)
        predicted = [training.predict_member(member, views, view, k, allowed) for member, view in named]
        return training.side_by_side(predicted)

    def knows_words(self, texts: Sequence[str]) -> Bools:
        """Return whether a member that reads texts as they are knows a word of each text. Shape (n,)."""
        members = [member for member in self.members_ if isinstance(member, KnowsWords)]
        known = [member.knows_words(texts) for member in members]
        return np.any(known, axis=0) if known else np.zeros(len(texts), bool)

    def predict_members(self, X: Inputs, k: int = 5) -> dict[str, TopK]:
        """Return what every member predicts on its own, by the member's name."""
        self.check_fitted()
        checks.check_k(k)
        views = checks.check_inputs(X)
        checks.check_widths(views, self.widths_)
        found = self.member_topk(views, k)
        named = zip(self.members_, self.member_views_, strict=True)
        names = [str(Member(member.name, view)) for member, view in named]
        return {name: TopK(found.labels[at], found.scores[at]).padded(k) for at, name in enumerate(names)}

    def _member_topk_twice(self, views: Views, depth: int, allowed: Bools) -> tuple[MemberTopK, MemberTopK]:
        """Return what every member predicts, and its ``depth`` best of the allowed labels."""
        k, named = self.n_predicted(self.n_labels_), zip(self.members_, self.member_views_, strict=True)
        pairs = [training.predict_member_twice(member, views, view, k, depth, allowed) for member, view in named]
        every, among = (training.side_by_side(tops) for tops in zip(*pairs, strict=True))
        return every, among

    def _fingerprint(self, members: Sequence[Member], views: Views, Y: Csr, context: FitContext) -> dict[str, Any]:
        """Return what identifies this training; empty without a checkpoint folder."""
        if context.checkpoint is None:
            return {}
        held = () if context.validation is None else training_data(*context.validation, None)
        return {
            "version": __version__,
            "params": self.get_params(),
            "members": [[str(member), member_params(member, self.random_state, self.language_)] for member in members],
            "data": [*training_data(views, Y, context.labels), *held],
            **({} if context.sample_weight is None else {"weights": zlib.crc32(context.sample_weight.tobytes())}),
        }

    def _predict(self, views: Views, k: int, allowed: Bools | None = None) -> TopK:
        batch = PREDICTED_AT_ONCE
        depth = 0  # the candidates suffice
        if allowed is not None or k > self.n_candidates:
            depth = stacking.further_depth(k, self.n_candidates, self.n_labels_, allowed)
            batch = max(1, min(batch, PREDICTED_LABELS // depth))
        return in_batches(lambda part: self._rank(part, k, depth, allowed), views, k, batch)

    def _rank(self, views: Views, k: int, depth: int, allowed: Bools | None) -> TopK:
        """Return the k best of the allowed labels of some documents (step 7)."""
        out = TopK.empty(views.n, k)
        predicted, deep = self._predict_members(views, k, depth, allowed)
        table = stacking.stacking_table(predicted, self.n_candidates, self.pairs_.log_counts)
        probabilities = self._recalibrated(self.both_passes(table))
        if self.rejections_ is not None:
            probabilities = self.rejections_.apply(self.compared(views), table, probabilities)
        weights = self._label_weights
        table.rank(probabilities if weights is None else probabilities * weights[table.labels], out, allowed)
        if not depth:
            return out
        rows = np.flatnonzero(out.labels[:, -1] < 0) if weights is None else np.arange(views.n)
        if not len(rows):
            return out
        if deep is None:  # labels beyond the candidates may be among the best of these rows
            deep = self.member_topk(views.rows(rows), depth, allowed)
        elif len(rows) < views.n:
            deep = deep.rows(rows)
        further = stacking.further_table(predicted, table, deep, rows, self.pairs_.log_counts)
        lowest = stacking.lowest_scores(table, probabilities)[rows]
        first = self._with_text_evidence(further, self.first_pass(further))
        more = stacking.rank_further(further, self._recalibrated(first), lowest, k, weights)
        best = TopK(out.labels[rows], out.scores[rows]).best_of_both(more)
        out.labels[rows], out.scores[rows] = best.labels, best.scores
        return out

    def _predict_members(
        self, views: Views, k: int, depth: int, allowed: Bools | None
    ) -> tuple[MemberTopK, MemberTopK | None]:
        """Return what members predict for the candidates, and longer lists; None if few documents will need these."""
        if allowed is None:
            deep = self.member_topk(views, depth)
            return (deep.first(self.n_predicted(self.n_labels_)) if depth else deep), deep
        if allowed.mean() * 2 * self.n_candidates >= k:  # candidates that are likely to be allowed
            return self.member_topk(views), None
        return self._member_topk_twice(views, depth, allowed)

    def first_pass(self, table: StackingTable) -> Floats:
        """Return the probabilities of the first pass; without trees by label texts, or the mean of members' scores."""
        if len(self.forest_.roots):
            return self.forest_.probabilities(table.columns)
        if self.text_evidence_ is not None:
            return self.text_evidence_.probabilities(table.columns, self.member_names)
        return table.mean_scores(len(self.members_))

    def both_passes(self, table: StackingTable) -> Floats:
        """Return the probabilities of candidates, by both passes and before recalibration."""
        first = self.first_pass(table)
        if not len(self.forest_.roots):
            return first
        return self._with_text_evidence(table, second_pass(table, first, self.second_forest_, self.pairs_))

    def _with_text_evidence(self, table: StackingTable, probabilities: Floats) -> Floats:
        """Return probabilities with those of labels without documents by their texts, if members read these."""
        if self.text_evidence_ is None:
            return probabilities
        rows = np.flatnonzero(self.pairs_.counts[table.labels] == 0)
        probabilities[rows] = self.text_evidence_.probabilities(table.columns[rows], self.member_names)
        return probabilities

    @property
    def member_names(self) -> list[str]:
        """The methods of the members."""
        return [member.name for member in self.members_]

    def _recalibrated(self, probabilities: Floats) -> Floats:
        return probabilities if self.recalibration_ is None else self.recalibration_.apply(probabilities)

    def partial_fit(self, new: NewDocuments) -> Sequence[str]:
        """Let the members that can go on learning; the stacking model keeps its trees, and is recalibrated.

        What the stacking model says of the new documents before it has learned them tells whether its probabilities
        still hold; a sample of them is enough. Documents of which only rejected labels are known do not count there:
        they would make every probability too low. Their probabilities tell how much a rejection says.
        """
        return learning.learn(self, new)

    def compared(self, views: Views) -> Csr:
        """Return documents under the view by which they are compared with those that labels were rejected for."""
        X: Csr = views[str(self.compared_view)]
        return X

    @property
    def compared_view(self) -> str | None:
        """The view by which documents are compared with those that a label was rejected for."""
        parts = [part for view in self.member_views_ for part in joined_parts(view)]
        return next((name for name in parts if VIEWS[name].is_matrix), None)

    def relabel(self, labels: LabelSpace) -> None:
        """Give the new names to the members that read them, in place."""
        self.members_ = [copy(member) for member in self.members_]
        for member in self.members_:
            if isinstance(member, ReadsLabelNames):
                member.relabel(labels)

    def growing_views(self) -> Collection[str]:
        """Return the views that every member which reads them can get further columns of."""
        named = list(zip(self.members_, self.member_views_, strict=True))
        fixed = {part for member, view in named if not growing_views(member) for part in joined_parts(view)}
        return [view for view in self.widths_ if view not in fixed]

    def insert_features(self, at: Mapping[str, Longs]) -> None:
        """Insert features before columns of views, and of the views that are joined from these."""
        learning.insert_columns(self, at)

    def names_documents(self) -> bool:  # type: ignore[override]
        """Whether evidence of a member names documents; before the training, whether it may."""
        if hasattr(self, "members_"):
            return any(member.names_documents for member in self.members_)
        return self.members is None or any(
            method(member.method).names_documents for member in parse_members(self.members)
        )

    def explain(self, views: Views, labels: Ints) -> list[Evidence]:
        """Explain why these labels have their probabilities."""
        return BlendEvidence(self, views, labels).of_labels()

    @cached_property
    def _label_weights(self) -> Floats | None:
        """The factors, at most 1, of the labels' probabilities when labels are ranked; None if all are equal."""
        if not self.optimize.startswith("PS"):
            return self.label_weight_
        weights = propensity_weights(self.pairs_.counts.astype(np.float64), int(self.pairs_.n_documents[0]))
        weights = weights if self.label_weight_ is None else weights * self.label_weight_
        relative: Floats = (weights / weights.max()).astype(np.float32)
        return relative

    @property
    def ranks_by_probability(self) -> bool:
        """True unless weights of labels count in the ranks."""
        return not self.optimize.startswith("PS") and getattr(self, "label_weight_", None) is None

    def report(self) -> dict[str, Any]:
        """Return what was chosen on held-out documents, and the language if a member uses it."""
        chosen = {f"C of {m.name}": m.get_params()["C"] for m in self.members_ if m.name in CANDIDATES}
        note = label_texts.vector_note(self)
        if note:
            chosen[VECTORS] = note
        read = {part for view in self.member_views_ for part in joined_parts(view)}
        if read.isdisjoint((STEMS.name, STEM_BIGRAMS.name, TEXT.name)):
            return chosen
        return {**chosen, "language": Language(self.language_, share=self.language_share_).described(self.language)}

    def to_probabilities(self, top: TopK) -> TopK:
        """Return the scores without the weights of labels; without weights, scores are probabilities already."""
        weights = self._label_weights
        if weights is None:
            return top
        return TopK(top.labels, np.where(top.labels >= 0, top.scores / weights[top.labels], top.scores))

    def precision_thresholds(self, consistent: bool) -> PrecisionThresholds | None:
        """Return the thresholds that were learned with the stacking model, on documents held out of it."""
        return self.consistent_precision_ if consistent else self.precision_

    def attach_labels(self, labels: LabelSpace | None) -> None:
        """Give the members their labels too."""
        super().attach_labels(labels)
        for member in self.members_:
            member.attach_labels(labels)
