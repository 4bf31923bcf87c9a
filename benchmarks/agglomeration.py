"""The cost of the complete-link tree over labels, and its height.

    python benchmarks/agglomeration.py [--labels 4000,20000,200000,1000000] [--measure counts] [--seed 0]
    python benchmarks/agglomeration.py --labels DATA,DATA

``--labels`` takes numbers of labels, or folders of data, whose training labels are used. For a number, labels are drawn
by a power law (frequency of the r-th label as r^-0.9): a document has 5, and each but the first is, with probability
1/2, from the same small group of labels as the first. The number of documents gives about as many pairs as collections
of that size have. ``pairs`` are pairs of labels that share a document, ``similarity_s`` the seconds to count them.
For each kind of ties: ``seconds`` of the tree, ``positive`` merges at a similarity above 0, ``height`` and
``balance`` (1 is fully balanced) before and after rebalancing, which takes ``rebalance_s``. Each size runs in a child
process, to measure its peak memory alone: ``start_MB`` is the peak before the trees are built, ``peak_MB`` after.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from labelspace.data.source import open_source
from labelspace.labels.tree import balance
from labelspace.models.hierarchicalxc.dendrogram import TIES, complete_link, label_similarity, rebalanced
from labelspace.types import Csr

PER_DOCUMENT = 5
GROUP = 40
COLUMNS = (
    "labels", "pairs", "similarity_s", "ties", "seconds", "positive", "height", "balance", "rebalance_s", "low_height",
    "low_balance", "start_MB", "peak_MB",
)  # fmt: skip


def documents(n_labels: int, seed: int) -> Csr:
    """Labels of drawn documents (n, n_labels)."""
    rng = np.random.default_rng(seed)
    n = int(1.6 * n_labels + 40_000)
    cumulative = np.cumsum(np.arange(1, n_labels + 1) ** -0.9)
    drawn = np.searchsorted(cumulative, rng.random((n, PER_DOCUMENT)) * cumulative[-1]).clip(max=n_labels - 1)
    group_order = rng.permutation(n_labels)  # labels with adjacent ids are of one group
    drawn = group_order[drawn]
    near = drawn[:, :1] // GROUP * GROUP + rng.integers(0, GROUP, drawn.shape)
    in_group = rng.random(drawn.shape) < 0.5
    in_group[:, 0] = False
    labels = np.where(in_group, near, drawn).clip(max=n_labels - 1)
    ends = np.arange(0, PER_DOCUMENT * n + 1, PER_DOCUMENT)
    Y = sp.csr_matrix((np.ones(labels.size, np.float32), labels.ravel(), ends), shape=(n, n_labels))
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y


def peak() -> int:
    """The peak memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def line(values: Sequence[object]) -> str:
    """One line of the table."""
    return "  ".join(f"{value!s:>{max(len(name), 8)}}" for name, value in zip(COLUMNS, values, strict=True))


def label_matrix(source: str, seed: int) -> Csr:
    """The labels of drawn documents for a number, of train for a folder; every label has a document."""
    if source.isdecimal():
        return documents(int(source), seed)
    Y = open_source(source).train().Y
    return Y[:, np.unique(Y.indices)]


def measure(source: str, similarity: str, seed: int) -> None:
    """Print one row for each kind of ties."""
    small = sp.csr_matrix(np.diag(np.ones(9, np.float32), 1) + np.diag(np.ones(9, np.float32), -1))
    for ties in TIES:
        rebalanced(complete_link(small, ties))  # compiles
    start = time.perf_counter()
    S = label_similarity(label_matrix(source, seed), similarity)
    counted, before = time.perf_counter() - start, peak()
    for ties in reversed(TIES):
        start = time.perf_counter()
        tree = complete_link(S, ties)
        built = time.perf_counter()
        low = rebalanced(tree)
        done = time.perf_counter()
        row = (
            S.shape[0], (S.nnz - np.count_nonzero(S.diagonal())) // 2, f"{counted:.1f}", ties, f"{built - start:.2f}",
            np.count_nonzero(tree.similarity), tree.height(), f"{balance(tree.n_labels, tree.height()):.4f}",
            f"{done - built:.2f}", low.height(), f"{balance(low.n_labels, low.height()):.2f}", before, peak(),
        )  # fmt: skip
        print(line(row), flush=True)


def main() -> None:
    """Run every size in a separate process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default="4000,20000,200000,1000000")
    parser.add_argument("--measure", default="counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="in this process, without the names of the columns")
    options = parser.parse_args()
    if options.here:
        measure(options.labels, options.measure, options.seed)
        return
    print(line(COLUMNS), flush=True)
    for labels in options.labels.split(","):
        args = ["--here", "--labels", labels, "--measure", options.measure, "--seed", str(options.seed)]
        subprocess.run([sys.executable, __file__, *args], check=True)


if __name__ == "__main__":
    main()
