"""Blend: a stacked ensemble of several methods; better than each, and the default.

1. Choose the members that suit the data, each with the view of the documents that it reads: words, bigrams, character
   n-grams where texts are short, raw text.
2. Predict documents that the members have not seen: those given for validation; else every training document out of
   fold; else, where documents are many, a sample held out once.
3. A document's candidates are the labels that any member ranks among its first ``n_candidates``. For each candidate
   note every member's score, rank, score relative to its best, and that best; the label's count in training, the sum
   of the scores, and how many members list the label: a row of the stacking table.
4. Learn from these rows whether a label is right: gradient-boosted trees with a logistic loss.
5. Train the members on all training documents (with validation documents: that was step 2 already).
6. To tag, ask every member, score the candidates by the trees, and rank by the probability of being right.

The trees are fitted by log-loss on documents no member was trained on, so their scores are probabilities that can be
acted on (``calibrated=True``, ``--min-probability``).
"""

from collections.abc import Sequence

import numpy as np

from labelspace.estimator import learned, param
from labelspace.features.views import BIGRAMS, CHARS, GIVEN, TEXT, VIEWS, WORDS, View, Views
from labelspace.models import parameters
from labelspace.models.base import Model
from labelspace.models.blend.folds import held_out_folds
from labelspace.models.blend.gradient_boosting import Forest, fit_forest
from labelspace.models.blend.members import (
    MEMBERS,
    Member,
    choose_members,
    choose_members_on_features,
    member_params,
    member_view,
    on_features,
    parse_members,
    wide_view,
)
from labelspace.models.blend.stacking import MemberTopK, n_columns, stacking_table
from labelspace.models.fit_context import FitContext
from labelspace.models.registry import create, method
from labelspace.parameter_constraints import integer, list_of, text
from labelspace.state_constraints import array, must, part, parts, plain
from labelspace.types import Csr, Dataset, Floats, LabelSpace, Progress, TopK

