"""The straight line: data -> fit -> predict -> metrics -> numbers. Fitting never sees the test documents."""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelspace import metrics, store
from labelspace.data.records import Record
from labelspace.data.source import Source
from labelspace.data.sparse_rows import parse_features
from labelspace.data.splits import hold_out
from labelspace.data.table import described
from labelspace.errors import DataError, LabelspaceError, ParameterError
from labelspace.features import Features
from labelspace.models.base import Inputs, silent
from labelspace.models.registry import DEFAULT, create, method
from labelspace.tagger import Tagger, Tags, features_for
from labelspace.types import Csr, Dataset, Hierarchy, Longs, Progress, TopK
from labelspace.version import __version__

BATCH = 1024  # documents of a stream in memory at a time
MOST_PLACES = 100  # to measure at, where there are fewer labels than that
LEVEL_PLACES = 100  # searched for the best label of each level of a hierarchy
SURE = 0.5  # the probability from which an answer of a level counts where a document may have none there
LATENCY_ROWS = 300  # single documents timed
LATENCY_SECONDS = 20.0  # and at most so long
VALIDATION_SHARE = 0.1  # cut from train where a method wants validation documents and there is no dev file
TEST_SHARE = 0.2  # cut from a data set that comes without a test file, for `compare`

Settings = Mapping[str, Any]


