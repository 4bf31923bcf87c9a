"""Blend: several methods, put together by a small learned combiner; better than each, and the default.

1. Make the features that the members need, each kind ("view") once: single words; words and their pairs, or pieces of
   words where texts are short.
2. Tag documents that the members have not seen: those given for validation; else every training document by members
   trained on the other folds; else, where documents are many, a sample held out once.
3. A document's shortlist is what any member ranks among its first ``shortlist``. For each label on it note every
   member's score, rank, score relative to its best, and that best; the label's count in training, the sum of the
   scores, and how many members list the label.
4. Learn from these numbers whether a label is right: gradient-boosted trees with a logistic loss.
5. Train the members on all training documents (with validation documents: that was step 2 already).
6. To tag, ask every member, look the shortlist up in the trees, and rank by the chance of being right.

The trees are fitted by log-loss on documents no member was trained on, so their chances are probabilities that can be
acted on (``calibrated=True``, ``--min-probability``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from labelspace import store
from labelspace.errors import DataError, ModelError, ParameterError
from labelspace.estimator import Rule, optional, whole
from labelspace.features import Features, Tfidf, create_features
from labelspace.kernels.stacking import OF_A_MEMBER, OF_ALL, best_of_table, count_candidates, fill_table
from labelspace.kernels.threads import run_blocks
from labelspace.models.base import Aids, Model
from labelspace.models.blend.gradient_boosting import Forest, boost
from labelspace.models.registry import create, method
from labelspace.types import Csr, Floats, Ints, LabelSpace, Longs, Progress, TopK

GIVEN = "given"  # the view of a member that takes the texts, or the features, as they come
VIEWS: dict[str, dict[str, Any]] = {
    "words": {"ngrams": 1},
    "pairs": {"ngrams": 2},
    "pieces": {"analyzer": "char", "min_n": 3, "max_n": 5},
}
"""Kinds of features made of texts, by name."""
SETTINGS: dict[str, dict[str, Any]] = {"label_tree": {"tolerance": 0.3}}
"""Of members, where they differ from the method's own defaults: as good for the combiner, and quicker."""
SHORT_TEXT = 300  # mean characters up to which pieces of words say more than pairs of words
MANY_DOCUMENTS = 100_000  # above, more features than the words cost more than they give
NETWORK_WORK = 5e7  # documents x labels up to which the network is trained
GLAS_WORK = 4e8  # the same of glas
SAMPLED: dict[str, Any] = {"all_labels": False, "negatives": 512, "hard": 0, "input_dropout": 0.2}
"""Of glas where the network is left out: as good for the combiner as learning on every label, for 0.4 of the cost."""
FOLDED_DOCUMENTS = 20_000  # up to here all documents are tagged out of fold, above a sample is held out once
FOLDS = 5
SAMPLE_SHARE, SAMPLE_DOCUMENTS = 0.1, 6_000
FEW_DOCUMENTS = 50  # below, there is nothing to learn from: the mean of the members' scores is the answer
LEAVES = 16  # of a tree of the combiner
ROW_BLOCK = 256  # documents a task
AT_ONCE = 8192  # documents asked about at a time

Tables = dict[str, Any]  # view -> csr, or texts


@dataclass(frozen=True)
class Member:
    """A method and the view of the documents that it is given."""

    method: str
    view: str

    def __str__(self) -> str:
        return self.method if self.view == GIVEN else f"{self.method}:{self.view}"


def parse_members(text: str) -> list[Member]:
    """Members written as ``method`` or ``method:view``, with commas between.

    >>> [str(member) for member in parse_members("label_tree:pairs, neighbors, lexical")]
    ['label_tree:pairs', 'neighbors:words', 'lexical']
    """
    members = []
    for part in text.split(","):
        name, _, view = part.strip().partition(":")
        cls = method(name)
        if cls.reads_features:
            raise ParameterError(f"a member of blend must be a single method, but is {name!r}; leave it out")
        view = GIVEN if cls.reads_text else view or "words"
        if view not in (*VIEWS, GIVEN):
            raise ParameterError(f"the view of a member must be one of {', '.join(VIEWS)}, but is {view!r}; choose one")
        members.append(Member(name, view))
    return members