MAX_LEAVES = 16  # of a tree of the stacking model
PREDICTED_AT_ONCE = 8192  # documents: the stacking table of all may not fit into memory


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
    members: str | None = param(
        None, MEMBERS, "Methods separated by commas, each optionally with :view; none chooses them by the data."
    )
    n_folds: int | None = param(
        None, integer(1), "Folds for out-of-fold predictions; none chooses the number, 1 holds out one sample."
    )
    n_candidates: int = param(20, integer(1), "Candidate labels taken from each member.")
    boosting_rounds: int = param(150, integer(1), "Rounds of gradient boosting of the stacking model.")
    random_state: int = parameters.random_state()

    members_: list[Model] = learned(parts(method, "n_members"))
    member_views_: list[str] = learned(plain(list_of(text())))  # the view of each member
    log_counts_: Floats = learned(array("float32", "n_labels"))  # log(1 + training documents)
    forest_: Forest = learned(part(Forest, n_columns="n_columns"))

    def sizes(self) -> dict[str, int]:
        """Members, and the columns of the stacking table."""
        n_members = len(self.member_views_)
        return {"n_labels": self.n_labels_, "n_members": n_members, "n_columns": n_columns(n_members)}

    def check_state(self) -> None:
        """The members are of the same labels, and of the views that they will be given unchecked."""
        for member, view in zip(self.members_, self.member_views_, strict=True):
            must(view in VIEWS, f"a view {view}")
            width = self._width(VIEWS[view])
            must(member.n_labels_ == self.n_labels_, "members of the same labels")
            must(member.widths_ == {member.view.name: width}, f"a member of {width} columns for {view}")
            must(VIEWS[view].is_matrix == member.view.is_matrix, f"a member that reads {view}")
            must(member.view.is_matrix or view == member.view.name, f"a member that reads {view}")

    def views(self, documents: Dataset) -> tuple[View, ...]:
        """The views of all members (step 1)."""
        texts = documents.texts or []
        members = self._members(documents.Y.shape, wide_view(texts), documents.labels.are_named)
        return tuple(member_view(name, len(texts)) for name in dict.fromkeys(member.view for member in members))

    def read(self, views: Views) -> Views:
        """All views: each member reads its own."""
        return views

    def _members(self, shape: tuple[int, int], wide: str = WORDS.name, with_text: bool = False) -> list[Member]:
        return choose_members(shape, wide, with_text) if self.members is None else parse_members(self.members)

    def _members_for(self, views: Views, shape: tuple[int, int], context: FitContext) -> list[Member]:
        if GIVEN in views.tables:
            return choose_members_on_features(shape) if self.members is None else on_features(self._members(shape))
        wide = next((view.name for view in (CHARS, BIGRAMS) if view.name in views.tables), WORDS.name)
        with_text = TEXT.name in views.tables and context.labels is not None and context.labels.are_named
        return self._members(shape, wide, with_text)

    def _fit(self, views: Views, Y: Csr, context: FitContext) -> None:
        members = self._members_for(views, Y.shape, context)
        self.member_views_ = [member.view for member in members]
        self.log_counts_ = _log_counts(Y)
        if context.validation is not None:
            held, truth = context.validation
            self.members_ = self._train(members, views, Y, context)
            table = stacking_table(self._member_topk(held), self.n_candidates, self.log_counts_)
            columns, targets = table.columns, table.targets(truth)
        else:
            columns, targets = self._out_of_fold(members, views, Y, context)
            self.members_ = self._train(members, views, Y, context)  # step 5
        self.forest_ = fit_forest(
            columns, targets, self.boosting_rounds, max_leaves=MAX_LEAVES, random_state=self.random_state,
            progress=context.progress,
        )  # fmt: skip  # step 4

    def _train(
        self, members: Sequence[Member], views: Views, Y: Csr, context: FitContext, fold: str = ""
    ) -> list[Model]:
        trained = []
        for member in members:
            model = create(member.method, **member_params(member, Y.shape[0] * Y.shape[1], self.random_state))
            own = FitContext(labels=context.labels, progress=_named(context.progress, f"{member}{fold}"))
            model.check_params()
            trained.append(model.fit_checked(_view_for(model, views, member.view), Y, own).keep_for_prediction())
        return trained

    def _out_of_fold(
        self, members: Sequence[Member], views: Views, Y: Csr, context: FitContext
    ) -> tuple[Floats, Floats]:
        """Steps 2 and 3: the stacking table of the documents held out, by members trained on the others."""
        folds = held_out_folds(Y.shape[0], self.n_folds, self.random_state)
        columns = [np.zeros((0, n_columns(len(members))), np.float32)]
        targets = [np.zeros(0, np.float32)]
        for number, held in enumerate(folds):
            train = np.setdiff1d(np.arange(Y.shape[0]), held)
            if Y[train].nnz == 0:  # every label is in this fold
                continue
            fold = f" (fold {number + 1} of {len(folds)})"
            self.members_ = self._train(members, views.rows(train), Y[train], context, fold)
            # Labels are as rare here as they were for the members.
            table = stacking_table(self._member_topk(views.rows(held)), self.n_candidates, _log_counts(Y[train]))
            columns.append(table.columns)
            targets.append(table.targets(Y[held]))
        return np.concatenate(columns), np.concatenate(targets)

    def _member_topk(self, views: Views, k: int = 0) -> MemberTopK:
        """What every member predicts: at least twice as many labels as become candidates."""
        k = min(max(2 * self.n_candidates, k), self.n_labels_)
        shape = (len(self.members_), views.n, k)
        predicted = MemberTopK(np.empty(shape, np.int32), np.empty(shape, np.float32))
        for at, (member, view) in enumerate(zip(self.members_, self.member_views_, strict=True)):
            top = member._predict(member.read(_view_for(member, views, view)), k)  # what goes in was checked
            predicted.labels[at], predicted.scores[at] = top.labels, top.scores
        return predicted

    def _predict(self, views: Views, k: int) -> TopK:
        out = TopK.empty(views.n, k)
        if views.n <= PREDICTED_AT_ONCE:
            self._rank(views, out)
            return out
        for start in range(0, views.n, PREDICTED_AT_ONCE):
            part = slice(start, start + PREDICTED_AT_ONCE)
            self._rank(views.rows(part), TopK(out.labels[part], out.scores[part]))
        return out

    def _rank(self, views: Views, out: TopK) -> None:
        """Write the best labels of some documents to ``out`` (step 6)."""
        depth = max(self.n_candidates, out.k)
        table = stacking_table(self._member_topk(views, depth), depth, self.log_counts_)
        fitted = len(self.forest_.roots) > 0
        scores = self.forest_.probabilities(table.columns) if fitted else table.mean_scores(len(self.members_))
        table.rank(scores, out)

    def to_probabilities(self, top: TopK) -> TopK:
        """The scores are probabilities already."""
        return top

    def attach_labels(self, labels: LabelSpace | None) -> None:
        """Give the members their labels too."""
        super().attach_labels(labels)
        for member in self.members_:
            member.attach_labels(labels)


def _view_for(model: Model, views: Views, name: str) -> Views:
    """The view of this name alone, under the name that the model reads."""
    return Views({model.view.name: views[name]}, {model.view.name: views.width(name)})


def _log_counts(Y: Csr) -> Floats:
    return np.log1p(np.bincount(Y.indices, minlength=Y.shape[1])).astype(np.float32)


def _named(progress: Progress, name: str) -> Progress:
    return lambda step, done, total: progress(f"{name}: {step}", done, total)
