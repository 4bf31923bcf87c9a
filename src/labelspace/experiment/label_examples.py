"""Read the documents that new labels are learned from, as a tagger takes them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelspace.data.read_options import ReadOptions
from labelspace.errors import DataError
from labelspace.experiment.labeled_batches import LabeledBatch, LabeledDocuments
from labelspace.tagger import Tagger


class Examples(NamedTuple):
    """The documents of a file, and the labels that each has in it."""

    inputs: Any  # texts, or rows of features
    labels: Sequence[Sequence[str]]

    def of(self, label: str) -> Any:  # noqa: ANN401 - texts, or rows of features
        """Return the documents of a label."""
        rows = [row for row, names in enumerate(self.labels) if label in names]
        return self.inputs[rows] if sp.issparse(self.inputs) else [self.inputs[row] for row in rows]


def read_examples(tagger: Tagger, path: Path, options: ReadOptions) -> Examples:
    """Return the documents of a file: JSON lines, a table, or plain text with a document per line."""
    batches = list(LabeledDocuments.of_file(tagger, str(path), options).batches())
    if not batches:
        raise DataError(f"examples of a label must be documents, but {path} has none; give some")
    labels = [batch.given_names(row) for batch in batches for row in range(len(batch.records))]
    return Examples(_joined(batches), labels)


def examples_by_label(tagger: Tagger, path: Path, options: ReadOptions) -> dict[str, Any]:
    """Return the documents of each new label of a file, in the order of the labels' first documents."""
    examples = read_examples(tagger, path, options)
    names = dict.fromkeys(name for labels in examples.labels for name in labels)
    unlabeled = next((row for row, labels in enumerate(examples.labels) if not labels), None)
    if unlabeled is not None:
        rule = f"documents must be labeled with the new names, but document {unlabeled} of {path} has no label"
        raise DataError(f"{rule} in use; name the column of the labels: --labels, or leave the document out")
    return {name: examples.of(name) for name in names}


def _joined(batches: Sequence[LabeledBatch]) -> Any:  # noqa: ANN401 - texts, or rows of features
    if isinstance(batches[0].inputs, list):
        return [text for batch in batches for text in batch.inputs]
    return sp.vstack([batch.inputs for batch in batches], format="csr", dtype=np.float32)
