"""The sizes of large public data sets, as published, and of a fraction of them."""

import math
from dataclasses import dataclass, replace

from labelspace.errors import ParameterError

_MIN_DOCUMENTS = 100  # in train and in test
_LABELS_PER_LABEL = 20  # labels of the data set per label of a document


@dataclass(frozen=True)
class Shape:
    """The statistics of a data set.

    ``documents_per_label`` is as published: of Wikipedia-500K and Amazon-3M it counts the test documents too.
    ``nonzeros_per_document`` is rounded from common reports. Two are choices of ours: ``largest_share``, the share of
    training documents with the most frequent label, and ``own_words``, the words that a document draws per label, which
    brings the P@1 of a label tree on a small fraction near published ones.
    """

    train_documents: int
    test_documents: int
    features: int
    labels: int
    labels_per_document: float
    documents_per_label: float
    nonzeros_per_document: float
    largest_share: float
    own_words: float

    def scaled(self, fraction: float) -> "Shape":
        """Return a fraction of the documents and labels, and its square root of the features; the means stay.

        >>> small = SHAPES["Amazon-670K"].scaled(0.01)
        >>> small.train_documents, small.test_documents, small.labels, small.features
        (4904, 1530, 6701, 13591)
        """
        needed = max(
            _MIN_DOCUMENTS / min(self.train_documents, self.test_documents),
            _LABELS_PER_LABEL * self.labels_per_document / self.labels,
        )
        least = math.ceil(1e4 * needed) / 1e4
        if not least <= fraction <= 1:
            raise ParameterError(
                f"fraction must be at least {least:g} for this shape, and at most 1, but is {fraction:g}; set 0.05"
            )
        return replace(
            self,
            train_documents=round(self.train_documents * fraction),
            test_documents=round(self.test_documents * fraction),
            features=round(self.features * math.sqrt(fraction)),
            labels=round(self.labels * fraction),
        )


SHAPES = {
    "Wiki10-31K": Shape(14_146, 6_616, 101_938, 30_938, 18.64, 8.52, 673.4, 0.8, 1.3),
    "AmazonCat-13K": Shape(1_186_239, 306_782, 203_882, 13_330, 5.04, 448.57, 71.2, 0.3, 0.9),
    "Delicious-200K": Shape(196_606, 100_095, 782_585, 205_443, 75.54, 72.29, 301.2, 0.33, 0.15),
    "WikiLSHTC-325K": Shape(1_778_351, 587_084, 1_617_899, 325_056, 3.19, 17.46, 42.1, 0.16, 0.6),
    "Wikipedia-500K": Shape(1_813_391, 783_743, 2_381_304, 501_070, 4.77, 24.75, 385.3, 0.15, 0.9),
    "Amazon-670K": Shape(490_449, 153_025, 135_909, 670_091, 5.45, 3.99, 75.7, 0.0037, 0.9),
    "Amazon-3M": Shape(1_717_899, 742_507, 337_067, 2_812_281, 36.17, 31.64, 49.7, 0.01, 0.25),
}
"""By name: the data sets with bag-of-words features of the Extreme Classification Repository (Bhatia et al.)."""


def shape_of(name: str) -> Shape:
    """Return the shape of this name; case does not matter."""
    found = {known.lower(): shape for known, shape in SHAPES.items()}.get(name.lower())
    if found is None:
        raise ParameterError(f"the name must be one of {', '.join(SHAPES)}, but is {name!r}; take one of these")
    return found
