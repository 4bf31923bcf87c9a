"""One trial: train on the training documents, and measure on the validation documents; the test is never read."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from labelspace import metrics
from labelspace.data.source import Source
from labelspace.errors import DataError, LabelspaceError, MissingExtraError, ParameterError
from labelspace.experiment.evaluate import check_ks, predict_unfiltered, without_filtered
from labelspace.experiment.splits import TEST_SHARE, hold_out_test, labeled
from labelspace.experiment.timing import timed
from labelspace.experiment.tuning.space import SearchSpace
from labelspace.experiment.tuning.study import Outcome
from labelspace.features.views import FeatureCache
from labelspace.models.fit_context import Executor
from labelspace.tagger import Tagger
from labelspace.types import Dataset

METRIC = re.compile(r"(P|nDCG|PSP|PSnDCG|R|RP|coverage)@([1-9]\d{0,8})")
KS = (1, 3, 5)  # measured beside the metric


@dataclass(frozen=True)
class Documents:
    """What trials are trained and measured on."""

    train: Dataset
    validation: Dataset
    validated_on: str  # in words

    @classmethod
    def read(cls, source: Source, seed: int, inspect: Callable[[Dataset], None] | None = None) -> "Documents":
        """The training documents and those of ``dev.*``, or else a seeded part of the training documents."""
        documents = labeled(source, inspect)
        dev = source.dev(documents.labels)
        if dev is None:
            train, dev, name = *hold_out_test(documents, seed), f"a seeded {TEST_SHARE:.0%} of the training documents"
        else:
            train, name = documents, "the validation file"
        if dev.Y.nnz == 0:
            raise DataError(f"validation needs labels, but no document of {name} has any; give more documents")
        return cls(train, dev, name)

    @property
    def fingerprint(self) -> str:
        """A hash of all of them."""
        digest = blake2b(digest_size=16)
        for part in (self.train, self.validation):
            for array in _arrays(part):
                digest.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
            for text in (*(part.texts or ()), *part.labels.names):
                digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return digest.hexdigest()


def _arrays(documents: Dataset) -> Iterable[Any]:
    """The numbers of a data set: labels, features, labels that do not count, hierarchy."""
    hierarchy = documents.labels.hierarchy
    parents = None if hierarchy is None else hierarchy.parents
    for matrix in (documents.Y, documents.X, documents.filtered, parents):
        if matrix is not None:
            yield from (matrix.data, matrix.indices, matrix.indptr)


class TrialRunner:
    """Runs trials; features of the same settings are made once for all of them."""

    def __init__(self, space: SearchSpace, documents: Documents, metric: str) -> None:
        self.space, self.documents, self.metric = space, documents, metric
        self.k = metric_k(metric)
        check_ks((self.k,), len(documents.train.labels))
        self._cache = FeatureCache()

    def run(self, drawn: Mapping[str, Any]) -> Outcome:
        """Train with these values and measure; a failure is an outcome too."""
        train = self.documents.train
        try:
            tagger = self.space.with_values(drawn).tagger()
            for view in [] if train.X is not None else tagger.views(train):  # whoever asks first does not pay for all
                self._cache.get(view.create(), train.texts or [])
            with timed() as taken:
                tagger.fit_dataset(train, cache=self._cache)
            figures = self._figures(tagger)
        except MissingExtraError:  # no other trial would fare better
            raise
        except (LabelspaceError, MemoryError, ArithmeticError) as error:
            return Outcome(dict(drawn), error=str(error) or type(error).__name__)
        return Outcome(dict(drawn), figures[self.metric], figures, round(taken.cpu, 3))

    def _figures(self, tagger: Tagger) -> dict[str, float]:
        """The metrics of the validation documents, in percent."""
        validation, known = without_filtered(self.documents.validation), tagger.labels_
        inputs, depth = tagger.inputs_of(validation), max(*KS, self.k)
        top = predict_unfiltered(tagger.predict_topk, inputs, validation.filtered, depth)
        figures: dict[str, float] = {}
        for ks in (KS, (self.k,)):  # some metrics are measured at the largest k alone
            figures |= metrics.evaluate(validation.Y, top, known.counts, known.n_documents, ks)
        return {name: value for name, value in figures.items() if "@" in name}


def run_trial(runner: TrialRunner, drawn: Mapping[str, Any]) -> Outcome:
    """Run a trial: a task of a cluster."""
    return runner.run(drawn)


def run_trials(runner: TrialRunner, batch: Sequence[Mapping[str, Any]], executor: Executor | None) -> Iterator[Outcome]:
    """The outcomes of a batch in its order, here or on a cluster; there each trial has a CPU."""
    if executor is None:
        yield from map(runner.run, batch)
        return
    early: dict[int, Outcome] = {}  # those whose turn it is not yet
    following = 0
    for at, outcome in executor.map_unordered(run_trial, runner, batch):
        early[at] = outcome
        while following in early:
            yield early.pop(following)
            following += 1


def metric_k(metric: str) -> int:
    """The rank that a metric is measured at.

    >>> metric_k("nDCG@5")
    5
    """
    match = METRIC.fullmatch(metric)
    if match is None:
        named = "P@k, nDCG@k, PSP@k, PSnDCG@k, R@k, RP@k or coverage@k"
        raise ParameterError(f"--metric must be {named}, but is {metric!r}; write for example nDCG@5")
    return int(match[2])