@dataclass
class Seconds:
    """Wall and CPU seconds of a piece of work."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def timed() -> Iterator[Seconds]:
    """Measure the block, CPU time of all threads included."""
    taken = Seconds()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield taken
    finally:
        taken.wall, taken.cpu = time.perf_counter() - wall, time.process_time() - cpu


@dataclass(frozen=True)
class Recipe:
    """What to train: a method and features by name, with the settings that differ from their defaults."""

    method: str = DEFAULT
    params: Settings = field(default_factory=dict)
    features: str = "tfidf"
    feature_params: Settings = field(default_factory=dict)
    seed: int | None = None

    def tagger(self) -> Tagger:
        """A tagger ready to fit; the seed goes to a method that has one."""
        seeded = self.seed is not None and "seed" in method(self.method).defaults()
        params = {**({"seed": self.seed} if seeded else {}), **self.params}
        model = create(self.method, **params)
        if model.reads_text and (self.feature_params or self.features != "tfidf"):
            given = next(iter(self.feature_params), None)
            raise ParameterError(
                f"{self.method} reads texts itself, but {f'features.{given}' if given else 'features'} is set; "
                "leave it out, or choose a method that is given features"
            )
        return Tagger(model, features_for(model, self.features, **self.feature_params))


def train(source: Source, recipe: Recipe, progress: Progress | None = None, checkpoint: Path | None = None) -> Tagger:
    """Fit a tagger on the training documents of a source, or on its labels where it has nothing else.

    ``checkpoint`` is a folder where a training that is cut off leaves what it needs to go on.
    """
    tagger = recipe.tagger()
    tagger.model.check_checkpoint(checkpoint)
    for part in (tagger.model, tagger.features):
        if part is not None:
            part.check_params()  # before the data are read: a typo should not cost minutes
    if source.labels_only:
        return tagger.fit_labels(source.labels())
    documents, validation = with_validation(labeled(source), source, recipe)
    return tagger.fit_dataset(documents, validation, progress, checkpoint=checkpoint)


def labeled(source: Source) -> Dataset:
    """The training documents, which must have labels."""
    documents = source.train()
    if documents.Y.nnz == 0:
        raise DataError(
            f"training needs labels, but no document of {source.train_path} has any; name the field or column 'labels'"
            ", or the columns of a table: --inputs title --outputs brand"
        )
    return documents


def with_validation(documents: Dataset, source: Source, recipe: Recipe) -> tuple[Dataset, Dataset | None]:
    """Train and, for a method that uses them, validation documents: the dev file, or a seeded cut from train."""
    if not method(recipe.method).uses_validation:
        return documents, None
    dev = source.dev(documents.labels)
    if dev is not None or method(recipe.method).holds_out:
        return documents, dev
    return hold_out(documents, VALIDATION_SHARE, recipe.seed or 0)


def evaluate(
    tagger: Tagger,
    documents: Dataset,
    ks: Sequence[int] = (1, 3, 5),
    propensity_from: metrics.PropensityFrom = "train",
    propensity_preset: str = "default",
    consistent: bool = False,
) -> dict[str, Any]:
    """The figures of a fitted tagger on labeled documents, with the time it takes for all and for one at a time.

    Labels that the model does not know count as missed. ``consistent`` measures answers closed upwards. Where the
    documents' labels have a hierarchy, or else the tagger's, the figures by level stand with the others; those
    by column, where the tagger learned from a table.
    """
    if propensity_preset not in metrics.PRESETS:
        listed = ", ".join(metrics.PRESETS)
        raise ParameterError(f"propensity_preset must be one of {listed}, but is {propensity_preset!r}; choose one")
    A, B = metrics.PRESETS[propensity_preset]
    if max(ks) > max(len(tagger.labels_), MOST_PLACES):
        raise ParameterError(f"k must be at most the number of labels, but is {max(ks)}; ask for fewer places")
    if tagger.takes_texts and documents.texts is None:
        raise DataError("this model reads texts, but the data holds ready-made features; give a file with texts")
    inputs = documents.texts if tagger.takes_texts else _widened(documents.inputs, tagger.model.n_features_)
    predict = partial(tagger.predict_topk, consistent=consistent)
    with timed() as taken:
        top = predict(inputs, max(ks))
    known = tagger.labels_
    if not known.n_documents:  # made of labels alone: there are no training counts
        propensity_from = "test"
    figures: dict[str, Any] = metrics.evaluate(
        documents.Y, top, known.counts, known.n_documents, ks=ks, A=A, B=B, propensity_from=propensity_from
    )
    if tagger.model.gives_probabilities:
        error = metrics.expected_calibration_error(documents.Y, top, max(ks))
        figures[f"ECE@{max(ks)}"] = round(100 * error, 4)
    assert known.counts is not None  # fit_dataset counts
    figures["by_frequency"] = _percent(metrics.by_frequency(documents.Y, top, known.counts, max(ks)))
    hierarchy = documents.labels.hierarchy
    if hierarchy is None and known.hierarchy is not None:
        hierarchy = known.extended(documents.labels.names).hierarchy
    says_none = tagger.model.gives_probabilities or (tagger.model.answers_none and tagger.columns_ is not None)
    least = SURE if says_none else None
    if hierarchy is not None or tagger.columns_ is not None:
        deep = predict(inputs, max(max(ks), min(LEVEL_PLACES, len(known))))
    if hierarchy is not None:
        figures |= by_hierarchy(documents.Y, top, deep, hierarchy, known.counts, ks, least)
    if tagger.columns_ is not None:
        groups = tagger.columns_.masks(documents.labels.names)
        by_column = metrics.by_group(documents.Y, deep, groups, known.counts, least=least, unlabelled=True)
        figures["by_column"] = _percent(by_column)
    figures["predict_seconds"] = round(taken.wall, 4)
    figures["predict_cpu_seconds"] = round(taken.cpu, 4)
    return {**figures, **latency(lambda one: predict(one, max(ks)), inputs)}


def by_hierarchy(
    Y: Csr,
    top: TopK,
    deep: TopK,
    hierarchy: Hierarchy,
    counts: Longs,
    ks: Sequence[int],
    least: float | None = None,
) -> dict[str, Any]:
    """The figures that a hierarchy of the labels makes possible, in percent.

    ``deep`` is ``top`` with more places, among which the best label of each level is looked for.
    """
    figures = {key: value for k in ks for key, value in metrics.hierarchical_at_k(Y, top, hierarchy, k).items()}
    figures |= {f"consistent@{k}": metrics.consistent_at_k(top, hierarchy, k) for k in ks}
    figures["deepest_accuracy"] = metrics.deepest_accuracy(Y, deep, hierarchy)
    answers = metrics.answers_by_level(Y, deep, hierarchy, counts, least=least)
    of_sets = metrics.f1_by_level(Y, top, hierarchy, max(ks))
    by_level = _percent({level: {**of_sets[level], **answers[level]} for level in of_sets})
    return {**{key: round(100 * value, 4) for key, value in figures.items()}, "by_level": by_level}


def _widened(X: Any, n_features: int) -> Any:  # noqa: ANN401 - texts pass through
    """Features of a file that does not happen to hold the last ones, at the width the model knows."""
    if not sp.issparse(X) or X.shape[1] >= n_features:
        return X
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def _percent(groups: Mapping[Any, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Fractions as percentages, counts as they are."""
    return {
        str(group): {key: value if isinstance(value, int) else round(100 * value, 4) for key, value in values.items()}
        for group, values in groups.items()
    }


def latency(predict: Callable[[Inputs], object], inputs: Inputs, seed: int = 0) -> dict[str, float]:
    """Milliseconds for one document at a time, over a seeded sample of them."""
    n = len(inputs) if isinstance(inputs, Sequence) else inputs.shape[0]
    taken: list[float] = []
    for row in np.random.default_rng(seed).permutation(n)[:LATENCY_ROWS].tolist():
        one = inputs[row : row + 1]
        with timed() as single:
            predict(one)
        taken.append(1e3 * single.wall)
        if sum(taken) > 1e3 * LATENCY_SECONDS:
            break
    return {f"latency_ms_p{p}": round(float(np.percentile(taken, p)), 4) for p in (50, 99)}


def predict_records(
    tagger: Tagger,
    records: Iterator[Record],
    k: int,
    name: str,
    least: float | None = None,
    consistent: bool = False,
) -> Iterator[tuple[Record, Tags]]:
    """Tag a stream of records, a batch in memory at a time; ``name`` is where they come from, for messages.

    Labels of a probability below ``least`` are left out; ``consistent`` closes the answers upwards.
    """
    while batch := list(islice(records, BATCH)):
        if tagger.takes_texts:
            inputs: Inputs = [_field(record, record.text, "text", name) for record in batch]
        else:
            rows = [_field(record, record.features, "features", name) for record in batch]
            inputs = parse_features(rows, tagger.model.n_features_, lambda row: f"{name}:{batch[row].line}")  # noqa: B023
        yield from zip(batch, tagger.named(tagger.confident(inputs, k, least, consistent)), strict=True)


