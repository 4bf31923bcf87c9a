"""Data of the shape of a large public data set, or of a fraction of it, with labels that can be learned.

1. Labels of the documents: ``label_placement``.
2. A document has words of its labels, of its topics, which are parts of the circle on which labels lie, and words by
   Zipf's law (``kernels``). Its number of distinct words is log-normal.
3. Values are (1 + ln count) times a weight that grows with the rank of a word as idf does; rows have unit length.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import scipy.sparse as sp

from labelspace.data.files import writing
from labelspace.data.sparse_rows import format_rows
from labelspace.data.synthetic.kernels import DrawnLabels, Words, synthetic_features
from labelspace.data.synthetic.label_placement import Placement
from labelspace.data.synthetic.shapes import Shape, shape_of
from labelspace.errors import DataError, ParameterError
from labelspace.store.atomic import replacing_folder
from labelspace.types import Csr, Dataset, Doubles, Floats, Ints, LabelSpace, Progress, no_progress

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
    placement = Placement.draw(shape, _generator(seed, _PLACES))
    of_words = _generator(seed, _WORDS)
    word_key = of_words.integers(2**64, dtype=np.uint64)
    by_rank = of_words.permutation(shape.features).astype(np.int32)
    rng = _generator(seed, _STREAMS[split])
    n = shape.train_documents if split == "train" else shape.test_documents
    Y, positions = placement.documents(n, shape.train_documents, rng)
    lengths = _lengths(shape, n, rng)
    key = rng.integers(2**64, dtype=np.uint64)
    topics = np.array([max(shape.labels // size, 2) for size in LABELS_PER_TOPIC])
    words = Words(word_key, by_rank, _weights(by_rank), _shares(shape), topics)
    for start in range(0, n, block):
        rows = slice(start, min(start + block, n))
        y = Y[rows]
        documents = DrawnLabels(y.indptr, y.indices, positions[rows], lengths[rows])
        indptr, indices, values = synthetic_features(start, key, documents, words)
        yield sp.csr_matrix((values, indices, indptr), shape=(y.shape[0], shape.features)), y


def _generator(seed: int, stream: int) -> np.random.Generator:
    return np.random.default_rng([seed, stream])


def _lengths(shape: Shape, n: int, rng: np.random.Generator) -> Ints:
    """Draw the number of distinct words of each document."""
    mean = shape.nonzeros_per_document
    drawn = mean * rng.lognormal(-(LENGTH_SPREAD**2) / 2, LENGTH_SPREAD, n)
    return np.clip(np.rint(drawn), 1, min(_LONGEST * mean, shape.features / 4)).astype(np.int32)


def _shares(shape: Shape) -> Doubles:
    """Return the shares of draws from the words of labels and of topics: at most three quarters in all."""
    draws = np.array([shape.own_words * shape.labels_per_document, TOPIC_DRAWS])
    shares: Doubles = draws / max(shape.nonzeros_per_document, draws.sum() / 0.75)
    return shares


def _weights(by_rank: Ints) -> Floats:
    """Return the weight of each feature: 1 plus the logarithm of its rank."""
    weights = np.empty(len(by_rank), np.float32)
    weights[by_rank] = 1.0 + np.log1p(np.arange(len(by_rank)))
    return weights


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
