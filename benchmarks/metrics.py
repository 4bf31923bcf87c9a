"""Time ``labelspace.metrics.evaluate`` on random data; prints one JSON line.

python benchmarks/metrics.py --documents 100000 --labels 100000
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import scipy.sparse as sp

from labelspace.metrics import evaluate, random_topk
from labelspace.types import Csr, TopK


def planted(n: int, n_labels: int, seed: int, labels_per_document: int = 5) -> tuple[Csr, TopK]:
    """Random labels, and a ranking in which about half of the labels are correct."""
    truth = random_topk(n_labels, n, labels_per_document, seed)
    guess = random_topk(n_labels, n, labels_per_document, seed + 1).labels.copy()
    keep = np.random.default_rng(seed).random(guess.shape) < 0.5
    guess = np.where(keep, truth.labels, guess)
    ordered = np.sort(guess, axis=1)
    clash = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    guess[clash] = truth.labels[clash]
    indptr = np.arange(0, truth.labels.size + 1, labels_per_document)
    Y = sp.csr_matrix((np.ones(truth.labels.size, np.float32), truth.labels.ravel(), indptr), shape=(n, n_labels))
    Y.sort_indices()
    return Y, TopK(guess, truth.scores)


def main() -> None:
    """Evaluate a few times and report the median."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    Y, topk = planted(args.documents, args.labels, args.seed)
    counts = np.bincount(Y.indices, minlength=args.labels)
    seconds = []
    for _ in range(args.repeats):
        start = time.perf_counter()
        scores = evaluate(Y, topk, counts, n_documents=args.documents)
        seconds.append(time.perf_counter() - start)
    print(
        json.dumps(
            {
                "benchmark": "metrics.evaluate",
                "documents": args.documents,
                "labels": args.labels,
                "seconds_median": round(float(np.median(seconds)), 4),
                "seconds_min": round(min(seconds), 4),
                "P@5": scores["P@5"],
            }
        )
    )


if __name__ == "__main__":
    main()
