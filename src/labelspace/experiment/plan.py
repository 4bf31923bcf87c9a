"""Plan the best blend within limits: choose its members, views and folds by their predicted costs.

1. List all blends: one linear member with one view, any of the other members, and one fold or more.
2. Predict the cost of each blend by the cost model, and keep the blends within the limits.
3. Take the blend with the greatest gain: the sum of the gains of its parts on our benchmarks.
4. After the training, measure size and latency; while they exceed a limit, leave out the member that gains least.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from labelspace.errors import ParameterError
from labelspace.experiment.cost_model import Cost, CostModel, parts_megabytes
from labelspace.experiment.evaluate import saved_megabytes
from labelspace.experiment.timing import latency, shown_duration, warm_up
from labelspace.features.language import detect_language
from labelspace.models.blend.members import (
    MAX_NETWORK_LABELS,
    MAX_PDSPARSE_CELLS,
    MAX_SLEEC_DOCUMENTS,
    NETWORKS,
    Member,
    base_views,
    encoder_for,
    wide_view,
    word_view,
)
from labelspace.models.blend.model import Blend
from labelspace.models.blend.training import MAX_OUT_OF_FOLD, MAX_STACKED, held_out_folds
from labelspace.models.fit_context import Budget
from labelspace.tagger import Tagger
from labelspace.types import Dataset

LINEAR = ("pdsparse", "label_tree")
# Gains over ``label_tree`` on texts, in points of nDCG@5: about the mean of EURLEX57K, CookingSE and BigBasket20K.
GAINS = {"semantic": 1.0, "pdsparse": 0.6, "lexical": 0.5, "neighbors": 0.4, "network": 0.1, "glas": 0.1}
# Gains on ready-made features: about the mean of Bibtex and Delicious.
GAINS_ON_FEATURES = {"sleec": 0.8, "neighbors": 0.6, "glas": 0.25, "network": 0.1}
GAINS_OF_RARE_LABELS = {"lexical": 1.7}  # points of PSP@5, where they differ from the gains of nDCG@5
GAIN_OF_WIDE_VIEW = 0.5  # of a linear member with bigrams or character n-grams in place of words
GAIN_OF_FOLDS = {1: 0.0, 2: 0.2, 3: 0.25, 5: 0.3}  # more folds give the stacking model more documents to learn from
STACKING_SECONDS = 1e-4  # CPU seconds of the stacking model, per document held out and member
TOGETHER = 1.3  # the latency of members one after another is more than the sum: they share the processor's cache
OVERHEAD_MS = 0.12  # of one document, in addition to members and views
OVERHEAD_MB = 0.3  # of a saved blend, in addition to members, views and label names
RESERVE = 0.9  # share of the budget that a plan may use: extrapolated costs are not exact


@dataclass(frozen=True)
class Limits:
    """The limits of a plan; None for no limit."""

    cpu_seconds: float | None = None  # of the training, summed over threads
    model_mb: float | None = None  # on disk
    latency_ms: float | None = None  # median time of one document, from its text

    def __bool__(self) -> bool:
        return self != Limits()

    def check(self) -> None:
        """Raise ParameterError unless all limits are positive numbers."""
        named = {"--budget": self.cpu_seconds, "--max-model-mb": self.model_mb, "--max-latency-ms": self.latency_ms}
        for option, value in named.items():
            if value is not None and not 0 < value < float("inf"):
                raise ParameterError(f"{option} must be a positive number, but is {value:g}; give such a number")


@dataclass(frozen=True)
class Plan:
    """A blend, its predicted costs, and the members that were left out, with reasons."""

    members: tuple[Member, ...]
    n_folds: int | None  # None: each member is trained once, and stacked on validation or training documents
    gain: float
    seconds: float
    mb: float
    latency_ms: float
    left_out: Mapping[str, str] = field(default_factory=dict)

    def params(self) -> dict[str, Any]:
        """Return the parameters of this blend."""
        folds = {} if self.n_folds is None else {"n_folds": self.n_folds}
        return {"members": ",".join(map(str, self.members)), **folds}

    def __str__(self) -> str:
        folds = "trained once" if self.n_folds is None else f"{self.n_folds} folds"
        folds = "one sample held out" if self.n_folds == 1 else folds
        return (
            f"{', '.join(map(str, self.members))}; {folds}; about {shown_duration(self.seconds)} of CPU time, "
            f"{self.mb:.3g} MB, {self.latency_ms:.2g} ms per document"
        )


class Planner:
    """Plans blends for training documents; ``n_validation`` other documents serve the stacking model."""

    def __init__(self, documents: Dataset, limits: Limits, optimize: str, n_validation: int, budget: Budget) -> None:
        limits.check()
        self.documents, self.limits, self.n_validation, self.budget = documents, limits, n_validation, budget
        self.costs = CostModel(documents, limits.cpu_seconds or math.inf, budget.clock)
        language = detect_language(documents.texts or []).name
        self.words = "words" if documents.X is not None else word_view(language)
        self.gains = dict(GAINS_ON_FEATURES if documents.X is not None else GAINS)
        if optimize.startswith("PS") and documents.X is None:
            self.gains |= GAINS_OF_RARE_LABELS
        self.label_mb = parts_megabytes({}, documents.labels) + OVERHEAD_MB

    def choose(self) -> Plan:
        """Return the best blend within the limits; raise ParameterError if there is none.

        The smallest blend is tried first, so that hopeless limits are refused before costly members are measured.
        """
        smallest = self._plan((Member("label_tree", self.words),), self._folds()[0])
        if smallest is None or self._exceeded(smallest) is not None:
            raise ParameterError(self._refusal(smallest))
        plans = [plan for plan in self._plans() if plan is not None and self._exceeded(plan) is None]
        best = max([smallest, *plans], key=lambda plan: (plan.gain, -plan.seconds))
        self.budget.expected = {
            str(member): cost.seconds for member in best.members if (cost := self.costs.member(member)) is not None
        }
        return replace(best, left_out=self._left_out(best))

    def gain(self, member: Member) -> float:
        """Return the gain of a member, in points."""
        wide = member.method in LINEAR and member.view != self.words and self.documents.X is None
        return self.gains.get(member.method, 0.0) + GAIN_OF_WIDE_VIEW * wide

    def _linear(self) -> list[Member]:
        if self.documents.X is not None:
            return [Member("label_tree", "words")]
        views = dict.fromkeys([self.words, wide_view(self.documents.texts or [], self.words)])
        methods = LINEAR if math.prod(self.documents.Y.shape) <= MAX_PDSPARSE_CELLS else ("label_tree",)
        return [Member(method, view) for method in methods for view in views]

    def _others(self) -> list[Member]:
        n, n_labels = self.documents.Y.shape
        members = [Member("neighbors", self.words)]
        if n_labels <= MAX_NETWORK_LABELS:
            members += [Member(name, self.words) for name in NETWORKS]
        if self.documents.X is not None and n <= MAX_SLEEC_DOCUMENTS:
            members.append(Member("sleec", "words"))
        if self.documents.X is None and self.documents.labels.are_named:
            members.append(Member("lexical", "text"))
            if encoder_for(self.documents.texts or []) == "granite":
                members.append(Member("semantic", "embeddings"))
        return members

    def _folds(self) -> list[int | None]:
        if self.n_validation or len(self.documents) > MAX_OUT_OF_FOLD:
            return [None]
        return [*sorted(GAIN_OF_FOLDS)]

    def _plans(self) -> Iterator[Plan | None]:
        others = self._others()
        for linear in self._linear():
            for chosen in product((False, True), repeat=len(others)):
                members = [member for member, is_in in zip(others, chosen, strict=True) if is_in]
                for n_folds in self._folds():
                    yield self._plan((linear, *members), n_folds)

    def _plan(self, members: tuple[Member, ...], n_folds: int | None) -> Plan | None:
        """Return the plan of a blend with its costs; None if measuring a member would take too long."""
        views = _known(map(self.costs.view, base_views(members)))
        known = None if views is None else _known(map(self.costs.member, members))
        if views is None or known is None:
            return None
        gain = sum(map(self.gain, members)) + (0.0 if n_folds is None else GAIN_OF_FOLDS[n_folds])
        seconds = self.budget.spent + self._seconds(known, views, n_folds)
        mb = self.label_mb + sum(cost.mb for cost in (*known, *views))
        latency_ms = OVERHEAD_MS + TOGETHER * sum(cost.latency_ms for cost in (*known, *views))
        return Plan(members, n_folds, gain, seconds, mb, latency_ms)

    def _seconds(self, members: Iterable[Cost], views: Iterable[Cost], n_folds: int | None) -> float:
        n = len(self.documents)
        held = [] if self.n_validation else [len(rows) for rows in held_out_folds(n, n_folds or 1, 0)]
        n_held = self.n_validation or min(sum(held), MAX_STACKED)
        trainings = 1.0 if n_folds is None else 1 + sum(1 - size / n for size in held)
        members = list(members)
        return (
            sum(view.seconds + self.n_validation * view.predict_seconds for view in views)
            + sum(trainings * cost.seconds + n_held * cost.predict_seconds for cost in members)
            + STACKING_SECONDS * n_held * len(members)
        )

    def _exceeded(self, plan: Plan) -> str | None:
        """Return in words the limit that a plan would exceed; None if it exceeds none."""
        limits = self.limits
        if limits.cpu_seconds is not None and plan.seconds > RESERVE * limits.cpu_seconds:
            return f"the training would take about {shown_duration(plan.seconds)}"
        if limits.model_mb is not None and plan.mb > limits.model_mb:
            return f"the model would have about {plan.mb:.3g} MB"
        if limits.latency_ms is not None and plan.latency_ms > limits.latency_ms:
            return f"a document would take about {plan.latency_ms:.2g} ms"
        return None

    def _refusal(self, smallest: Plan | None) -> str:
        n_documents, n_labels = self.documents.Y.shape
        many = f"{n_documents:,} documents and {n_labels:,} labels"
        if smallest is None:
            budget = f"--budget {self.limits.cpu_seconds:g}s"
            return f"nothing fits {budget} for {many}: planning itself takes longer; give more"
        options = {
            "--budget": (self.limits.cpu_seconds, f"{math.ceil(1.2 * smallest.seconds)}s", "s"),
            "--max-model-mb": (self.limits.model_mb, f"{1.2 * smallest.mb:.2g}", ""),
            "--max-latency-ms": (self.limits.latency_ms, f"{1.2 * smallest.latency_ms:.2g}", ""),
        }
        given = " ".join(f"{option} {limit:g}{unit}" for option, (limit, _, unit) in options.items() if limit)
        remedy = " ".join(f"{option} {least}" for option, (limit, least, _) in options.items() if limit)
        exceeded = self._exceeded(smallest)
        member = f"label_tree:{self.words} alone"
        return f"nothing fits {given} for {many}: even with {member} {exceeded}; give at least {remedy}"

    def _left_out(self, best: Plan) -> dict[str, str]:
        """Return the members that are not in a plan, with reasons."""
        methods = {member.method for member in best.members}
        more = {member: (*best.members, member) for member in self._others() if member.method not in methods}
        linear = next(member for member in best.members if member.method in LINEAR)
        better = [member for member in self._linear() if self.gain(member) > self.gain(linear)]
        if better:
            wanted = max(better, key=self.gain)
            more[wanted] = tuple(wanted if member == linear else member for member in best.members)
        reasons = {}
        for member, members in more.items():
            plan = self._plan(members, best.n_folds)
            reasons[str(member)] = "measuring it would take too long" if plan is None else self._exceeded(plan) or ""
        return reasons

    def keep_to_limits(self, tagger: Tagger) -> dict[str, str]:
        """Leave out members of a trained blend while it exceeds a limit; return these members, with reasons."""
        left_out: dict[str, str] = {}
        model = tagger.model
        assert isinstance(model, Blend)
        while exceeded := self._measured_excess(tagger, model):
            if len(model.members_) == 1:
                left_out["nothing more"] = f"{exceeded}, but one member must be left"
                break
            named = [Member(m.name, view) for m, view in zip(model.members_, model.member_views_, strict=True)]
            others = [at for at, member in enumerate(named) if member.method not in LINEAR]
            number = min(others, key=lambda at: self.gain(named[at]))
            left_out[str(named[number])] = exceeded
            model.leave_out(number)
        return left_out

    def _measured_excess(self, tagger: Tagger, model: Blend) -> str | None:
        if tagger.features_ is not None:
            tagger.features_.keep(model.widths_)
        limits, inputs = self.limits, tagger.inputs_of(self.documents)
        if limits.model_mb is not None:
            mb = saved_megabytes(tagger)
            if mb > limits.model_mb:
                return f"the model has {mb:.3g} MB"
        if limits.latency_ms is not None:
            warm_up(tagger.predict_topk, inputs)
            taken = latency(tagger.predict_topk, inputs)["latency_ms_p50"]
            if taken > limits.latency_ms:
                return f"a document takes {taken:.2g} ms"
        return None


def _known(costs: Iterable[Cost | None]) -> list[Cost] | None:
    """Return all costs; None if a cost is not known, and the costs after it are not measured then."""
    found = []
    for cost in costs:
        if cost is None:
            return None
        found.append(cost)
    return found
