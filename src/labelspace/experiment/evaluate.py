"""Evaluate a fitted tagger on labeled documents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

import numpy as np

from labelspace import metrics, store
from labelspace.errors import ParameterError
from labelspace.experiment.timing import latency, timed, warm_up
from labelspace.labels.edits import labels_in_use
from labelspace.labels.masks import labels_among
from labelspace.labels.selection import Selection
from labelspace.labels.tag_options import SelectOptions, TagOptions
from labelspace.models.capabilities import Calibrated, ProbabilitiesByColumn
from labelspace.options import check_names
from labelspace.tagger import Tagger
from labelspace.types import Csr, Dataset, Hierarchy, Longs, TopK

if TYPE_CHECKING:
    from labelspace.tagger.reranking import Reranker

MAX_K = 100  # largest rank to measure at, however few labels there are
LEAST_DEPTH = 10  # labels per document, at least, among which thresholds are chosen
PRECISIONS = (90, 95)  # percent, at which coverage is reported
LEVEL_K = 100  # labels searched for the best one of each level of a hierarchy
SURE = 0.5  # least probability of the answer of a level: a document may have no label there


class Answers(NamedTuple):
    """The true labels of documents and their answers, long enough to choose a threshold among their scores."""

    Y: Csr
    top: TopK  # with probabilities if the model is calibrated
    pairs: metrics.ScoredPairs


@dataclass(frozen=True)
class Evaluation:
    """The figures of a tagger, the contribution of each document to them, and the answers."""

    figures: dict[str, Any]
    per_document: dict[str, metrics.DocumentValues]
    answers: Answers | None = None  # None if no threshold was chosen

    def all_figures(self, ci: bool) -> dict[str, Any]:
        """Return the figures, with ``ci`` also the 95 % bootstrap intervals of those that are sums over documents."""
        return {**self.figures, "ci": intervals(self.per_document)} if ci else self.figures


class EvaluationOptions(SelectOptions, total=False):
    """Options of ``evaluate``: the labels that are allowed, and the protocol.

    propensity_from: Labels to estimate propensities from: train, or test.
    propensity_preset: Constants of the propensities: default, wikipedia or amazon.
    consistent: Measure answers closed upwards.
    unlabelled: Documents without labels: skip or count, see ``metrics.evaluate``.
    thresholds: False leaves out F1 and precision at thresholds, which take one more prediction.
    reranker: Measure the answers in its order too, as ``reranked``, with what it took as ``rerank``.
    """

    propensity_from: metrics.PropensityFrom
    propensity_preset: str
    consistent: bool
    unlabelled: metrics.Unlabelled
    thresholds: bool
    reranker: "Reranker"


def evaluate(
    tagger: Tagger,
    documents: Dataset,
    ks: Sequence[int] = (1, 3, 5),
    ci: bool = False,
    **options: Unpack[EvaluationOptions],
) -> dict[str, Any]:
    """Return the figures of a fitted tagger on labeled documents, with the times for all and for single documents.

    Labels that the model does not know count as missed. A label that was merged into another one counts as that one,
    and a retired label does not count: a document with no other label has none. If only some labels are allowed, the
    other labels are neither answered nor counted. Figures by level are added if the labels of the documents, or else of
    the tagger, have a hierarchy; figures by column, if the tagger learned from a table. ``ci`` adds 95 % bootstrap
    intervals of the metrics that are sums over documents. Labels that are ``filtered`` for a document count neither as
    right nor as wrong: see ``metrics/filtered.py``. ``seen_in_training`` is the percentage of the documents that the
    tagger learned from, estimated above some thousand training documents; None if it is not known.
    ``n_unknown_labels`` is the number of different labels of the documents that the tagger does not know.
    """
    return evaluate_documents(tagger, documents, ks, **options).all_figures(ci)


def intervals(per_document: Mapping[str, metrics.DocumentValues], seed: int = 0) -> dict[str, list[float]]:
    """Return the 95 % bootstrap intervals of metrics, in percent."""
    found = metrics.confidence_intervals(per_document, seed=seed)
    return {name: [percent(low), percent(high)] for name, (low, high) in found.items()}


def evaluate_documents(
    tagger: Tagger, documents: Dataset, ks: Sequence[int] = (1, 3, 5), **options: Unpack[EvaluationOptions]
) -> Evaluation:
    """Return the figures of ``evaluate``, and the contributions of each document to the sums over documents."""
    check_names(options, EvaluationOptions)
    propensity_preset = options.get("propensity_preset", "default")
    unlabelled: metrics.Unlabelled = options.get("unlabelled", "skip")
    if propensity_preset not in metrics.PRESETS:
        listed = ", ".join(metrics.PRESETS)
        raise ParameterError(f"propensity_preset must be one of {listed}, but is {propensity_preset!r}; choose one")
    A, B = metrics.PRESETS[propensity_preset]
    check_ks(ks, len(tagger.labels_))
    inputs, known, selection = tagger.inputs_of(documents), tagger.labels_, tagger.selection(options)
    documents = replace(documents, Y=labels_in_use(documents.Y, known))
    documents = without_filtered(only_allowed(documents, selection))
    Y = documents.Y
    tag_options = {name: value for name, value in options.items() if name in TagOptions.__annotations__}
    predict_some = partial(tagger.predict_topk, **cast(TagOptions, tag_options))
    predict = partial(predict_unfiltered, predict_some, inputs, documents.filtered)
    warm_up(lambda some: predict_some(some, max(ks)), inputs)
    with timed() as taken:
        top = predict(max(ks))
    # What was made of labels alone has no training counts.
    propensity_from = options.get("propensity_from", "train") if known.n_documents else "test"
    protocol = (known.answered_counts, known.n_documents, ks, A, B, propensity_from, unlabelled)
    figures: dict[str, Any] = metrics.evaluate(Y, top, *protocol)
    per_document = metrics.per_document(Y, top, *protocol)
    figures |= of_probabilities(tagger, Y, top, max(ks))
    answers = None
    if options.get("thresholds", True):
        at_thresholds = by_threshold(tagger, Y, predict(threshold_depth(documents, ks)), unlabelled == "count")
        figures |= at_thresholds.figures
        per_document |= at_thresholds.per_document
        answers = at_thresholds.answers
    figures["by_frequency"] = _percent(metrics.by_frequency(Y, top, known.answered_counts, max(ks)))
    figures |= by_groups(tagger, documents, top, predict, ks)
    figures |= of_documents(tagger, documents, inputs)
    if "reranker" in options:
        top = reranked_topk(options["reranker"], documents, predict, max(ks))
        measured = metrics.evaluate(Y, top, *protocol)
        figures["reranked"] = {name: value for name, value in measured.items() if "@" in name}
        figures["rerank"] = options["reranker"].tally.to_json()
    figures["unlabelled"] = unlabelled
    if selection is not None:
        figures["n_allowed_labels"] = int(selection.allowed.sum())
    if documents.filtered is not None:
        figures["n_filtered_pairs"] = int(np.count_nonzero(documents.filtered.data))
    figures["predict_seconds"] = round(taken.wall, 4)
    figures["predict_cpu_seconds"] = round(taken.cpu, 4)
    figures |= latency(lambda one: predict_some(one, max(ks)), inputs)
    return Evaluation(figures, per_document, answers)


def reranked_topk(reranker: "Reranker", documents: Dataset, predict: Callable[[int], TopK], k: int) -> TopK:
    """Return the k best labels of each document in the order of a reranker, which is asked once per document."""
    return reranker.topk(documents.texts or [], predict(max(k, reranker.settings.n_candidates)), k)


def only_allowed(documents: Dataset, selection: Selection | None) -> Dataset:
    """Return the documents without labels that a selection does not allow, and without labels unknown to the model."""
    if selection is None:
        return documents
    allowed = np.zeros(documents.Y.shape[1], bool)
    allowed[: len(selection.allowed)] = selection.allowed
    return replace(documents, Y=labels_among(documents.Y, allowed))


def without_filtered(documents: Dataset) -> Dataset:
    """Return the documents without the labels that are filtered for them."""
    if documents.filtered is None:
        return documents
    return replace(documents, Y=metrics.labels_without(documents.Y, documents.filtered))


def predict_unfiltered(predict: Callable[[Any, int], TopK], inputs: Any, filtered: Csr | None, k: int) -> TopK:  # noqa: ANN401 - texts or rows
    """Return the k best labels of each document that are not filtered for it."""
    if filtered is None:
        return predict(inputs, k)
    return metrics.predictions_without(predict(inputs, k + metrics.most_filtered(filtered)), filtered, k)


def check_ks(ks: Sequence[int], n_labels: int) -> None:
    """Raise ParameterError for ranks above the number of labels."""
    if max(ks) > max(n_labels, MAX_K):
        rule = "k must be at most the number of labels"
        raise ParameterError(f"{rule}, but is {max(ks)} and there are {n_labels}; ask for a smaller k")


def threshold_depth(documents: Dataset, ks: Sequence[int]) -> int:
    """Return the labels per document among which to choose thresholds: three times the mean number, and at least 10.

    Deeper lists change the best micro and macro F1 by some hundredths of a percent. Blend was
    trained on 10 candidates of each member, and its probabilities change if there are more.
    """
    return max(*ks, LEAST_DEPTH, round(3 * int(documents.Y.nnz) / max(len(documents), 1)))


def of_probabilities(tagger: Tagger, Y: Csr, top: TopK, k: int) -> dict[str, Any]:
    """Return ECE@k and the bins of the reliability diagram; nothing if the scores are not calibrated."""
    if not isinstance(tagger.model, Calibrated):
        return {}
    bins = metrics.ReliabilityBins.from_topk(Y, tagger.model.to_probabilities(top), k)
    rows = [
        {"n": n, "probability": percent(probability), "accuracy": percent(accuracy)} if n else {"n": 0}
        for n, probability, accuracy in zip(bins.n.tolist(), bins.probability, bins.accuracy, strict=True)
    ]
    return {f"ECE@{k}": percent(bins.expected_calibration_error()), "reliability": rows}


def by_threshold(tagger: Tagger, Y: Csr, deep: TopK, include_unlabeled: bool = False) -> Evaluation:
    """Return F1 at the best threshold and at the expected one, coverage at precisions, and its curve."""
    calibrated = isinstance(tagger.model, Calibrated)
    scores = tagger.model.to_probabilities(deep) if isinstance(tagger.model, Calibrated) else deep
    pairs = metrics.ScoredPairs.from_topk(Y, scores, include_unlabeled)
    micro, macro = metrics.best_micro_f1(pairs), metrics.best_macro_f1(pairs)
    figures: dict[str, Any] = {"micro_f1": percent(micro.value), "micro_f1_threshold": micro.threshold}
    figures |= {"macro_f1": percent(macro.value), "macro_f1_threshold": macro.threshold}
    per_document = {"micro_f1": pairs.micro_f1_values(micro.threshold)}
    if calibrated:
        threshold = metrics.expected_threshold(pairs)
        counts = metrics.label_counts_at(pairs, threshold)
        figures |= {"expected_threshold": threshold, "micro_f1_at_expected": percent(counts.micro())}
        figures["macro_f1_at_expected"] = percent(counts.macro())
        per_document["micro_f1_at_expected"] = pairs.micro_f1_values(threshold)
    curve = metrics.PrecisionCoverage.from_pairs(pairs)
    for precision in PRECISIONS:
        found = curve.coverage_at(precision / 100)
        figures[f"coverage_at_precision_{precision}"] = percent(found.value)
        figures[f"threshold_at_precision_{precision}"] = found.threshold
    drawn = curve.points()
    points = zip(drawn.thresholds.tolist(), drawn.precision, drawn.coverage, strict=True)
    figures["precision_coverage"] = [[score, percent(right), percent(kept)] for score, right, kept in points]
    return Evaluation(figures, per_document, Answers(Y, scores, pairs))


def by_groups(
    tagger: Tagger, documents: Dataset, top: TopK, predict: Callable[[int], TopK], ks: Sequence[int]
) -> dict[str, Any]:
    """Return the figures by level of the hierarchy and by column of the table, if any."""
    known, hierarchy = tagger.labels_, hierarchy_of(tagger, documents)
    if hierarchy is None and tagger.columns_ is None:
        return {}
    counts = known.answered_counts
    by_column = isinstance(tagger.model, ProbabilitiesByColumn) and tagger.columns_ is not None
    least = SURE if isinstance(tagger.model, Calibrated) or by_column else None
    deep = predict(max(max(ks), min(LEVEL_K, len(known))))
    figures: dict[str, Any] = {}
    if hierarchy is not None:
        figures |= by_hierarchy(documents.Y, top, deep, hierarchy, counts, ks, least)
    if tagger.columns_ is not None:
        columns = tagger.columns_.masks(documents.labels.names)
        by_group = partial(metrics.by_group, min_probability=least, include_unlabeled=True)
        figures["by_column"] = _percent(by_group(documents.Y, deep, columns, counts))
    return figures


def hierarchy_of(tagger: Tagger, documents: Dataset) -> Hierarchy | None:
    """Return the hierarchy of the labels of documents, else that of the tagger."""
    if documents.labels.hierarchy is None and tagger.labels_.hierarchy is not None:
        return tagger.labels_.extended(documents.labels.names).hierarchy
    return documents.labels.hierarchy


def of_documents(tagger: Tagger, documents: Dataset, inputs: Any) -> dict[str, Any]:  # noqa: ANN401 - texts or rows
    """Return the share of documents that were trained on, and the number of their labels that are unknown."""
    seen = None if tagger.documents_ is None else tagger.documents_.share(inputs)
    unknown = documents.Y.indices[documents.Y.indices >= len(tagger.labels_)]
    return {"seen_in_training": None if seen is None else percent(seen), "n_unknown_labels": len(np.unique(unknown))}


def by_hierarchy(
    Y: Csr, top: TopK, deep: TopK, hierarchy: Hierarchy, counts: Longs, ks: Sequence[int], least: float | None = None
) -> dict[str, Any]:
    """Return the figures that need a hierarchy of the labels, in percent.

    ``deep`` is ``top`` with more labels per document, to find the best label of each level.
    """
    figures = {key: value for k in ks for key, value in metrics.hierarchical_at_k(Y, top, hierarchy, k).items()}
    figures |= {f"consistent@{k}": metrics.consistent_at_k(top, hierarchy, k) for k in ks}
    figures["deepest_accuracy"] = metrics.deepest_accuracy(Y, deep, hierarchy)
    answers = metrics.best_by_level(Y, deep, hierarchy, counts, min_probability=least)
    of_sets = metrics.f1_by_level(Y, top, hierarchy, max(ks))
    by_level = _percent({level: {**of_sets[level], **answers[level]} for level in of_sets})
    return {**{key: percent(value) for key, value in figures.items()}, "by_level": by_level}


def percent(fraction: float) -> float:
    """Return a fraction as a percentage with 4 decimals."""
    return round(100 * float(fraction), 4)


def _percent(groups: Mapping[Any, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return fractions as percentages, and counts as they are."""
    return {
        str(group): {key: value if isinstance(value, int) else percent(value) for key, value in values.items()}
        for group, values in groups.items()
    }


def megabytes(folder: str | Path) -> float:
    """Return the size of a saved model, in megabytes."""
    return round(store.folder_bytes(folder) / 1e6, 3)


def saved_megabytes(tagger: Tagger) -> float:
    """Save a tagger to a temporary folder, and return its size in megabytes."""
    with TemporaryDirectory() as folder:
        tagger.save(f"{folder}/model")
        return megabytes(f"{folder}/model")
