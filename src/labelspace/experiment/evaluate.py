"""Evaluate: the figures of a fitted tagger on labeled documents."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from labelspace import metrics, store
from labelspace.errors import ParameterError
from labelspace.experiment.timing import latency, timed, warm_up
from labelspace.labels.masks import labels_among
from labelspace.labels.selection import Selection
from labelspace.models.capabilities import Calibrated, ProbabilitiesByColumn
from labelspace.tagger import SelectOptions, Tagger
from labelspace.types import Csr, Dataset, Hierarchy, Longs, TopK

MAX_K = 100  # to measure at, where there are fewer labels than that
LEVEL_K = 100  # labels searched for the best one of each level of a hierarchy
SURE = 0.5  # the probability from which the answer of a level counts where a document may have none there


def evaluate(
    tagger: Tagger,
    documents: Dataset,
    ks: Sequence[int] = (1, 3, 5),
    propensity_from: metrics.PropensityFrom = "train",
    propensity_preset: str = "default",
    consistent: bool = False,
    unlabelled: metrics.Unlabelled = "skip",
    **selected: Unpack[SelectOptions],
) -> dict[str, Any]:
    """The figures of a fitted tagger on labeled documents, with the time it takes for all and for one at a time.

    Labels that the model does not know count as missed; for ``unlabelled`` documents see ``metrics.evaluate``.
    ``consistent`` measures answers closed upwards. ``selected`` (see ``SelectOptions``) allows some labels alone: no
    others are answered, and those of the documents do not count. Where the
    documents' labels have a hierarchy, or else the tagger's, the figures by level stand with the others; those
    by column, where the tagger learned from a table. ``seen_in_training`` is the percentage of the documents that the
    tagger learned from, estimated above some thousand training documents; None where that is not known.
    ``n_unknown_labels`` of the documents' labels are not the tagger's.
    """
    if propensity_preset not in metrics.PRESETS:
        listed = ", ".join(metrics.PRESETS)
        raise ParameterError(f"propensity_preset must be one of {listed}, but is {propensity_preset!r}; choose one")
    A, B = metrics.PRESETS[propensity_preset]
    check_ks(ks, len(tagger.labels_))
    inputs = tagger.inputs_of(documents)
    selection = tagger.selection(selected)
    documents = only_allowed(documents, selection)
    predict = partial(tagger.predict_topk, consistent=consistent, **selected)
    warm_up(lambda some: predict(some, max(ks)), inputs)
    with timed() as taken:
        top = predict(inputs, max(ks))
    known = tagger.labels_
    if not known.n_documents:  # made of labels alone: there are no training counts
        propensity_from = "test"
    figures: dict[str, Any] = metrics.evaluate(
        documents.Y, top, known.counts, known.n_documents, ks=ks, A=A, B=B, propensity_from=propensity_from,
        unlabelled=unlabelled,
    )  # fmt: skip
    calibrated = isinstance(tagger.model, Calibrated)
    if isinstance(tagger.model, Calibrated):
        error = metrics.expected_calibration_error(documents.Y, tagger.model.to_probabilities(top), max(ks))
        figures[f"ECE@{max(ks)}"] = round(100 * error, 4)
    assert known.counts is not None  # fit_dataset counts
    figures["by_frequency"] = _percent(metrics.by_frequency(documents.Y, top, known.counts, max(ks)))
    hierarchy = documents.labels.hierarchy
    if hierarchy is None and known.hierarchy is not None:
        hierarchy = known.extended(documents.labels.names).hierarchy
    by_column = isinstance(tagger.model, ProbabilitiesByColumn) and tagger.columns_ is not None
    least = SURE if calibrated or by_column else None
    if hierarchy is not None or tagger.columns_ is not None:
        deep = predict(inputs, max(max(ks), min(LEVEL_K, len(known))))
    if hierarchy is not None:
        figures |= by_hierarchy(documents.Y, top, deep, hierarchy, known.counts, ks, least)
    if tagger.columns_ is not None:
        columns = tagger.columns_.masks(documents.labels.names)
        by_group = partial(metrics.by_group, min_probability=least, include_unlabeled=True)
        figures["by_column"] = _percent(by_group(documents.Y, deep, columns, known.counts))
    seen = None if tagger.documents_ is None else tagger.documents_.share(inputs)
    figures["seen_in_training"] = None if seen is None else round(100 * seen, 4)
    figures["unlabelled"] = unlabelled
    if selection is not None:
        figures["n_allowed_labels"] = int(selection.allowed.sum())
    figures["n_unknown_labels"] = len(np.unique(documents.Y.indices[documents.Y.indices >= len(known)]))
    figures["predict_seconds"] = round(taken.wall, 4)
    figures["predict_cpu_seconds"] = round(taken.cpu, 4)
    return {**figures, **latency(lambda one: predict(one, max(ks)), inputs)}


def only_allowed(documents: Dataset, selection: Selection | None) -> Dataset:
    """The documents without labels that a selection does not allow; labels that the model has not are such too."""
    if selection is None:
        return documents
    allowed = np.zeros(documents.Y.shape[1], bool)
    allowed[: len(selection.allowed)] = selection.allowed
    return replace(documents, Y=labels_among(documents.Y, allowed))


def check_ks(ks: Sequence[int], n_labels: int) -> None:
    """Refuse ranks that there are no labels for."""
    if max(ks) > max(n_labels, MAX_K):
        raise ParameterError(
            f"k must be at most the number of labels, but is {max(ks)} and there are {n_labels}; ask for a smaller k"
        )


def by_hierarchy(
    Y: Csr, top: TopK, deep: TopK, hierarchy: Hierarchy, counts: Longs, ks: Sequence[int], least: float | None = None
) -> dict[str, Any]:
    """The figures that a hierarchy of the labels makes possible, in percent.

    ``deep`` is ``top`` with more labels per document, to find the best label of each level.
    """
    figures = {key: value for k in ks for key, value in metrics.hierarchical_at_k(Y, top, hierarchy, k).items()}
    figures |= {f"consistent@{k}": metrics.consistent_at_k(top, hierarchy, k) for k in ks}
    figures["deepest_accuracy"] = metrics.deepest_accuracy(Y, deep, hierarchy)
    answers = metrics.best_by_level(Y, deep, hierarchy, counts, min_probability=least)
    of_sets = metrics.f1_by_level(Y, top, hierarchy, max(ks))
    by_level = _percent({level: {**of_sets[level], **answers[level]} for level in of_sets})
    return {**{key: round(100 * value, 4) for key, value in figures.items()}, "by_level": by_level}


def _percent(groups: Mapping[Any, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Fractions as percentages, counts as they are."""
    return {
        str(group): {key: value if isinstance(value, int) else round(100 * value, 4) for key, value in values.items()}
        for group, values in groups.items()
    }


def megabytes(folder: str | Path) -> float:
    """What a saved model weighs."""
    return round(store.folder_bytes(folder) / 1e6, 3)
