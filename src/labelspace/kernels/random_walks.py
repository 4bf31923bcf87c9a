"""Random walks from label to label, through documents that carry both."""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.random_numbers import advanced, seeded
from labelspace.types import Ints, Longs


@njit(cache=True, nogil=True)
def walk(
    doc_labels: Ints,
    doc_starts: Ints,
    label_docs: Ints,
    label_starts: Ints,
    ends: Longs,
    begin: Ints,
    seed: int,
    out: Ints,
) -> None:
    """One walk from each label in ``begin``; ``out`` (n, length) gets its labels. Walk i draws by ``seed`` + i.

    A step goes to any label of any document of the label before, as often as they share documents, but not to itself.
    The labels of a document are sorted. ``ends`` (n_pairs + 1,) counts, up to each place of ``label_docs``, the other
    labels of the documents there, so one number drawn says both the document and the label; each of ``begin`` has one.
    """
    for i in range(len(begin)):
        state = seeded(seed + i)
        for _ in range(4):
            state = advanced(state)
        label = begin[i]
        out[i, 0] = label
        for step in range(1, out.shape[1]):
            state = advanced(state)
            low, high = label_starts[label], label_starts[label + 1]
            drawn = ends[low] + np.int64(state % np.uint64(ends[high] - ends[low]))
            while high - low > 1:  # the last place where not more than ``drawn`` are before it
                middle = (low + high) // 2
                if ends[middle] <= drawn:
                    low = middle
                else:
                    high = middle
            place = doc_starts[label_docs[low]] + drawn - ends[low]
            other = doc_labels[place]
            label = other if other < label else doc_labels[place + 1]  # the label itself is passed over
            out[i, step] = label