def _are_members(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(parse_members(value))
    except ParameterError:
        return False


MEMBERS = Rule(
    f"methods with commas between, each perhaps with :view ({', '.join(VIEWS)}), such as label_tree:pairs,neighbors",
    _are_members,
)


class Blend(Model):
    """The best of several methods, with probabilities.

    >>> texts = [f"{a} {b}" for a in ("bread", "fish", "rice") for b in ("hot", "cold", "old", "new", "raw")]
    >>> Y = np.repeat(np.eye(3), 5, axis=0)
    >>> model = Blend(members="neighbors,label_tree").fit(texts, Y)
    >>> model.predict_topk(["cold fish"], k=1).labels.tolist()
    [[1]]
    """

    name = "blend"
    title = "several methods, weighed by boosted trees on held-out documents"
    choose_when = "labels should be as good as they get: the default"
    reads_text = True
    reads_features = True
    uses_validation = True
    holds_out = True
    gives_probabilities = True
    rules = {
        "members": optional(MEMBERS),
        "folds": optional(whole(1)),
        "shortlist": whole(1),
        "rounds": whole(1),
        "seed": whole(0),
    }
    state = ("member_views_", "log_counts_", *(f"forest_{part}_" for part in Forest.state))

    member_views_: list[str]  # the view of each member
    log_counts_: Floats  # (n_labels,) log(1 + training documents)
    members_: list[Model]
    views_: dict[str, Features]

    def __init__(
        self,
        members: str | None = None,
        folds: int | None = None,
        shortlist: int = 20,
        rounds: int = 150,
        seed: int = 0,
    ) -> None:
        self.members = members
        self.folds = folds
        self.shortlist = shortlist
        self.rounds = rounds
        self.seed = seed

    def _fit(self, X: Csr, Y: Csr, aids: Aids) -> None:
        plan = self._plan(X, Y, aids.labels)
        self.member_views_ = [member.view for member in plan]
        self.log_counts_ = _log_counts(Y)
        self.views_ = {
            view: Tfidf(**VIEWS[view], min_df=_least_texts(view, Y.shape[0]))
            for view in dict.fromkeys(self.member_views_)
            if view in VIEWS
        }
        tables = {view: _made(features, X, aids.progress) for view, features in self.views_.items()}  # step 1
        tables[GIVEN] = X
        if aids.validation is not None and aids.validation[1].nnz:
            unseen, truth = aids.validation
            self.members_ = self._train(plan, tables, Y, aids)
            table, right = self._lesson(self._looked_at(unseen), truth[:, : Y.shape[1]], self.log_counts_)
        else:
            table, right = self._out_of_fold(plan, tables, Y, aids)
            self.members_ = self._train(plan, tables, Y, aids)  # step 5
        forest = boost(table, right, self.rounds, leaves=LEAVES, seed=self.seed, progress=aids.progress)  # step 4
        for part in Forest.state:
            setattr(self, f"forest_{part}_", getattr(forest, part))

    def _plan(self, X: Csr, Y: Csr, labels: LabelSpace | None) -> list[Member]:
        """The members that suit the data, or those the user named."""
        texts = None if sp.issparse(X) else X
        if self.members is not None:
            plan = parse_members(self.members)
        else:
            plan = [Member("neighbors", "words"), Member("label_tree", _wide_view(texts))]
            work = Y.shape[0] * Y.shape[1]
            if work <= NETWORK_WORK:
                plan.append(Member("network", "words"))
            if work <= GLAS_WORK:
                plan.append(Member("glas", "words"))
            if texts is not None and labels is not None and labels.are_named:
                plan.append(Member("lexical", GIVEN))
        if texts is None:
            reading = [member.method for member in plan if method(member.method).reads_text]
            if reading:
                raise DataError(f"{reading[0]} reads texts, but there are only features; leave it out of members")
            return [Member(name, GIVEN) for name in dict.fromkeys(member.method for member in plan)]
        return plan

    def _train(self, plan: Sequence[Member], tables: Tables, Y: Csr, aids: Aids, part: str = "") -> list[Model]:
        trained = []
        for member in plan:
            cls = method(member.method)
            seed = {"seed": self.seed} if "seed" in cls.defaults() else {}
            sampled = SAMPLED if member.method == "glas" and Y.shape[0] * Y.shape[1] > NETWORK_WORK else {}
            model = create(member.method, **seed, **SETTINGS.get(member.method, {}), **sampled)
            report = _named(aids.progress, f"{member}{part}")
            trained.append(model.fit(tables[member.view], Y, labels=aids.labels, progress=report))
        return trained

    def _out_of_fold(self, plan: Sequence[Member], tables: Tables, Y: Csr, aids: Aids) -> tuple[Floats, Floats]:
        """What members trained on the other documents say of each document held out, and what is right."""
        n = Y.shape[0]
        parts = self._held_out(n)
        lessons = [np.zeros((0, OF_A_MEMBER * len(plan) + OF_ALL), np.float32)]
        answers = [np.zeros(0, np.float32)]
        for number, part in enumerate(parts):
            rest = np.setdiff1d(np.arange(n), part)
            if Y[rest].nnz == 0:  # every label is in this part
                continue
            chosen = {view: _rows(whole, rest) for view, whole in tables.items()}
            self.members_ = self._train(plan, chosen, Y[rest], aids, f" (part {number + 1} of {len(parts)})")
            chosen = {view: _rows(whole, part) for view, whole in tables.items()}
            table, right = self._lesson(chosen, Y[part], _log_counts(Y[rest]))
            lessons.append(table)
            answers.append(right)
        return np.concatenate(lessons), np.concatenate(answers)

    def _held_out(self, n: int) -> list[Longs]:
        """The documents held out, in parts: one sample, or a fold each."""
        order = np.random.default_rng(self.seed).permutation(n)
        folds = self.folds or (FOLDS if n <= FOLDED_DOCUMENTS else 1)
        if n < FEW_DOCUMENTS:
            return []
        if folds == 1:
            return [np.sort(order[: min(round(SAMPLE_SHARE * n), SAMPLE_DOCUMENTS)])]
        return [np.sort(part) for part in np.array_split(order, min(folds, n))]

    def _lesson(self, tables: Tables, truth: Csr, log_counts: Floats) -> tuple[Floats, Floats]:
        """What the members say of unseen documents (step 2) as the combiner's table (step 3), and what is right.

        ``log_counts`` are those of the documents the members saw: a label is as rare here as it was for them.
        """
        listed, scores = self._ask(tables, truth.shape[0])
        labels, table, ends = self._table(listed, scores, self.shortlist, log_counts)
        rows = np.repeat(np.arange(truth.shape[0]), np.diff(ends))
        return table, np.asarray(truth[rows, labels], np.float32).ravel()

    def _ask(self, tables: Tables, n: int, places: int = 0) -> tuple[Ints, Floats]:
        """The labels and scores that every member lists, in twice the places of a shortlist. Shape (members, n, k)."""
        k = min(max(2 * self.shortlist, places), self.n_labels_)
        shape = (len(self.members_), n, k)
        listed, scores = np.empty(shape, np.int32), np.empty(shape, np.float32)
        for at, (member, view) in enumerate(zip(self.members_, self.member_views_, strict=True)):
            top = member._predict(tables[view], k)  # what goes in was checked
            listed[at], scores[at] = top.labels, top.scores
        return listed, scores

    def _table(self, listed: Ints, scores: Floats, depth: int, log_counts: Floats) -> tuple[Ints, Floats, Longs]:
        """Candidate labels, what is known of each, and where each document's end."""
        n, counts = listed.shape[1], np.zeros(listed.shape[1], np.int64)
        run_blocks(lambda start, stop: count_candidates(listed, start, stop, depth, counts), n, ROW_BLOCK)
        ends = np.concatenate([[0], np.cumsum(counts)])
        labels = np.empty(ends[-1], np.int32)
        table = np.empty((ends[-1], OF_A_MEMBER * len(listed) + OF_ALL), np.float32)

        def fill(start: int, stop: int) -> None:
            fill_table(listed, scores, start, stop, depth, log_counts, ends, labels, table)

        run_blocks(fill, n, ROW_BLOCK)
        return labels, table, ends

    def _predict(self, X: Csr, k: int) -> TopK:
        n = X.shape[0] if sp.issparse(X) else len(X)
        out = TopK.empty(n, k)
        for start in range(0, n, AT_ONCE):  # the table of all documents may not fit into memory
            some = slice(start, start + AT_ONCE)
            self._rank(X[some], TopK(out.labels[some], out.scores[some]))
        return out

    def _rank(self, X: Csr, out: TopK) -> None:
        """Write the best labels of some documents to ``out`` (step 6)."""
        n, depth = len(out), max(self.shortlist, out.k)
        labels, table, ends = self._table(*self._ask(self._looked_at(X), n, depth), depth, self.log_counts_)
        forest = self._forest
        chances: Floats = table[:, -2] / np.float32(len(self.members_))  # the mean score, where there was no lesson
        if len(forest.roots):
            chances = forest.probabilities(table)

        def rank(start: int, stop: int) -> None:
            best_of_table(labels, chances, ends, start, stop, out.labels, out.scores)

        run_blocks(rank, n, ROW_BLOCK)

    @property
    def _forest(self) -> Forest:
        return Forest(*(getattr(self, f"forest_{part}_") for part in Forest.state))

    def _looked_at(self, X: Csr) -> Tables:
        """Documents under every view."""
        return {GIVEN: X} | {view: features.transform(X) for view, features in self.views_.items()}

    def _forget(self) -> None:
        super()._forget()
        for key in ("members_", "views_"):
            self.__dict__.pop(key, None)

    def to_store(self) -> store.Parts:
        """The parts of this model, of its members and of its features."""
        parts = super().to_store()
        members = [parts.join(f"member{at}", member.to_store()) for at, member in enumerate(self.members_)]
        views = []
        for view, features in self.views_.items():
            packed, arrays = store.pack(features)
            views.append({"view": view, **parts.join(f"view:{view}", store.Parts(packed, arrays))})
        parts.values.update(members=members, views=views)
        return parts

    @classmethod
    def from_store(cls, found: store.Found, labels: LabelSpace | None) -> Self:
        """The fitted model that ``to_store`` took apart."""
        model = super().from_store(found, labels)
        model.members_ = [
            method(packed["method"]).from_store(found.below(f"member{at}", packed), labels)
            for at, packed in enumerate(found.values["members"])
        ]
        model.views_ = {}
        for packed in found.values["views"]:
            features = create_features(packed["name"], **packed["params"])
            store.unpack(features, packed, found.below(f"view:{packed['view']}", packed).arrays)
            model.views_[packed["view"]] = features
        if len(model.members_) != len(model.member_views_):
            raise ModelError(f"a blend must hold {len(model.member_views_)} members, but has others; train it again")
        return model


def _wide_view(texts: Sequence[str] | None) -> str:
    """The view for linear classifiers: they make use of many features, where time allows."""
    if texts is None or len(texts) > MANY_DOCUMENTS:
        return "words"
    return "pieces" if sum(map(len, texts)) <= SHORT_TEXT * len(texts) else "pairs"


def _least_texts(view: str, n: int) -> int:
    """In how many of n texts a term must occur; rare pairs of words are most of all pairs and teach little."""
    if n < FEW_DOCUMENTS:
        return 1
    return max(2, min(10, n // 4000)) if view == "pairs" else 2


def _log_counts(Y: Csr) -> Floats:
    return np.log1p(np.bincount(Y.indices, minlength=Y.shape[1])).astype(np.float32)


def _made(features: Features, texts: Any, progress: Progress) -> Csr:  # noqa: ANN401 - checked texts
    progress("features", 0, len(texts))
    X = features.fit_transform(texts)
    progress("features", len(texts), len(texts))
    return X


def _rows(table: Any, rows: Longs) -> Any:  # noqa: ANN401 - csr or texts
    return table[rows] if sp.issparse(table) else [table[row] for row in rows.tolist()]


def _named(progress: Progress, name: str) -> Callable[[str, int, int], None]:
    return lambda step, done, total: progress(f"{name}: {step}", done, total)
