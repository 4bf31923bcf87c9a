"""One run of ``scaling.py``: train, save, load and predict with one method, and print the cost as one JSON line.

A small training compiles or loads the kernels first, and is not counted. Where it compiled some, this process begins
anew, since the compiler leaves memory in use.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from cost_sides import K, measure

from labelspace.data.synthetic import shaped
from labelspace.experiment.timing import timed
from labelspace.experiment.warmup import compile_kernels, reads_features
from labelspace.models.registry import create
from labelspace.tagger import Tagger
from labelspace.types import Csr, Dataset, LabelSpace, TopK

SMALL = 0.003  # of Amazon-670K: 2,010 labels, for the training that is not counted
RESET_PEAK = "5"  # what /proc/self/clear_refs takes for it: see proc(5)


class MethodSide:
    """A method with its defaults, on the matrices in a folder: a ``Side`` of ``cost_sides.measure``."""

    def __init__(self, method: str, folder: Path) -> None:
        self.method, self.folder, self.compiling = method, folder, 0.0
        self.tagger = Tagger(create(method))

    def compile(self) -> bool:
        """Whether a small training, and prediction, had kernels to compile."""
        with timed() as taken:
            compile_kernels(self.method, self.readable(shaped("Amazon-670K", SMALL)[0]))
        return taken.compiling > 0

    def read_train(self) -> None:
        """Read, and forget how much memory was in use before."""
        Y = sp.load_npz(self.folder / "labels.npz")
        self.train = self.readable(
            Dataset(Y, LabelSpace.numbered(Y.shape[1]), X=sp.load_npz(self.folder / "train.npz"))
        )
        Path("/proc/self/clear_refs").write_text(RESET_PEAK, encoding="ascii")

    def readable(self, documents: Dataset) -> Dataset:
        """The documents as features, or as texts for a method that reads nothing else."""
        if reads_features(self.method, documents):
            return documents
        return Dataset(documents.Y, documents.labels, texts=texts_of(documents.X), name=documents.name)

    def fit(self) -> None:
        """As ``labelspace train`` does."""
        with timed() as taken:
            self.tagger.fit_dataset(self.train)
        self.compiling = taken.compiling

    def save_and_load(self, folder: Path) -> None:
        """Predict with the loaded model."""
        self.tagger.save(folder / "model")
        self.tagger = Tagger.load(folder / "model")

    def read_test(self) -> Csr | Sequence[str]:
        """Features, or texts where these were trained on."""
        X = sp.load_npz(self.folder / "test.npz")
        return X if self.train.texts is None else texts_of(X)

    def predict(self, documents: Any) -> TopK:  # noqa: ANN401 - as ``Side`` has it
        """The best labels."""
        return self.tagger.predict_topk(documents, K)

    predict_one = predict

    def ranked(self, answer: TopK) -> Any:  # noqa: ANN401 - as ``Side`` has it
        """Their ids."""
        return answer.labels


def texts_of(X: Csr | None) -> list[str]:
    """A word for each feature of a document.

    >>> texts_of(sp.csr_matrix([[0, 0.3, 0.2], [0.1, 0, 0]]))
    ['w1 w2', 'w0']
    """
    assert X is not None
    rows = zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)
    return [" ".join(f"w{feature}" for feature in X.indices[start:end].tolist()) for start, end in rows]


def main() -> None:
    """Measure one method; what else is printed does not get to the standard output."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method")
    parser.add_argument("folder", type=Path, help="where scaling.py wrote the matrices, and answers go")
    parser.add_argument("--again", action="store_true", help="do not begin anew (used by this script)")
    args = parser.parse_args()
    side = MethodSide(args.method, args.folder)
    if side.compile() and not args.again:
        os.execv(sys.executable, [sys.executable, *sys.argv, "--again"])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    print(json.dumps(measure(side, args.folder / "ours.npy")), file=out, flush=True)


if __name__ == "__main__":
    main()
