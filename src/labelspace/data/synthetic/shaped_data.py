"""Data of the shape of a large public data set, or of a fraction of it, with labels that can be learned.

1. The number of training documents of a label follows a power law from 1 on, cut at the largest label, with the mean of
   the shape.
2. Each label has a place on a circle, and covers an arc in proportion to its frequency: its occurrences lie there at
   nearly equal distances, except for some that lie anywhere.
3. The documents take the occurrences in the order of the circle, at least one and on average the mean of the shape:
   labels of near positions occur together, and frequent ones with many others. Test documents are drawn from the same
   positions and frequencies.
4. A document has words of its labels, of its topics, which are parts of the circle on which labels lie, and words by
   Zipf's law (``kernels``). Its number of distinct words is log-normal.
5. Values are (1 + ln count) times a weight that grows with the rank of a word as idf does; rows have unit length.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse as sp

from labelspace.data.files import writing
from labelspace.data.sparse_rows import format_rows
from labelspace.data.synthetic.kernels import DrawnLabels, Words, synthetic_features
from labelspace.errors import DataError, ParameterError
from labelspace.store.atomic import replacing_folder
from labelspace.types import Csr, Dataset, Floats, Ints, LabelSpace, Longs, Progress, no_progress

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
        of_documents = _MIN_DOCUMENTS / min(self.train_documents, self.test_documents)
        of_labels = _LABELS_PER_LABEL * self.labels_per_document / self.labels
        least = math.ceil(1e4 * max(of_documents, of_labels)) / 1e4
        if not least <= fraction <= 1:
            rule = f"fraction must be at least {least:g} for this shape, and at most 1"
            raise ParameterError(f"{rule}, but is {fraction:g}; set 0.05")
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


OVERLAP = 3  # arc of a label over the span of its documents: larger arcs make more labels occur together
STRAY = 0.1  # share of occurrences that lie anywhere
_LARGEST_MEANS, _LARGEST_SHARE = 25, 0.25  # of the largest label at least, else a small fraction would have no tail
_STEPS = 50  # of the bisection of the exponent


@dataclass(frozen=True)
class Placement:
    """Frequencies and positions of the labels, (n_labels,) each."""

    counts: Longs
    positions: Floats

    @classmethod
    def draw(cls, shape: Shape, rng: np.random.Generator) -> "Placement":
        """Draw frequencies and positions: steps 1 and 2."""
        counts = rng.permutation(label_counts(shape))
        return cls(counts, rng.random(len(counts), dtype=np.float32))

    def documents(self, n: int, n_train: int, rng: np.random.Generator) -> tuple[Csr, Floats]:
        """Draw labels (n, n_labels) and positions (n,) of n documents, in random order: step 3."""
        n_labels = len(self.counts)
        counts = (self.counts * (n / n_train) + rng.random(n_labels)).astype(np.int64)  # of train: themselves
        labels = np.repeat(np.arange(n_labels, dtype=np.int32), counts)
        positions = self._occurrences(counts, labels, n_train, rng)
        order = np.argsort(positions, kind="stable")
        labels, positions = labels[order], positions[order]
        extra = rng.integers(0, n, len(labels) - n, dtype=np.int32)
        starts = np.concatenate([[0], np.cumsum(1 + np.bincount(extra, minlength=n))]).astype(np.int64)
        Y = sp.csr_matrix((np.ones(len(labels), np.float32), labels, starts), shape=(n, n_labels))
        Y.sum_duplicates()
        Y.data[:] = 1.0
        shuffled = rng.permutation(n)
        return Y[shuffled], positions[(starts[:-1] + starts[1:]) // 2][shuffled]

    def _occurrences(self, counts: Longs, labels: Ints, n_train: int, rng: np.random.Generator) -> Floats:
        """Return the place of each occurrence of each label."""
        arcs = np.minimum(OVERLAP * self.counts / n_train, 1.0)
        step = (arcs / np.maximum(counts, 1)).astype(np.float32)
        first = (self.positions - arcs / 2).astype(np.float32)
        number = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
        positions = rng.random(len(labels), dtype=np.float32)
        positions += number.astype(np.float32)
        positions *= step[labels]
        positions += first[labels]
        stray = np.flatnonzero(rng.random(len(labels), dtype=np.float32) < STRAY)
        positions[stray] = rng.random(len(stray), dtype=np.float32)
        return np.mod(positions, np.float32(1.0))


def label_counts(shape: Shape) -> Longs:
    """Return the number of training documents of each label, ascending: step 1."""
    n, n_labels = shape.train_documents, shape.labels
    mean = n * shape.labels_per_document / n_labels
    largest = max(shape.largest_share * n, min(_LARGEST_MEANS * mean, _LARGEST_SHARE * n))
    sizes = np.arange(1, int(largest) + 1)

    def labels_of_size(exponent: float) -> Longs:
        up_to = np.cumsum(sizes**-exponent)
        return np.asarray(np.diff(np.rint(n_labels * up_to / up_to[-1]), prepend=0.0), np.int64)

    low, high = 0.0, 8.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if labels_of_size(middle) @ sizes > mean * n_labels:
            low = middle
        else:
            high = middle
    return np.repeat(sizes, labels_of_size(high))


Split = Literal["train", "test"]
BLOCK = 65_536  # documents
TOPIC_DRAWS = 25  # words of topics that a document draws
LABELS_PER_TOPIC = (1000, 50)  # by level
LENGTH_SPREAD = 0.5  # standard deviation of the logarithm of the number of distinct words
_LONGEST = 6  # times the mean
_WORDS, _PLACES = 0, 1  # streams of random numbers
_STREAMS = {"train": 2, "test": 3}


def shaped(name: str, fraction: float = 1.0, seed: int = 0) -> tuple[Dataset, Dataset]:
    """Return training and test documents of the shape of a data set of ``SHAPES``.

    >>> train, test = shaped("Amazon-670K", fraction=0.01)
    >>> train.X.shape, train.Y.shape, test.Y.shape
    ((4904, 13591), (4904, 6701), (1530, 6701))
    >>> counts = train.Y.sum(axis=0).A1
    >>> f"{counts.mean():.1f} documents per label, 1 to 8 for {(counts <= 8).mean():.0%} of labels"
    '3.9 documents per label, 1 to 8 for 91% of labels'
    """
    space = LabelSpace.numbered(shape_of(name).scaled(fraction).labels)

    def dataset(split: Split) -> Dataset:
        blocks = list(shaped_blocks(name, fraction, seed, split=split))
        X, Y = (sp.vstack(matrices, format="csr") for matrices in zip(*blocks, strict=True))
        return Dataset(Y, space, X=X, name=f"{name}-{fraction:g}-{split}")

    return dataset("train"), dataset("test")


def shaped_blocks(
    name: str, fraction: float = 1.0, seed: int = 0, block: int = BLOCK, split: Split = "train"
) -> Iterator[tuple[Csr, Csr]]:
    """Return the documents of ``shaped`` as pairs (X, Y) of at most ``block`` documents.

    >>> [Y.shape for X, Y in shaped_blocks("Amazon-670K", fraction=0.01, block=1000, split="test")]
    [(1000, 6701), (530, 6701)]
    """
    shape = shape_of(name).scaled(fraction)
    if block < 1:
        raise ParameterError(f"block must be at least 1, but is {block}; set 1 or more")
    if seed < 0:
        raise ParameterError(f"seed must be at least 0, but is {seed}; set 0 or more")
    if split not in _STREAMS:
        raise ParameterError(f"split must be train or test, but is {split!r}; name one of them")
    return _blocks(shape, seed, block, split)


def _blocks(shape: Shape, seed: int, block: int, split: Split) -> Iterator[tuple[Csr, Csr]]:
    placement = Placement.draw(shape, np.random.default_rng([seed, _PLACES]))
    of_words = np.random.default_rng([seed, _WORDS])
    word_key = of_words.integers(2**64, dtype=np.uint64)
    by_rank = of_words.permutation(shape.features).astype(np.int32)
    rng = np.random.default_rng([seed, _STREAMS[split]])
    n = shape.train_documents if split == "train" else shape.test_documents
    Y, positions = placement.documents(n, shape.train_documents, rng)
    mean = shape.nonzeros_per_document
    drawn = mean * rng.lognormal(-(LENGTH_SPREAD**2) / 2, LENGTH_SPREAD, n)
    lengths = np.clip(np.rint(drawn), 1, min(_LONGEST * mean, shape.features / 4)).astype(np.int32)
    key = rng.integers(2**64, dtype=np.uint64)
    topics = np.array([max(shape.labels // size, 2) for size in LABELS_PER_TOPIC])
    weights = np.empty(len(by_rank), np.float32)
    weights[by_rank] = 1.0 + np.log1p(np.arange(len(by_rank)))
    draws = np.array([shape.own_words * shape.labels_per_document, TOPIC_DRAWS])
    shares = draws / max(shape.nonzeros_per_document, draws.sum() / 0.75)  # at most three quarters in all
    words = Words(word_key, by_rank, weights, shares, topics)
    for start in range(0, n, block):
        rows = slice(start, min(start + block, n))
        y = Y[rows]
        documents = DrawnLabels(y.indptr, y.indices, positions[rows], lengths[rows])
        indptr, indices, values = synthetic_features(start, key, documents, words)
        yield sp.csr_matrix((values, indices, indptr), shape=(y.shape[0], shape.features)), y


def write_shaped(
    name: str, folder: str | Path, fraction: float = 1.0, seed: int = 0, progress: Progress = no_progress
) -> dict[Path, tuple[int, int, int]]:
    """Write ``train.txt`` and ``test.txt`` to a new folder by blocks; return their documents, features and labels."""
    shape, target = shape_of(name).scaled(fraction), Path(folder)
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        raise DataError(f"synthetic data must be written to a new folder, but {target} exists; give another name")
    sizes: dict[Split, int] = {"train": shape.train_documents, "test": shape.test_documents}
    with replacing_folder(target, lambda written: None) as work:
        for split, n in sizes.items():
            with writing(work / f"{split}.txt") as file:
                file.write(f"{n} {shape.features} {shape.labels}\n".encode())
                done = 0
                for X, Y in shaped_blocks(name, fraction, seed, split=split):
                    file.writelines(format_rows(X, Y))
                    done += X.shape[0]
                    progress(f"write {split}.txt", done, n)
    return {target / f"{split}.txt": (n, shape.features, shape.labels) for split, n in sizes.items()}
