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
KS = (1, 3, 5)  # ranks of further metrics, which are reported next to the searched one


@dataclass(frozen=True)
class Documents:
    """The documents that trials are trained and measured on."""

    train: Dataset
    validation: Dataset
    validated_on: str  # the origin of the validation documents, in words

    @classmethod
    def read(cls, source: Source, seed: int, inspect: Callable[[Dataset], None] | None = None) -> "Documents":
        """Read the training documents, and ``dev.*`` or else a seeded part of the training documents."""
        documents = labeled(source, inspect)
        dev = source.dev(documents.labels)
        if dev is None:
            train, dev = hold_out_test(documents, seed)
            name = f"a seeded {TEST_SHARE:.0%} of the training documents"
        else:
            train = documents
            name = "the validation file"
        if dev.Y.nnz == 0:
            raise DataError(f"validation needs labels, but no document of {name} has any; give more documents")
        return cls(train, dev, name)

    @property
    def fingerprint(self) -> str:
        """A hash of all documents."""
        digest = blake2b(digest_size=16)
        for part in (self.train, self.validation):
            for array in _arrays(part):
                digest.update(str(array.shape).encode() + np.ascontiguousarray(array).tobytes())
            for text in (*(part.texts or ()), *part.labels.names):
                digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        return digest.hexdigest()


def _arrays(documents: Dataset) -> Iterable[Any]:
    """Yield the numbers of a data set: labels, features, filtered labels, hierarchy."""
    hierarchy = documents.labels.hierarchy
    parents = None if hierarchy is None else hierarchy.parents
    for matrix in (documents.Y, documents.X, documents.filtered, parents):
        if matrix is not None:
            yield from (matrix.data, matrix.indices, matrix.indptr)


class TrialRunner:
    """Runs trials; features with the same settings are made once for all trials."""

    def __init__(self, space: SearchSpace, documents: Documents, metric: str) -> None:
        self.space, self.documents, self.metric = space, documents, metric
        self.k = metric_k(metric)
        check_ks((self.k,), len(documents.train.labels))
        self._cache = FeatureCache()

    def run(self, drawn: Mapping[str, Any]) -> Outcome:
        """Train with these values and measure; a failure becomes an outcome."""
        train = self.documents.train
        try:
            tagger = self.space.with_values(drawn).tagger()
            if train.X is None:  # untimed, so that the first trial does not pay for the features of all trials
                for view in tagger.views(train):
                    self._cache.get(view.create(), train.texts or [])
            with timed() as taken:
                tagger.fit_dataset(train, cache=self._cache)
            figures = self._figures(tagger)
        except MissingExtraError:  # every other trial would fail too
            raise
        except (LabelspaceError, MemoryError, ArithmeticError) as error:
            return Outcome(dict(drawn), error=str(error) or type(error).__name__)
        return Outcome(dict(drawn), figures[self.metric], figures, round(taken.cpu, 3))

    def _figures(self, tagger: Tagger) -> dict[str, float]:
        """Return the metrics of the validation documents, in percent."""
        validation, known = without_filtered(self.documents.validation), tagger.labels_
        inputs, depth = tagger.inputs_of(validation), max(*KS, self.k)
        top = predict_unfiltered(tagger.predict_topk, inputs, validation.filtered, depth)
        figures: dict[str, float] = {}
        for ks in (KS, (self.k,)):  # some metrics are measured only at the largest k
            figures |= metrics.evaluate(validation.Y, top, known.counts, known.n_documents, ks)
        return {name: value for name, value in figures.items() if "@" in name}


def run_trial(runner: TrialRunner, drawn: Mapping[str, Any]) -> Outcome:
    """Run a trial, as a task of a cluster."""
    return runner.run(drawn)


def run_trials(runner: TrialRunner, batch: Sequence[Mapping[str, Any]], executor: Executor | None) -> Iterator[Outcome]:
    """Yield the outcomes of a batch in its order, run here or on a cluster with a CPU for each trial."""
    if executor is None:
        yield from map(runner.run, batch)
        return
    early: dict[int, Outcome] = {}  # outcomes that wait for an earlier trial
    following = 0
    for at, outcome in executor.map_unordered(run_trial, runner, batch):
        early[at] = outcome
        while following in early:
            yield early.pop(following)
            following += 1


def metric_k(metric: str) -> int:
    """Return the rank k of a metric.

    >>> metric_k("nDCG@5")
    5
    """
    match = METRIC.fullmatch(metric)
    if match is None:
        named = "P@k, nDCG@k, PSP@k, PSnDCG@k, R@k, RP@k or coverage@k"
        raise ParameterError(f"--metric must be {named}, but is {metric!r}; write for example nDCG@5")
    return int(match[2])
