"""Whether what ``--precision`` keeps is as often right as was asked for, on documents that were not trained on.

    python benchmarks/precision_splits.py DATA --splits 5          # a fifth of train held out, at random
    python benchmarks/precision_splits.py DATA --test              # the test file

Precision is the share of the kept labels that are right, coverage the share of the right labels that are kept, and
documents the share of documents that keep a label. With a hierarchy, also for ``--consistent``: there a label is right
where a label below it is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

from labelspace.data.source import open_source
from labelspace.data.splits import hold_out
from labelspace.tagger import Tagger
from labelspace.types import Dataset


def splits(data: str, seeds: range) -> Iterator[tuple[str, Dataset, Dataset, Dataset | None]]:
    """A name, documents to train on, others to judge by, and validation documents: random splits, or the test's."""
    source = open_source(data)
    train = source.train()
    test = source.test(train.labels) if not seeds else None
    if test is not None:
        yield "test", train, test, source.dev(train.labels)
    for seed in seeds:
        yield f"split {seed}", *hold_out(train, 0.2, seed), None


def figures(tagger: Tagger, unseen: Dataset, precision: float, k: int, consistent: bool) -> dict[str, float]:
    """What is kept of the k best labels, and how much of it is right."""
    found = tagger.precision_threshold(precision, consistent)
    kept = tagger.predict_topk(tagger.inputs_of(unseen), k, precision=precision, consistent=consistent)
    truth = unseen.Y[:, : len(tagger.labels_)]
    if consistent and tagger.labels_.hierarchy is not None:
        truth = tagger.labels_.hierarchy.closed(truth)
    answers = kept.to_csr(truth.shape[1])
    right = answers.multiply(truth).sum()
    return {
        "threshold": found.threshold,
        "confidence": found.confidence or 0.0,  # 0 for an estimate
        "expected_coverage": found.coverage,
        "precision": right / max(answers.nnz, 1),
        "coverage": right / truth.nnz,
        "documents": float(np.mean(np.diff(answers.indptr) > 0)),
        "labels": float(answers.nnz),
    }


def main() -> None:
    """Print a line for each split, precision asked for, and kind of answers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--precision", default="0.8,0.9,0.95")
    parser.add_argument("--k", default="5,16")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--test", action="store_true")
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + (0 if args.test else args.splits))
    for name, train, unseen, validation in splits(args.data, seeds):
        begin = time.process_time()
        tagger = Tagger().fit_dataset(train, validation=validation)
        print(f"{name}: {len(train)} documents, {time.process_time() - begin:.1f} CPU s", flush=True)
        for consistent in (False, True) if tagger.labels_.hierarchy is not None else (False,):
            for precision in map(float, args.precision.split(",")):
                for k in map(int, args.k.split(",")):
                    found = figures(tagger, unseen, precision, k, consistent)
                    kind = "consistent" if consistent else ""
                    print(f"  {precision:g} k={k}", *(f"{key} {value:.4g}" for key, value in found.items()), kind)


if __name__ == "__main__":
    main()
