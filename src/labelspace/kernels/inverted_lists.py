"""Which inverted lists a query reads: those of the highest scores, until they have enough rows."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.topk import select_best
from labelspace.types import Floats, Ints, Longs


@kernel()
def choose_lists(scores: Floats, starts: Longs, n_rows: int, out: Ints) -> None:
    """The lists of highest score that have ``n_rows`` rows together, ascending; the first -1 ends them.

    ``scores`` and ``out`` are (m, n_lists); list c has starts[c + 1] - starts[c] rows. Of equal scores, the first list
    is read.
    """
    n_lists = scores.shape[1]
    best, lists = np.empty(n_lists, np.float32), np.empty(n_lists, np.int32)
    for i in range(len(scores)):
        n_read = min(n_lists, 2 * (n_rows * n_lists // max(starts[n_lists], 1)) + 8)
        while True:
            for c in range(n_lists):
                best[c], lists[c] = scores[i, c], c
            select_best(best, lists, n_lists, n_read)
            total = 0
            for j in range(n_read):
                total += starts[lists[j] + 1] - starts[lists[j]]
            if total >= n_rows or n_read == n_lists:
                break
            n_read = min(n_lists, 2 * n_read)
        order = np.argsort(lists[:n_read])
        chosen = lists[:n_read][order]
        ranked = np.argsort(-best[:n_read][order], kind="mergesort")  # stable: by score, then by list
        total, n_kept = 0, 0
        while n_kept < n_read and total < n_rows:
            c = chosen[ranked[n_kept]]
            total += starts[c + 1] - starts[c]
            n_kept += 1
        kept = np.sort(chosen[ranked[:n_kept]])
        for j in range(n_lists):
            out[i, j] = kept[j] if j < n_kept else -1
