"""Recall@5 of labels that are held out entirely from training, by the default and by lexical alone.

    python benchmarks/unseen_labels.py DATA [--labels 500] [--documents 12000] [--split validation]

Labels are drawn from the four fifths that are rarest, and removed from all training documents; their names stay. Only
documents that have one are tested. The first figure counts a label that is among the first 5 of all labels, the second
among the first 5 of the labels held out, to which a filter (``include``) restricts the answer.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from labelspace import Tagger
from labelspace.data.source import open_source
from labelspace.data.splits import hold_out
from labelspace.types import Csr, TopK

RARE = 0.8


def recall(Y: Csr, top: TopK) -> float:
    """Return the share of the labels of all documents that are in the answers, in percent."""
    return 100 * float(top.to_csr(Y.shape[1]).multiply(Y).sum() / Y.sum())


def main() -> None:
    """Train each method without some labels, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--labels", type=int, default=500)
    parser.add_argument("--documents", type=int, default=12_000)
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    source, rng = open_source(args.data), np.random.default_rng(args.seed)
    train = source.train()
    test = source.test(train.labels) if args.split == "test" else source.dev(train.labels)
    if test is None:
        train, test = hold_out(train, 0.2, seed=0)
    train = train.rows(np.sort(rng.permutation(len(train))[: args.documents]))
    n_labels = len(train.labels)
    counts = np.bincount(train.Y.indices, minlength=n_labels)
    seen = np.flatnonzero(counts)
    rare = seen[np.argsort(counts[seen], kind="stable")][: int(RARE * len(seen))]
    held = np.sort(rng.permutation(rare)[: args.labels])
    is_held = np.isin(np.arange(n_labels), held).astype(np.float32)
    without = sp.csr_matrix(train.Y @ sp.diags(1 - is_held))
    without.eliminate_zeros()
    wanted = sp.csr_matrix(test.Y[:, :n_labels] @ sp.diags(is_held))
    wanted.eliminate_zeros()
    rows = np.flatnonzero(np.diff(wanted.indptr))[:2000]
    documents, wanted = test.rows(rows), wanted[rows]
    print(f"{len(held)} labels held out, {len(train)} training documents, {len(rows)} documents that have one\n")
    print("| recall@5 of labels held out | among all labels | among these labels |\n|---|---|---|")
    names = [train.labels.names[label] for label in held]
    members = {"lexical": None, "blend": None, "blend without semantic": "neighbors,pdsparse:words+chars,lexical"}
    for title, chosen in members.items():
        tagger = Tagger("lexical") if title == "lexical" else Tagger("blend", members=chosen)
        tagger = tagger.fit_dataset(replace(train, Y=without))
        found = (
            tagger.predict_topk(documents.texts or [], 5),
            tagger.predict_topk(documents.texts or [], 5, include=names),
        )
        print(f"| {title} |", " | ".join(f"{recall(wanted, top):.2f}" for top in found), "|", flush=True)


if __name__ == "__main__":
    main()
