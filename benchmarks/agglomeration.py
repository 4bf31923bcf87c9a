"""What the complete-link tree over labels costs, and how low it is.

    python benchmarks/agglomeration.py [--labels 4000,20000,200000,1000000] [--measure counts] [--seed 0]
    python benchmarks/agglomeration.py --labels DATA,DATA

In place of a number a folder of data may stand: the labels of its training documents. Else labels are drawn by a power
law (frequency of the r-th label as r^-0.9): a document has 5, of which each is, one time in two, from the same small
group of labels as its first. There are as many documents as give about the pairs that collections of that size have.
``pairs`` are the labels that share a document, ``likeness_s`` the seconds to count them.
For each way to break ties: ``seconds`` of the tree, ``positive`` merges at a similarity above 0, ``height`` and
``balance`` (1 is as low as can be) before and after it is refolded, which takes ``fold_s``. Each size runs in a child
process, so that its peak memory is its own: ``start_MB`` is the peak before the trees were made, ``peak_MB`` after.
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
from labelspace.models.hierarchicalxc.dendrogram import TIES, balanced, complete_link, label_similarity
from labelspace.types import Csr

PER_DOCUMENT = 5
GROUP = 40
COLUMNS = (
    "labels", "pairs", "likeness_s", "ties", "seconds", "positive", "height", "balance", "fold_s", "low_height",
    "low_balance", "start_MB", "peak_MB",
)  # fmt: skip


def documents(n_labels: int, seed: int) -> Csr:
    """Labels of drawn documents (n, n_labels)."""
    rng = np.random.default_rng(seed)
    n = int(1.6 * n_labels + 40_000)
    chance = np.cumsum(np.arange(1, n_labels + 1) ** -0.9)
    drawn = np.searchsorted(chance, rng.random((n, PER_DOCUMENT)) * chance[-1]).clip(max=n_labels - 1)
    place = rng.permutation(n_labels)  # labels that are neighbors here are of one group
    drawn = place[drawn]
    near = drawn[:, :1] // GROUP * GROUP + rng.integers(0, GROUP, drawn.shape)
    together = rng.random(drawn.shape) < 0.5
    together[:, 0] = False
    labels = np.where(together, near, drawn).clip(max=n_labels - 1)
    ends = np.arange(0, PER_DOCUMENT * n + 1, PER_DOCUMENT)
    Y = sp.csr_matrix((np.ones(labels.size, np.float32), labels.ravel(), ends), shape=(n, n_labels))
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y


def peak() -> int:
    """The most memory this process had so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def line(values: Sequence[object]) -> str:
    """One line of the table."""
    return "  ".join(f"{value!s:>{max(len(name), 8)}}" for name, value in zip(COLUMNS, values, strict=True))


def labels_of(what: str, seed: int) -> Csr:
    """Drawn documents' labels for a number, those of train for a folder, each with a document."""
    if what.isdecimal():
        return documents(int(what), seed)
    Y = open_source(what).train().Y
    return Y[:, np.unique(Y.indices)]


def measure(what: str, likeness: str, seed: int) -> None:
    """Print one row for each way to break ties."""
    small = sp.csr_matrix(np.diag(np.ones(9, np.float32), 1) + np.diag(np.ones(9, np.float32), -1))
    for ties in TIES:
        balanced(complete_link(small, ties))  # compiles
    start = time.perf_counter()
    S = label_similarity(labels_of(what, seed), likeness)
    counted, before = time.perf_counter() - start, peak()
    for ties in reversed(TIES):
        start = time.perf_counter()
        tree = complete_link(S, ties)
        grown = time.perf_counter()
        low = balanced(tree)
        folded = time.perf_counter()
        row = (
            S.shape[0], (S.nnz - np.count_nonzero(S.diagonal())) // 2, f"{counted:.1f}", ties, f"{grown - start:.2f}",
            np.count_nonzero(tree.similarity), tree.height(), f"{tree.balance():.4f}", f"{folded - grown:.2f}",
            low.height(), f"{low.balance():.2f}", before, peak(),
        )  # fmt: skip
        print(line(row), flush=True)


def main() -> None:
    """Run every size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default="4000,20000,200000,1000000")
    parser.add_argument("--measure", default="counts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="in this process, without the names of the columns")
    asked = parser.parse_args()
    if asked.here:
        measure(asked.labels, asked.measure, asked.seed)
        return
    print(line(COLUMNS), flush=True)
    for labels in asked.labels.split(","):
        own = ["--here", "--labels", labels, "--measure", asked.measure, "--seed", str(asked.seed)]
        subprocess.run([sys.executable, __file__, *own], check=True)


if __name__ == "__main__":
    main()
