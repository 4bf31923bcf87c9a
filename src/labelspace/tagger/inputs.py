"""Read the documents that a tagger is given: as ready-made features, or as the views of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from labelspace.data.objects.inputs import Documents, dataset_inputs, read_inputs
from labelspace.data.records import Record, batch_inputs, record_batches
from labelspace.errors import DataError, ParameterError
from labelspace.features.views import EMBEDDINGS, View, Views, ViewTransformer, is_matrix
from labelspace.labels.coded_names import texts_without_codes
from labelspace.labels.tag_options import TagOptions
from labelspace.models.base import Model
from labelspace.models.checks import Inputs, check_k
from labelspace.models.registry import methods
from labelspace.tagger.answers import DocumentAnswer
from labelspace.types import Columns, Csr, Dataset, Fields, LabelSpace, SideColumns

if TYPE_CHECKING:
    from labelspace.tagger.tagger import Tagger

# Validation documents, or a function that reads them when the method needs them.
Validation = Dataset | Callable[[], Dataset | None]


class InputReader(NamedTuple):
    """Makes what a model reads of the documents that a tagger is given."""

    model: Model
    features: ViewTransformer | None  # None if the model reads ready-made features
    columns: Columns | None
    fields: Fields | None

    def read(self, inputs: Documents) -> Inputs:
        """Return ready-made features as they are, and the views of texts."""
        if isinstance(inputs, Views):
            return inputs
        found = read_inputs(inputs, self.columns, self.fields, self.features is None)
        if is_matrix(found):
            return found
        if self.features is None:
            rule = f"this model was trained on {self.model.n_features_} ready-made features, but was given texts"
            raise DataError(f"{rule}; give a feature matrix, or a file with features")
        return self.features.transform(found)

    def inputs_of(self, documents: Dataset) -> Documents:
        """Return the texts of a data set, or its features with as many columns as in training."""
        return dataset_inputs(documents, self.model.n_features_ if self.features is None else None)

    def validation(self, given: Validation | None) -> Callable[[], tuple[Inputs, Any] | None] | None:
        """Return a function that reads the validation documents, as ``Model.fit`` takes it."""
        if given is None:
            return None

        def load() -> tuple[Inputs, Any] | None:
            documents = given() if callable(given) else given
            return None if documents is None else (self.read(self.inputs_of(documents)), documents.Y)

        return load

    def label_features(self, labels: LabelSpace) -> Csr | None:
        """Return the labels' own texts under the view that the model reads; None if it does not learn from them."""
        view = self.model.label_text_view()
        if self.features is None or view is None or view.name not in self.features.widths:
            return None
        texts = texts_without_codes(labels) if view == EMBEDDINGS else labels.texts()
        features: Csr = self.features.only(view.name).transform_labels(texts)[view.name]
        return features


def check_side_columns(model: Model, views: Sequence[View], beside: SideColumns) -> None:
    """Raise ParameterError for columns beside the texts and a method that reads no matrix."""
    if beside and not any(view.is_matrix for view in views):
        names = ", ".join(beside.names)
        able = ", ".join(name for name, each in methods().items() if each.view.is_matrix)
        rule = f"columns beside the text need a method that reads a matrix, but {model.name} reads the text only"
        raise ParameterError(f"{rule}; leave out {names}, or train with --method {able}")


# Both bound memory: the first the texts and features of a batch, the second its labels where k is in the thousands.
# Larger batches take more memory; smaller ones start the threads more often.
MAX_DOCUMENTS = 1024  # of a batch
MAX_TAGS = 2**20  # of a batch: documents times k
T = TypeVar("T")


def stream(
    tagger: Tagger, records: Iterable[Record], k: int, source: str, tag: Callable[[Inputs, int], list[T]]
) -> Iterator[tuple[Record, T]]:
    """Yield each record with what ``tag`` makes of its document; ``source`` names the records in messages."""
    tagger.check_fitted()
    check_k(k)
    k = min(k, len(tagger.labels_))  # the rest would be padding
    n_features = tagger.model.n_features_ if tagger.ready_made else None
    for batch in record_batches(records, min(MAX_DOCUMENTS, max(MAX_TAGS // k, 1))):
        yield from zip(batch, tag(batch_inputs(batch, n_features, source), k), strict=True)


def document_answers(
    tagger: Tagger, records: Iterable[Record], k: int, source: str, options: TagOptions
) -> Iterator[tuple[Record, DocumentAnswer]]:
    """Yield each record with its answer by label ids."""

    def tag(inputs: Inputs, k: int) -> list[DocumentAnswer]:
        return tagger.answers(inputs, k, **options).documents(tagger.labels_)

    return stream(tagger, records, k, source, tag)
