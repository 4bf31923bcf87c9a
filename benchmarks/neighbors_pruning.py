"""What ``pruning`` of neighbors costs and saves: accuracy on documents held out, and the time of one document.

    python benchmarks/neighbors_pruning.py DATA [--shares 0,0.05,0.1] [--n-neighbors 20] [--power 8]
    python benchmarks/neighbors_pruning.py --synthetic 490000 [--random-weights]

Held-out documents are those of ``dev.*``, or a fifth of train; the test file is not read. Synthetic documents have 75
features on average by Zipf's law, as tf-idf or with random weights, and one label each. Prints a line of JSON for each
share. For times on one thread, set LABELSPACE_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
from functools import partial

import numpy as np
import scipy.sparse as sp
from splits import Split, read

from labelspace.experiment.timing import latency
from labelspace.metrics.ranking import ndcg_at_k
from labelspace.models.neighbors import Neighbors
from labelspace.types import Csr

N_FEATURES, N_LABELS, DRAWS = 135_909, 670_000, 92  # as Amazon-670K; 92 draws are 75 features
N_QUERIES = 300


def zipf_documents(n: int, random_weights: bool) -> Csr:
    """Documents whose features follow Zipf's law."""
    rng = np.random.default_rng(0)
    shares = np.cumsum(1 / np.arange(1, N_FEATURES + 1))
    features = np.searchsorted(shares / shares[-1], rng.random(n * DRAWS)).astype(np.int32)
    rows = np.repeat(np.arange(n, dtype=np.int32), DRAWS)
    X = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, features)), (n, N_FEATURES))
    X.sum_duplicates()
    idf = np.log((1 + n) / (1 + np.bincount(X.indices, minlength=N_FEATURES))) + 1
    weights = rng.random(X.nnz) + 0.05 if random_weights else (1 + np.log(X.data)) * idf[X.indices]
    X.data = weights.astype(np.float32)
    return X


def synthetic(n: int, random_weights: bool) -> tuple[Split, Split]:
    """Documents to index and others to tag, with a random label each."""
    X = zipf_documents(n + N_QUERIES, random_weights)
    labels = np.random.default_rng(1).integers(0, N_LABELS, X.shape[0])
    Y = sp.csr_matrix((np.ones(X.shape[0], np.float32), (np.arange(X.shape[0]), labels)), (X.shape[0], N_LABELS))
    return (X[:n], Y[:n]), (X[n:], Y[n:])


def main() -> None:
    """One model per share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--synthetic", type=int, metavar="DOCUMENTS")
    parser.add_argument("--random-weights", action="store_true")
    parser.add_argument("--shares", default="0,0.05,0.1")
    parser.add_argument("--n-neighbors", type=int, default=20)
    parser.add_argument("--power", type=float, default=8.0)
    args = parser.parse_args()
    if (args.data is None) == (args.synthetic is None):
        parser.error("give either DATA or --synthetic")
    (X, Y), (unseen, truth) = (
        read(args.data, "dev", {"ngrams": 1}) if args.data else synthetic(args.synthetic, args.random_weights)
    )
    for share in map(float, args.shares.split(",")):
        model = Neighbors(n_neighbors=args.n_neighbors, power=args.power, pruning=share).fit(X, Y)
        figures = {} if args.synthetic else {"nDCG@5": round(100 * ndcg_at_k(truth, model.predict_topk(unseen, 5)), 2)}
        arrays = [getattr(model, name) for name in model.state if isinstance(getattr(model, name), np.ndarray)]
        print(json.dumps({
            "pruning": share, "MB": round(sum(array.nbytes for array in arrays) / 1e6, 1),
            **figures,
            **latency(partial(model.predict_topk, k=5), unseen),
        }), flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
