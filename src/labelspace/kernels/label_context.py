"""What the other candidates of a document say of one: columns for the second pass of a stacked ensemble."""

import numpy as np

from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.topk import push, sort_best_first
from labelspace.types import Floats, Ints, Longs

N_COLUMNS = 12


@part()
def documents_of_both(one: int, other: int, partners: Ints, shared: Floats, starts: Longs) -> float:
    """The documents that two labels share: label i has the sorted partners[starts[i] : starts[i + 1]], all above i."""
    low, high = min(one, other), max(one, other)
    left, right = starts[low], starts[low + 1]
    while left < right:
        middle = (left + right) // 2
        if partners[middle] < high:
            left = middle + 1
        else:
            right = middle
    return np.float64(shared[left]) if left < starts[low + 1] and partners[left] == high else 0.0


@kernel()
def fill_context(
    labels: Ints, probabilities: Floats, columns: Floats, ends: Longs, start: int, stop: int, counts: Floats,
    n_documents: float, partners: Ints, shared: Floats, starts: Longs, best: Ints, table: Floats,
) -> None:  # fmt: skip
    """The most probable candidates of documents start..stop, as rows of ``best``, and their context.

    Document i has the candidates ends[i] : ends[i + 1]. ``best`` (n, shortlist) gets their row numbers, -1 where there
    are fewer; ``table`` (n, shortlist, N_COLUMNS) gets log-odds, rank, sum of the document's probabilities, difference
    to the next and to the one before; then, over the other candidates, probability times PMI, probability times
    P(this | other), the largest of these, and probability times P(other | this); the last three of ``columns``.
    """
    size = best.shape[1]
    p = np.empty(size, np.float32)
    for i in range(start, stop):
        n, total = 0, 0.0
        for row in range(ends[i], ends[i + 1]):
            n = push(p, best[i], n, probabilities[row], row)
            total += probabilities[row]
        sort_best_first(p, best[i], n)
        for rank in range(n):
            label, out = labels[best[i, rank]], table[i, rank]
            count, odds = counts[label], min(max(np.float64(p[rank]), 1e-6), 1.0 - 1e-6)
            by_pmi, by_others, largest, by_this = 0.0, 0.0, 0.0, 0.0
            for at in range(n):
                if at != rank:
                    other = labels[best[i, at]]
                    both = documents_of_both(label, other, partners, shared, starts)
                    expected = count * counts[other] / n_documents
                    by_pmi += p[at] * np.log((both + 1.0) / (expected + 1.0))
                    support = p[at] * both / max(counts[other], 1.0)
                    by_others, largest = by_others + support, max(largest, support)
                    by_this += p[at] * both / max(count, 1.0)
            out[0], out[1], out[2] = np.log(odds / (1.0 - odds)), rank, total
            out[3] = p[rank] - (p[rank + 1] if rank + 1 < n else 0.0)
            out[4] = (p[rank - 1] if rank > 0 else 1.0) - p[rank]
            out[5], out[6], out[7], out[8] = by_pmi, by_others, largest, by_this
            for j in range(3):
                out[9 + j] = columns[best[i, rank], columns.shape[1] - 3 + j]
