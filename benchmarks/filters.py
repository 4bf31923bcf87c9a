"""Filters: are answers among some labels exact, and what do they cost?

    python benchmarks/filters.py MODEL DATA --n 200

For random sets of allowed labels, and for all but three: the test documents whose answer differs from brute force (the
list of all labels, without those that are not allowed), and the time with the filter over that without, of one document
(median) and of all in a batch, in alternation.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import labelspace
from labelspace import Tagger
from labelspace.data.source import read_dataset, split_file
from labelspace.labels.tag_options import TagOptions

SIZES = (5, 50, 300, 1000)
K = 5
RUNS = 3
NO_FILTER: TagOptions = {}


def alone(tagger: Tagger, inputs: Any, options: TagOptions) -> float:  # noqa: ANN401 - texts or a matrix
    """The median CPU milliseconds of one document."""
    taken = []
    for i in range(inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)):
        start = time.process_time()
        tagger.predict_topk(inputs[i : i + 1], K, **options)
        taken.append(time.process_time() - start)
    return 1000 * float(np.median(taken))


def batch(tagger: Tagger, inputs: Any, options: TagOptions) -> float:  # noqa: ANN401
    """CPU milliseconds of all."""
    start = time.process_time()
    tagger.predict_topk(inputs, K, **options)
    return 1000 * (time.process_time() - start)


def main() -> None:
    """Print a line for each set of labels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--n", type=int, default=200, help="documents")
    args = parser.parse_args()
    tagger, file = labelspace.load(args.model), split_file(args.data, "test")
    assert file is not None
    documents = read_dataset(file, tagger.labels_, tagger.columns_).rows(range(args.n))
    inputs, n = tagger.inputs_of(documents), len(tagger.labels_)
    names, rng = tagger.labels_.names, np.random.default_rng(0)
    every = tagger.predict_topk(inputs, n)
    for size in [*(size for size in SIZES if size < n), n - 3]:
        drawn = np.sort(rng.permutation(n)[: min(size, n - size)]).tolist()
        allowed = np.isin(np.arange(n), drawn) == (size <= n - size)
        chosen = [names[label] for label in drawn]
        options: TagOptions = {"include": chosen} if size <= n - size else {"exclude": chosen}
        found = tagger.predict_topk(inputs, K, **options)
        differ = int((found.labels != every.among(allowed, K).labels).any(axis=1).sum())
        # Documents after each other, not twice: what was found in the last text is kept.
        runs = [[run(tagger, inputs, o) for run in (alone, batch) for o in (NO_FILTER, options)] for _ in range(RUNS)]
        plain, filtered, plain_batch, filtered_batch = np.mean(runs, axis=0)
        print(
            f"{size:7,} of {n:,} labels: {differ} of {args.n} answers differ from brute force; one document "
            f"{plain:.2f} -> {filtered:.2f} ms ({filtered / plain:.2f} x), batch {filtered_batch / plain_batch:.2f} x"
        )


if __name__ == "__main__":
    main()
