"""How many planted label errors ``labelspace data check --deep`` finds: ``python benchmarks/label_errors.py DATA``.

Drops a share of the labels of the training documents and adds as many wrong ones, drawn as often as they are used, to
random documents. What else is found may be an error of the data itself, so the share that was planted is a lower bound
of the precision.
"""

import argparse
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from labelspace.data.checks import Documents
from labelspace.data.source import open_source
from labelspace.experiment.label_errors import Suspects, missing_labels, out_of_fold, wrong_labels
from labelspace.experiment.timing import timed
from labelspace.types import Csr, Dataset

TOPS = (20, 50, 100, 200, 500, 1000)


def main() -> None:
    """Plant, find, and print a line per kind of error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--share", type=float, default=0.05, help="of the labels that is dropped, and added")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    train = open_source(options.data).train()
    noisy, dropped, added = plant(train, options.share, options.seed)
    documents = Documents({"train": noisy})
    with timed() as taken:
        top = out_of_fold(documents, options.seed, None)
        found = {"wrong": (wrong_labels(documents, top), added), "missing": (missing_labels(documents, top), dropped)}
    print(f"{options.data}: {len(train):,} documents, {train.Y.nnz:,} labels, {taken.cpu:.1f} CPU s")
    for kind, (suspects, planted) in found.items():
        print(f"{kind}: {planted.nnz:,} planted; {shown(suspects, planted)}")


def plant(train: Dataset, share: float, seed: int) -> tuple[Dataset, Csr, Csr]:
    """The documents with errors, the labels that were dropped, and those that were added."""
    rng, Y = np.random.default_rng(seed), train.Y.tocoo()
    n = round(share * Y.nnz)
    drop = rng.choice(Y.nnz, n, replace=False)
    wrong = np.stack([rng.integers(0, Y.shape[0], n), Y.col[rng.integers(0, Y.nnz, n)]])
    wrong = wrong[:, np.asarray(train.Y[wrong[0], wrong[1]]).ravel() == 0]
    kept = np.delete(np.stack([Y.row, Y.col]), drop, axis=1)
    dropped, added, noisy = (
        indicator(pairs, Y.shape) for pairs in (np.stack([Y.row, Y.col])[:, drop], wrong, np.hstack([kept, wrong]))
    )
    return replace(train, Y=noisy), dropped, added


def indicator(pairs: np.ndarray, shape: tuple[int, int]) -> Csr:
    """The 0/1 matrix with these rows and columns."""
    matrix = sp.csr_matrix((np.ones(pairs.shape[1], np.float32), (pairs[0], pairs[1])), shape=shape)
    matrix.data[:] = 1
    return matrix


def shown(suspects: Suspects, planted: Csr) -> str:
    """The share that was planted, of all that were found and of the surest."""
    if not len(suspects.documents):
        return "0 found"
    hits = np.asarray(planted[suspects.documents, suspects.labels]).ravel() > 0
    tops = [f"{100 * hits[:k].mean():.0f} % of the first {k}" for k in TOPS if k <= len(hits)]
    return f"{len(hits):,} found, {100 * hits.mean():.0f} % of them planted; {', '.join(tops)}"


if __name__ == "__main__":
    main()
