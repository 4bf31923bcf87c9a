"""Write a smaller data set that keeps as many labels as it can: a seeded sample of the documents of a folder.

    python benchmarks/subset.py DATA OUT [--train 45000] [--test 5000] [--seed 0]

1. The training documents are put in random order.
2. In that order, a document is taken if it has a label that no document taken before has.
3. The other documents are taken in the same order until there are as many as asked for.
4. Test documents are a plain random sample. A label that only they have counts as missed.

``labels.jsonl`` keeps the labels that a training document has; a hierarchy is left out. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from labelspace.data.label_files import write_labels
from labelspace.data.source import open_source, write_dataset
from labelspace.types import Csr, LabelSpace, Longs


def covering(Y: Csr, n: int, random: np.random.Generator) -> Longs:
    """At most n rows in file order: those that bring a new label first, then others (steps 1 to 3)."""
    order = random.permutation(Y.shape[0])
    seen = np.zeros(Y.shape[1], bool)
    brings = np.zeros(len(order), bool)
    for place, row in enumerate(order.tolist()):
        labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
        brings[place] = not seen[labels].all()
        seen[labels] = True
    return np.sort(np.concatenate([order[brings], order[~brings]])[:n])


def main() -> None:
    """Read the folder, and write the sample."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("out", type=Path)
    parser.add_argument("--train", type=int, default=45_000)
    parser.add_argument("--test", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    source, random = open_source(args.data), np.random.default_rng(args.seed)
    full = source.train()
    train = full.rows(covering(full.Y, args.train, random))
    test = source.test(full.labels)
    if test is None:
        parser.error(f"DATA must have test.*, but {args.data} has none; give another folder")
    test = test.rows(np.sort(random.permutation(len(test))[: args.test]))
    args.out.mkdir(parents=True, exist_ok=True)
    write_dataset(train, args.out / "train.jsonl.gz")
    write_dataset(test, args.out / "test.jsonl.gz")
    kept = np.unique(train.Y.indices).tolist()
    names, synonyms = full.labels.names, full.labels.synonyms
    write_labels(
        args.out / "labels.jsonl", LabelSpace([names[i] for i in kept], synonyms and [synonyms[i] for i in kept])
    )
    unseen = np.setdiff1d(test.Y.indices, kept)
    figures = {"train": len(train), "test": len(test), "labels": len(kept), "labels_in_test_only": len(unseen)}
    print(json.dumps({**figures, "labels_of_a_document": round(train.Y.nnz / len(train), 2)}))


if __name__ == "__main__":
    main()
