"""What a method may be able to do besides ``fit`` and ``predict_topk``; test with ``isinstance`` or ``require``."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from labelspace.errors import ParameterError
from labelspace.labels.codes import Codes
from labelspace.labels.tree import TreeNodes
from labelspace.models.evidence import Evidence
from labelspace.training.precision_thresholds import PrecisionThresholds
from labelspace.types import Bools, Floats, Ints, LabelSpace, Longs, TopK

if TYPE_CHECKING:
    from labelspace.models.partial_fit import NewDocuments


@runtime_checkable
class Calibrated(Protocol):
    """Scores become probabilities of being right, fitted on documents that were held out."""

    def to_probabilities(self, top: TopK) -> TopK:
        """Return the labels of ``top`` with probabilities for scores."""


@runtime_checkable
class LearnsPrecision(Calibrated, Protocol):
    """Learns on held-out documents above which probability a given share of the labels is right."""

    def precision_thresholds(self, consistent: bool) -> PrecisionThresholds | None:
        """Return the thresholds, for answers with all ancestors if ``consistent``; None if none were learned."""


@runtime_checkable
class ProbabilitiesByColumn(Protocol):
    """Scores the labels of each column of a table by probabilities that add up to 1 with the probability of none."""

    probabilities_by_column: bool


@runtime_checkable
class AddsLabels(Protocol):
    """Adds and removes labels without training again."""

    def add_label(self, name: str, examples: Any, share: float = ...) -> int:  # noqa: ANN401 - Inputs
        """Place a label by documents that carry it, expected in a ``share`` of all documents; return its id."""

    def has_label(self, name: str) -> bool:
        """Return whether a label is suggested."""

    def remove_label(self, name: str) -> None:
        """Never suggest a label again."""


@runtime_checkable
class PartialFit(Protocol):
    """Goes on learning from further documents, at a cost that grows with these and not with the known ones."""

    def partial_fit(self, new: "NewDocuments") -> Sequence[str]:
        """Learn from documents, in place, and replace arrays instead of writing to them; return what cannot learn.

        Called by ``partial_fit.learn_more``, which checks the documents first.
        """


@runtime_checkable
class AddsFeatures(Protocol):
    """Makes room for features that no document had before."""

    def growing_views(self) -> Collection[str]:
        """Return the views that may get further columns."""

    def insert_features(self, at: Mapping[str, Longs]) -> None:
        """Insert a feature before each of these columns of a view, as ``numpy.insert`` does."""


@runtime_checkable
class Explains(Protocol):
    """Explains the score of a label in parts that add up to it."""

    def explain(self, X: Any, labels: Ints) -> list[Evidence]:  # noqa: ANN401 - as ``read`` gives it
        """Return the evidence for each of these labels in one document."""


@runtime_checkable
class HasMembers(Protocol):
    """Is an ensemble, whose members answer on their own too."""

    def predict_members(self, X: Any, k: int) -> dict[str, TopK]:  # noqa: ANN401 - Inputs
        """Return the k best labels of each document according to each member, by the member's name."""


@runtime_checkable
class PredictsTwice(Protocol):
    """Can share the work of two answers for the same documents; an ensemble uses it under a filter."""

    def predict_twice(self, X: Any, k: int, depth: int, allowed: Bools) -> tuple[TopK, TopK]:  # noqa: ANN401
        """Return the k best of all labels and the ``depth`` best of the allowed ones."""


@runtime_checkable
class HasLabelTree(Protocol):
    """Arranges its labels in trees."""

    def label_trees(self) -> list[TreeNodes]:
        """Return the trees, each over label ids."""


@runtime_checkable
class HasLabelPoints(Protocol):
    """Embeds its labels in the Poincaré ball."""

    def label_points(self) -> Floats:
        """Return the points (n_labels, dimension), of norm below 1; NaN for a label without training documents."""


@runtime_checkable
class HasLabelCodes(Protocol):
    """Writes labels as codes."""

    def label_codes(self) -> list[Codes]:
        """Return the codes, one set per tree."""


