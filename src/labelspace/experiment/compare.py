"""Compare: several methods under one protocol, on the same documents and features, with a test of the differences."""

import csv
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelspace import metrics, store
from labelspace.data.source import Source
from labelspace.data.splits import hold_out
from labelspace.data.table import describe_labels
from labelspace.errors import LabelspaceError
from labelspace.experiment.evaluate import check_ks, evaluate_documents, megabytes, percent
from labelspace.experiment.timing import Seconds, timed
from labelspace.experiment.train import Recipe, labeled
from labelspace.features.base import Features
from labelspace.features.views import FeatureCache, Table
from labelspace.metrics import paired_test
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Progress, no_progress
from labelspace.version import __version__

TEST_SHARE = 0.2  # cut from a data set that comes without a test file
CURVES = ("reliability", "precision_coverage")  # of an evaluation, which a comparison does not keep

PerDocument = Mapping[str, metrics.DocumentValues]


def compare(
    source: Source,
    recipes: Sequence[Recipe],
    out: str | Path,
    ks: Sequence[int] = (1, 3, 5),
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run several methods under one protocol; write ``results.json``, ``results.csv`` and the models to a folder.

    Unknown methods and parameters are an error before any data are read. A method that fails on the data is reported
    in its row, and the others go on. ``paired_test`` says for each metric which method is the best, and whether the
    others are significantly worse on these documents (``metrics.paired_test``).
    """
    out = Path(out)
    check_comparison(recipes, out)
    out.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    train_set, test_set = labeled(source), None
    check_ks(ks, len(train_set.labels))
    if not source.has_test:
        train_set, test_set = hold_out_test(train_set, seed)
    cache = TimedCache()
    fitted = [_attempt(recipe, train_set, cache, source, out, progress) for recipe in recipes]
    del cache
    if test_set is None:  # read only now: nothing above could have looked at it
        test_set = source.test(train_set.labels)
    assert test_set is not None
    evaluated = [_evaluated(row, test_set, ks) for row in fitted]
    per_document = {row["method"]: values for row, values in evaluated if "error" not in row}
    results = {
        "data": source.path.name,
        "n_train": len(train_set),
        "n_test": len(test_set),
        "n_labels": len(train_set.labels),
        "test": tested_on(source),
        "seed": seed,
        "labelspace": __version__,
        "rows": [row for row, _ in evaluated],
        "paired_test": tested(per_document, seed),
    }
    write_results(results, out)
    return results


def hold_out_test(documents: Dataset, seed: int) -> tuple[Dataset, Dataset]:
    """Training and test documents of a data set without a test file."""
    train_set, test_set = hold_out(documents, TEST_SHARE, seed)
    if train_set.columns is not None:  # the rows held out must not say what lies below what
        space = describe_labels(train_set.labels, train_set.Y, train_set.columns)
        train_set, test_set = replace(train_set, labels=space), replace(test_set, labels=space)
    return train_set, test_set


def tested_on(source: Source) -> str:
    """What the test documents are."""
    return "the test file" if source.has_test else f"a seeded {TEST_SHARE:.0%} of the documents"


def check_comparison(recipes: Sequence[Recipe], out: Path) -> None:
    """Refuse what is known to fail before any data are read: methods, parameters, folders of models."""
    for recipe in recipes:
        recipe.check()
        store.check_writable(model_folder(out, recipe))


class TimedCache(FeatureCache):
    """Features of the training texts, made once for all methods that ask for the same, with the time each took."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: dict[str, Seconds] = {}

    def get(self, features: Features, texts: Sequence[str], progress: Progress = no_progress) -> tuple[Features, Table]:
        """The fitted features and what they make of the texts."""
        with timed() as taken:
            made = super().get(features, texts, progress)
        self.taken.setdefault(repr(features), taken)
        return made


def model_folder(out: Path, recipe: Recipe) -> Path:
    """Where the model of a recipe is saved."""
    return out / "models" / recipe.method


def _attempt(
    recipe: Recipe, train_set: Dataset, cache: TimedCache, source: Source, out: Path, progress: Progress | None
) -> dict[str, Any]:
    """Fit and save one method; a failure becomes the row's ``error``."""
    row: dict[str, Any] = {"method": recipe.method, "params": dict(recipe.params)}
    try:
        tagger = recipe.tagger()
        views = [] if train_set.X is not None else tagger.views(train_set)
        for view in views:  # apart from the training: whoever asks first does not pay for all
            cache.get(view.create(), train_set.texts or [])
        made = sum(cache.taken[repr(view.create())].wall for view in views)
        with timed() as taken:
            tagger.fit_dataset(train_set, lambda: source.dev(train_set.labels), progress, cache=cache)
        folder = model_folder(out, recipe)
        tagger.save(folder)
        row |= {"train_seconds": round(taken.wall, 3), "train_cpu_seconds": round(taken.cpu, 3)}
        row |= {"compile_seconds": round(taken.compiling, 3)}
        row |= {"features_seconds": round(made, 3), "model_mb": megabytes(folder), "model": str(folder)}
    except (LabelspaceError, MemoryError, ArithmeticError) as error:
        row["error"] = str(error) or type(error).__name__
    return row


def _evaluated(row: dict[str, Any], test_set: Dataset, ks: Sequence[int]) -> tuple[dict[str, Any], PerDocument]:
    """Add the figures of the saved model to its row; read back, so that one model at a time is in memory."""
    if "error" in row:
        return row, {}
    try:
        found = evaluate_documents(Tagger.load(row["model"]), test_set, ks)
    except LabelspaceError as error:
        return {**row, "error": str(error)}, {}
    return {**row, **{key: value for key, value in found.figures.items() if key not in CURVES}}, found.per_document


def tested(per_document: Mapping[str, PerDocument], seed: int) -> dict[str, Any]:
    """For each metric the best method, and how far the others are behind it, in percent; p-values as fractions."""
    tests = paired_test.compare_with_best(per_document, seed=seed)
    for test in tests.values():
        for other in test["others"].values():
            other["difference"] = percent(other["difference"])
            other["interval"] = [percent(bound) for bound in other["interval"]]
            other |= {key: round(other[key], 6) for key in ("p", "p_holm")}
    return {"n_resamples": paired_test.N_RESAMPLES, "significance": paired_test.SIGNIFICANT, "metrics": tests}


def write_results(results: Mapping[str, Any], out: Path) -> None:
    """``results.json`` in full, and ``results.csv`` with one line a method."""
    items = ((key, value) for row in results["rows"] for key, value in row.items())
    columns = list(dict.fromkeys(key for key, value in items if not isinstance(value, (dict, list))))
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
