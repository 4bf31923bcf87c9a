"""Random walks from label to label, through documents that have both."""

import numpy as np

from labelspace.kernels.compiled import kernel
from labelspace.kernels.random_numbers import initial_state, next_state
from labelspace.types import Ints, Longs


@kernel()
def sample_walks(
    doc_labels: Ints, doc_starts: Ints, label_docs: Ints, label_starts: Ints, ends: Longs, first_labels: Ints,
    seed: int, out: Ints,
) -> None:  # fmt: skip
    """One walk from each of ``first_labels``; ``out`` (n, length) gets its labels. Walk i is seeded with ``seed`` + i.

    A step goes to any other label of any document of the current label, weighted by the documents they share. The
    labels of a document are sorted. ``ends`` (n_pairs + 1,) counts, up to each entry of ``label_docs``, the other
    labels of the documents there, so one random number gives both document and label; each first label has a neighbor.
    """
    for i in range(len(first_labels)):
        state = initial_state(seed + i)
        for _ in range(4):
            state = next_state(state)
        label = first_labels[i]
        out[i, 0] = label
        for step in range(1, out.shape[1]):
            state = next_state(state)
            low, high = label_starts[label], label_starts[label + 1]
            drawn = ends[low] + np.int64(state % np.uint64(ends[high] - ends[low]))
            while high - low > 1:  # the last entry with ends <= drawn
                middle = (low + high) // 2
                if ends[middle] <= drawn:
                    low = middle
                else:
                    high = middle
            pos = doc_starts[label_docs[low]] + drawn - ends[low]
            other = doc_labels[pos]
            label = other if other < label else doc_labels[pos + 1]  # skip the label itself
            out[i, step] = label