def _field(record: Record, value: str | None, field: str, name: str) -> str:
    if value is None:
        raise DataError(f"{name}:{record.line}: expected {field!r}, which this model reads, but there is none; add it")
    return value


def compare(
    source: Source,
    recipes: Sequence[Recipe],
    out: str | Path,
    ks: Sequence[int] = (1, 3, 5),
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run several methods under one protocol; write ``results.json``, ``results.csv`` and the models to a folder.

    A method that fails is reported in its row, and the others go on.
    """
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    train_set, test_set = labeled(source), None
    if not source.has_test:
        train_set, test_set = hold_out(train_set, TEST_SHARE, seed)
        if train_set.columns is not None:  # the rows held out must not say what lies below what
            space = described(train_set.labels, train_set.Y, train_set.columns)
            train_set, test_set = replace(train_set, labels=space), replace(test_set, labels=space)
    shared = SharedFeatures(train_set)
    fitted = [_attempt(recipe, train_set, shared, source, out, progress or silent) for recipe in recipes]
    del shared
    if test_set is None:  # read only now: nothing above could have looked at it
        test_set = source.test(train_set.labels)
    assert test_set is not None
    rows = [_judged(row, test_set, ks) for row in fitted]
    results = {
        "data": source.path.name,
        "n_train": len(train_set),
        "n_test": len(test_set),
        "n_labels": len(train_set.labels),
        "test": "the test file" if source.has_test else f"a seeded {TEST_SHARE:.0%} of the documents",
        "seed": seed,
        "labelspace": __version__,
        "rows": rows,
    }
    write_results(results, out)
    return results


class SharedFeatures:
    """Features of the training texts, made once for all methods that ask for the same."""

    def __init__(self, documents: Dataset) -> None:
        self.documents = documents
        self._made: dict[str, tuple[Features, Csr, Seconds]] = {}

    def get(self, features: Features) -> tuple[Features, Csr, Seconds]:
        """The fitted features, the matrix of the training texts, and the time that took."""
        key = repr(features)
        if key not in self._made:
            with timed() as taken:
                X = features.fit_transform(self.documents.texts or [])
            self._made[key] = (features, X, taken)
        return self._made[key]


def _attempt(
    recipe: Recipe, train_set: Dataset, shared: SharedFeatures, source: Source, out: Path, progress: Progress
) -> dict[str, Any]:
    """Fit and save one method; a failure becomes the row's ``error``."""
    row: dict[str, Any] = {"method": recipe.method, "params": dict(recipe.params)}
    try:
        tagger = recipe.tagger()
        tagger.model.check_params()
        documents, validation = with_validation(train_set, source, recipe)
        X, made = None, Seconds()
        ready = train_set.X is not None or tagger.model.reads_text
        if tagger.features is not None and not ready and documents is train_set:
            tagger.features, X, made = shared.get(tagger.features)
        with timed() as taken:
            tagger.fit_dataset(documents, validation, progress, X=X)
        folder = out / "models" / recipe.method
        tagger.save(folder)
        row |= {"train_seconds": round(taken.wall, 3), "train_cpu_seconds": round(taken.cpu, 3)}
        row |= {"features_seconds": round(made.wall, 3), "model_mb": megabytes(folder), "model": str(folder)}
    except (LabelspaceError, MemoryError, ArithmeticError) as error:
        row["error"] = str(error) or type(error).__name__
    return row


def _judged(row: dict[str, Any], test_set: Dataset, ks: Sequence[int]) -> dict[str, Any]:
    """Add the figures of the saved model to its row; read back, so that one model at a time is in memory."""
    if "error" in row:
        return row
    try:
        return {**row, **evaluate(Tagger.load(row["model"]), test_set, ks)}
    except LabelspaceError as error:
        return {**row, "error": str(error)}


def write_results(results: Mapping[str, Any], out: Path) -> None:
    """``results.json`` in full, and ``results.csv`` with one line a method."""
    columns = list(dict.fromkeys(key for row in results["rows"] for key, value in row.items() if not _nested(value)))
    for name in ("results.json", "results.csv"):
        beside = out / f".{name}.writing-{os.getpid()}"
        with beside.open("w", encoding="utf-8", newline="") as file:
            if name.endswith(".json"):
                file.write(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
            else:
                writer = csv.DictWriter(file, columns, extrasaction="ignore")
                writer.writeheader()
                writer.writerows(results["rows"])
        beside.replace(out / name)


def _nested(value: object) -> bool:
    return isinstance(value, (dict, list))


def megabytes(folder: str | Path) -> float:
    """What a saved model weighs."""
    return round(store.folder_bytes(folder) / 1e6, 3)
