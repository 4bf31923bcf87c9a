"""Predict the costs of the members of a blend on all documents from their costs on up to a thousand documents.

1. Draw ``PROBE_SIZES`` training documents by the seed, make their views, and train the member on each sample.
2. Extrapolate. CPU seconds of training grow by the power ``GROWTH`` of the number of documents, which was measured on
   data sets of short texts, of long texts and of features. Seconds of prediction, megabytes and latency grow by the
   power between the two samples, within bounds.

On 16,000 documents of EURLEX57K, 12,404 of CookingSE and 12,920 of Delicious, the predicted training times were right
within a third for members that take more than a second.

A member is measured when its cost is first requested, and not at all if the measurement itself would cost too much.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from labelspace import store
from labelspace.estimator import Stateful
from labelspace.features.views import GIVEN, Views, ViewTransformer
from labelspace.models.base import Model
from labelspace.models.blend.members import Member, base_views, member_params, member_view, view_for
from labelspace.models.blend.training import predict_member
from labelspace.models.fit_context import FitContext
from labelspace.models.registry import create
from labelspace.types import Dataset, LabelSpace

WARM_UP = 50  # documents of the first, untimed trainings, which compile kernels or load compiled ones
PROBE_SIZES = (250, 1000)  # documents: larger samples predict better and use up more of the budget
# Measured powers by which the CPU seconds of training grow with the number of documents, where they are not about 1.
GROWTH = dict(
    neighbors=0.35, lexical=0.8, label_tree=1.1, pdsparse=1.15, network=0.75, glas=0.7, sleec=1.4, fastxml=1.1
)
# Bounds of the powers that are measured here: two small samples are noisy, and an extrapolation multiplies the noise.
PREDICT_GROWTH = (0.0, 0.5)
SIZE_GROWTH = (0.0, 0.8)
LATENCY_GROWTH = (0.0, 0.4)
PREDICTED = 200  # documents that prediction is timed on, all together
TIMED_ALONE = 30  # documents that latency is timed on, one at a time
LARGEST_PROBE = 0.04  # share of the budget: a sample that would take more is not measured
K = 20  # labels that a member predicts: twice the default number of candidates, as in a blend


@dataclass(frozen=True)
class Cost:
    """The cost of a member or a view on all documents."""

    seconds: float  # CPU, to train once
    predict_seconds: float  # CPU, for one document of many
    mb: float
    latency_ms: float


class CostModel:
    """Costs on all documents, extrapolated from measurements on samples of them."""

    def __init__(self, documents: Dataset, most_seconds: float, clock: Callable[[], float], seed: int = 0) -> None:
        self.documents, self.most_seconds, self.clock, self.seed = documents, most_seconds, clock, seed
        self.n = len(documents)
        self.sizes = sorted({min(size, self.n) for size in PROBE_SIZES})
        self._measured: dict[Member | str, Cost | None] = {}
        self._views: dict[tuple[str, int], Views] = {}  # of samples, by the name of a view and the number of documents

    @cached_property
    def _order(self) -> list[int]:
        rows: list[int] = np.random.default_rng(self.seed).permutation(self.n).tolist()
        return rows

    def _sample(self, size: int) -> Dataset:
        return self.documents.rows(self._order[:size])

    def view(self, name: str) -> Cost | None:
        """Return the cost of a view, 0 for ready-made features; None if measuring it would take too long."""
        if self.documents.X is not None:
            return Cost(0.0, 0.0, 0.0, 0.0)
        if name not in self._measured:
            self._measured[name] = self._of(lambda size: self._probe_view(name, size), 1.0)
        return self._measured[name]

    def member(self, member: Member) -> Cost | None:
        """Return the cost of a member without its view; None if measuring it would take too long."""
        if member not in self._measured:
            growth = GROWTH.get(member.method, 1.0)
            self._measured[member] = self._of(lambda size: self._probe_member(member, size), growth)
        return self._measured[member]

    def _of(self, probe: Callable[[int], Cost], growth: float) -> Cost | None:
        """Measure at all sizes and extrapolate; return None if a sample would take too long."""
        costs, before = [], min(WARM_UP, self.n)
        probe(before)  # compiles kernels, or loads compiled ones
        last = probe(before)
        for size in self.sizes:
            if last.seconds * (size / before) ** min(growth, 1.0) > LARGEST_PROBE * self.most_seconds:
                return None
            last, before = probe(size), size
            costs.append(last)
        ratio = self.n / self.sizes[-1]

        def grown(key: str, bounds: tuple[float, float]) -> float:
            values = [max(getattr(cost, key), 1e-9) for cost in costs]
            power = np.log(values[-1] / values[0]) / np.log(self.sizes[-1] / self.sizes[0]) if len(costs) > 1 else 0.0
            return float(values[-1] * ratio ** np.clip(power, *bounds))

        return Cost(
            last.seconds * ratio**growth,
            grown("predict_seconds", PREDICT_GROWTH),
            grown("mb", SIZE_GROWTH),
            grown("latency_ms", LATENCY_GROWTH),
        )

    def _probe_view(self, name: str, size: int) -> Cost:
        texts = self._sample(size).texts or []
        features = ViewTransformer([member_view(name, self.n)])
        seconds, _ = self._timed(lambda: features.fit_transform(texts))
        many, _ = self._timed(lambda: features.transform(texts[:PREDICTED]))
        alone = [self._timed(partial(features.transform, [text]))[0] for text in texts[:TIMED_ALONE]]
        mb = parts_megabytes({"features": features})
        return Cost(seconds, many / len(texts[:PREDICTED]), mb, 1e3 * float(np.median(alone)))

    def _views_of(self, member: Member, size: int) -> Views:
        sample = self._sample(size)
        if sample.X is not None:
            return Views({GIVEN: sample.X})
        names = base_views([member])
        for name in names:
            if (name, size) not in self._views:
                features = ViewTransformer([member_view(name, self.n)])
                self._views[name, size] = features.fit_transform(sample.texts or [])
        made = {name: self._views[name, size] for name in names}
        widths = {name: views.widths[name] for name, views in made.items()}
        return Views({name: views[name] for name, views in made.items()}, widths, checked=True)

    def _probe_member(self, member: Member, size: int) -> Cost:
        views, Y = self._views_of(member, size), self._sample(size).Y
        model = create(member.method, **member_params(member, self.seed))
        labels = self.documents.labels if self.documents.labels.are_named else None
        context = FitContext(labels=labels)

        def fit() -> Model:
            return model.fit_checked(view_for(model, views, member.view), Y, context).keep_for_prediction()

        k = min(K, Y.shape[1])
        seconds, trained = self._timed(fit)
        some = views.rows(np.arange(min(PREDICTED, size)))
        predict_member(trained, some, member.view, k)
        many, _ = self._timed(lambda: predict_member(trained, some, member.view, k))
        rows = [views.rows([row]) for row in range(min(TIMED_ALONE, size))]
        alone = [self._timed(partial(predict_member, trained, row, member.view, k))[0] for row in rows]
        mb = parts_megabytes({"model": trained})
        return Cost(seconds, many / some.n, mb, 1e3 * float(np.median(alone)))

    def _timed(self, work: Callable[[], Any]) -> tuple[float, Any]:
        """Return the CPU seconds of a piece of work, and its result."""
        begin = self.clock()
        result = work()
        return self.clock() - begin, result


def parts_megabytes(parts: Mapping[str, Stateful], labels: LabelSpace | None = None) -> float:
    """Return the size of parts of a model on disk, in megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        store.save(f"{folder}/model", {}, parts, labels)
        return store.folder_bytes(f"{folder}/model") / 1e6
