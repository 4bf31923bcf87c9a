"""Recall of labels added to a trained glas by a few examples each, against the same labels trained.

    python benchmarks/new_labels.py DATA [--labels 50] [--examples 5] [--split validation] [--set KEY=VALUE ...]

Some labels of at least ten training documents, and of some unseen documents, are drawn at random and removed from
train. A model is trained without them, then each is added by examples drawn from train. The table shows recall@5: over
all pairs of document and label (micro), and averaged over labels (macro).
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
from splits import read

from labelspace.cli.recipes import parse_settings
from labelspace.experiment import timed
from labelspace.models.glas.model import Glas
from labelspace.types import Csr, LabelSpace, Longs, TopK

MIN_COUNT = 10  # training documents of a label that is removed


def recalls(Y: Csr, top: TopK, labels: Longs) -> tuple[float, float]:
    """Micro and macro recall of some labels in the top k, in percent."""
    correct = top.to_csr(Y.shape[1]).multiply(Y).tocsc()[:, labels]
    true = np.asarray(Y.tocsc()[:, labels].sum(axis=0)).ravel()
    hits = np.asarray((correct > 0).sum(axis=0)).ravel()
    occurs = true > 0
    return 100 * float(hits.sum() / true.sum()), 100 * float((hits[occurs] / true[occurs]).mean())


def main() -> None:
    """Train with and without some labels, add those, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--labels", type=int, default=50)
    parser.add_argument("--examples", type=int, default=5)
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    (X, Y), (V, W) = read(args.data, args.split, Glas.view.params)
    W = sp.csr_matrix(W)[:, : Y.shape[1]]
    rng = np.random.default_rng(args.seed)
    counts, unseen = (np.bincount(table.indices, minlength=Y.shape[1]) for table in (Y, W))
    new = np.sort(rng.choice(np.flatnonzero((counts >= MIN_COUNT) & (unseen > 0)), args.labels, replace=False))
    others = np.setdiff1d(np.flatnonzero(unseen), new)
    others_only = sp.diags(1.0 - np.isin(np.arange(Y.shape[1]), new).astype(np.float32))
    Y_without = sp.csr_matrix(Y @ others_only)
    Y_without.eliminate_zeros()
    names, params = LabelSpace.numbered(Y.shape[1]), parse_settings(args.settings)
    full = Glas(**params).fit(X, Y, labels=names)
    model = Glas(**params).fit(X, Y_without, labels=names)

    def print_row(title: str, top: TopK) -> None:
        values = [*recalls(W, top, new), *recalls(W, top, others)]
        print(f"| {title} |", " | ".join(f"{value:.2f}" for value in values), "|")

    print(f"{args.labels} labels of {np.sort(counts[new]).tolist()} training documents, {args.split}\n")
    print("| | new labels, micro | new labels, macro | other labels, micro | other labels, macro |")
    print("|---|---|---|---|---|")
    print_row("all labels trained", full.predict_topk(V, 5))
    print_row("trained without the new", model.predict_topk(V, 5))
    by_label = Y.tocsc()
    examples = [X[rng.choice(by_label[:, [label]].indices, args.examples, replace=False)] for label in new]
    with timed() as taken:
        for label, documents in zip(new, examples, strict=True):
            model.add_label(str(label), documents)
    print_row(f"added by {args.examples} examples each", model.predict_topk(V, 5))
    print(f"\n{1e3 * taken.wall / len(new):.1f} ms per added label")


if __name__ == "__main__":
    main()