@runtime_checkable
class ZeroShot(Protocol):
    """Tags without training documents, from the names and synonyms of the labels alone."""

    def fit_labels(self, labels: LabelSpace, label_features: Any = None) -> Self:  # noqa: ANN401 - Inputs
        """Get ready from the labels alone; ``label_features`` are their texts, for a method that reads vectors."""


@runtime_checkable
class RanksByText(Protocol):
    """Can rank labels by their texts alone, as if no document had them."""

    def text_topk(self, X: Any, k: int, allowed: Bools) -> TopK:  # noqa: ANN401 - as ``read`` gives it
        """Return the k best allowed labels of each document, as if no document had any of them."""


@runtime_checkable
class Checkpoints(Protocol):
    """Resumes an interrupted training, with the same result as without the interruption."""

    resumes_training: bool


@runtime_checkable
class TrainsInTasks(Protocol):
    """Trains in tasks that a cluster can run."""

    trains_in_tasks: bool


@runtime_checkable
class WeighsDocuments(Protocol):
    """Learns more from documents of a larger weight; an ensemble, by those of its members that can."""

    weighs_documents: bool


@runtime_checkable
class WeighsLabels(Protocol):
    """Ranks labels by their probability times the weight of the label."""

    weighs_labels: bool


@runtime_checkable
class TrainsFromCache(Protocol):
    """Trains on documents whose arrays are in files, and makes no copy of that size in memory."""

    trains_from_cache: bool


@runtime_checkable
class KnowsWords(Protocol):
    """Reads texts as they are, and can tell in which of them it knows a word."""

    def knows_words(self, texts: Sequence[str]) -> Bools:
        """Return whether the model knows a word of each text. Shape (n,)."""


@runtime_checkable
class ReadsLabelNames(Protocol):
    """Finds labels by their names and synonyms, which may change after the training."""

    def relabel(self, labels: LabelSpace) -> None:
        """Take the new names and synonyms of the labels, in place; ids stay."""


NEEDS = {
    Calibrated: ("a probability needs a method that is calibrated", "is not"),
    LearnsPrecision: ("a precision needs a method that learns thresholds on held-out documents", "does not"),
    AddsLabels: (
        "adding or removing labels without training needs a method that embeds labels by examples",
        "does not",
    ),
    PartialFit: ("learning from further documents needs a method that can go on learning", "cannot"),
    AddsFeatures: ("further features need a method that makes room for them", "does not"),
    Explains: ("reasons need a method that can explain its scores", "cannot"),
    HasMembers: ("disagreement of members needs an ensemble", "is not"),
    HasLabelTree: ("a tree needs a method that puts its labels into one", "has none"),
    HasLabelPoints: ("a map needs a point in the Poincaré ball for each label", "has none"),
    HasLabelCodes: ("codes need a method that writes labels as codes", "has none"),
    ZeroShot: ("training without documents needs a method that reads label names", "does not"),
    TrainsInTasks: ("a training on a cluster needs a method that trains in tasks", "does not"),
    RanksByText: ("labels without documents need a method that reads label texts", "does not"),
    Checkpoints: ("a checkpoint needs a method that can resume its training", "cannot"),
    WeighsDocuments: ("weights of documents need a method that learns by them", "does not"),
    WeighsLabels: ("weights of labels need a method that ranks by probability times weight", "does not"),
    TrainsFromCache: ("a cache needs a method that trains without the documents in memory", "does not"),
}
C = TypeVar("C")


def require(model: Any, capability: type[C]) -> C:  # noqa: ANN401 - a Model
    """Return the model if it has the capability; else raise ParameterError, which names the methods that have it."""
    if isinstance(model, capability):
        return model
    need, lack = NEEDS[capability]
    raise ParameterError(f"{need}, but {model.name} {lack}; train with --method {_listed(methods_with(capability))}")


def methods_with(capability: type) -> list[str]:
    """Return the names of the registered methods that have a capability."""
    from labelspace.models.registry import methods

    return [name for name, method in methods().items() if isinstance(method(), capability)]


def _listed(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
