"""Encoders of texts compared: label retrieval without training, nearest centroids, and CPU time.

    LABELSPACE_THREADS=1 python benchmarks/encoders.py DATA [DATA ...] [--encoders granite,static,FOLDER]

Of each DATA (a folder with ``labels.jsonl``, ``train`` and ``test``), ``--train`` and ``--test`` documents are drawn.
Zero-shot recall@5 is the share of a document's labels among the five whose names are nearest to it. A centroid is the
mean vector of a label's documents: of all of them, or of eight drawn. Milliseconds of CPU time are the best of three
runs: for texts of 100 words one by one and 64 at once, and for the test texts of the first DATA.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import labelspace
from labelspace.data.source import split_file
from labelspace.features.encoders import Encoder, load_encoder
from labelspace.kernels.normalize import row_norms
from labelspace.types import Csr, Dataset, Floats, Longs

SHOTS = 8
LONG = 100  # tokens, about


def drawn(path: Path | None, n: int, labels: labelspace.LabelSpace | None) -> Dataset:
    """Return n random documents of a file."""
    assert path is not None
    documents = labelspace.read_dataset(path, labels)
    return documents.rows(np.random.default_rng(0).permutation(documents.Y.shape[0])[:n])


def names(labels: labelspace.LabelSpace) -> list[str]:
    """Return the names as plain words."""
    return [name.replace("-", " ").replace("_", " ") for name in labels.names]


def centroids(vectors: Floats, Y: Csr, most: int) -> Floats:
    """Return the mean direction of at most this many documents of each label."""
    by_label, sums = Y.tocsc(), np.zeros((Y.shape[1], vectors.shape[1]), np.float32)
    for label in range(Y.shape[1]):
        rows = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        sums[label] = vectors[rows[:most]].sum(axis=0)
    return np.asarray(sums / row_norms(sums)[:, None], np.float32)


def hits(scores: Floats, Y: Csr, k: int) -> Longs:
    """Return how many of the k best labels of each document are true ones."""
    best = np.argpartition(-scores, k, axis=1)[:, :k]
    return np.array([np.isin(row, Y[i].indices).sum() for i, row in enumerate(best)])


def accuracy(encoder: Encoder, train: Dataset, test: Dataset) -> list[float]:
    """Return zero-shot recall@5, and P@1 by all documents of a label and by eight."""
    assert train.texts is not None
    assert test.texts is not None
    known = np.diff(test.Y.indptr) > 0
    X, queries = encoder.encode(train.texts), encoder.encode(test.texts)[known]
    Y, n_true = test.Y[known], np.diff(test.Y.indptr)[known]
    recall = hits(queries @ encoder.encode(names(train.labels)).T, Y, 5) / n_true
    found = [hits(queries @ centroids(X, train.Y, most).T, Y, 1) for most in (len(X), SHOTS)]
    return [100 * float(np.mean(each)) for each in (recall, *found)]


def milliseconds(encoder: Encoder, texts: list[str], batch_size: int) -> float:
    """Return the CPU time of a text, the best of three runs."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        encoder.encode(texts, batch_size)
        times.append(time.process_time() - begin)
    return 1000 * min(times) / len(texts)


def main() -> None:
    """Print a row for each encoder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--encoders", default="granite,static")
    parser.add_argument("--train", type=int, default=6000)
    parser.add_argument("--test", type=int, default=1000)
    args = parser.parse_args()
    splits = []
    for folder in args.data:
        labels = drawn(split_file(folder, "train"), 1, None).labels
        splits.append(
            [drawn(split_file(folder, split), n, labels) for split, n in (("train", args.train), ("test", args.test))]
        )
    short = list(splits[0][1].texts or [])[:512]
    words = " ".join(short).split()
    long = [" ".join(words[at : at + int(LONG / 1.3)]) for at in range(0, len(words) - LONG, LONG)][:64]
    print(
        "recall@5, P@1, P@1 of eight for each data set; ms for 100 tokens, alone and in 64; for a short text, the same"
    )
    for name in args.encoders.split(","):
        encoder = load_encoder(name)
        figures = [figure for train, test in splits for figure in accuracy(encoder, train, test)]
        times = [milliseconds(encoder, texts, size) for texts in (long, short) for size in (1, 64)]
        print(Path(name).name, *(f"{figure:.1f}" for figure in figures), *(f"{each:.4f}" for each in times), flush=True)


if __name__ == "__main__":
    main()
