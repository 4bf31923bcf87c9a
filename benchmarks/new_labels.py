"""Labels added to a trained glas by a few examples each, beside the same labels trained in full.

    python benchmarks/new_labels.py DATA [--labels 50] [--examples 5] [--split validation] [--set KEY=VALUE ...]

Some labels, drawn among those of at least ten training documents that the unseen documents have, are taken out of
train; a model is trained without them, then each is added by examples drawn from train. Printed is recall@5: the share
of true pairs of document and label found among the first five, over all pairs, and averaged label by label.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
from splits import read

from labelspace.cli.options import parse_settings
from labelspace.experiment import timed
from labelspace.models.glas.model import Glas
from labelspace.types import Csr, LabelSpace, Longs, TopK

LEAST = 10  # training documents of a label that is taken out


def recalls(Y: Csr, top: TopK, which: Longs) -> tuple[float, float]:
    """Recall of some labels among the first places, over all pairs and averaged over labels, in percent."""
    found = top.to_csr(Y.shape[1]).multiply(Y).tocsc()[:, which]
    true = np.asarray(Y.tocsc()[:, which].sum(axis=0)).ravel()
    hits = np.asarray((found > 0).sum(axis=0)).ravel()
    listed = true > 0
    return 100 * float(hits.sum() / true.sum()), 100 * float((hits[listed] / true[listed]).mean())


def main() -> None:
    """Train in full and without some labels, add those, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--labels", type=int, default=50)
    parser.add_argument("--examples", type=int, default=5)
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    (X, Y), (V, W) = read(args.data, args.split, Glas.text_features)
    W = sp.csr_matrix(W)[:, : Y.shape[1]]
    rng = np.random.default_rng(args.seed)
    counts, unseen = (np.bincount(table.indices, minlength=Y.shape[1]) for table in (Y, W))
    out = np.sort(rng.choice(np.flatnonzero((counts >= LEAST) & (unseen > 0)), args.labels, replace=False))
    others = np.setdiff1d(np.flatnonzero(unseen), out)
    keep = sp.diags(1.0 - np.isin(np.arange(Y.shape[1]), out).astype(np.float32))
    less = sp.csr_matrix(Y @ keep)
    less.eliminate_zeros()
    names, settings = LabelSpace.numbered(Y.shape[1]), parse_settings(args.settings)
    full = Glas(**settings).fit(X, Y, labels=names)
    model = Glas(**settings).fit(X, less, labels=names)

    def line(who: str, top: TopK) -> None:
        figures = [*recalls(W, top, out), *recalls(W, top, others)]
        print(f"| {who} |", " | ".join(f"{value:.2f}" for value in figures), "|")

    print(f"{args.labels} labels of {np.sort(counts[out]).tolist()} training documents, {args.split}\n")
    print("| | new labels, pairs | new labels, labels | other labels, pairs | other labels, labels |")
    print("|---|---|---|---|---|")
    line("trained in full", full.predict_topk(V, 5))
    line("trained without", model.predict_topk(V, 5))
    by_label = Y.tocsc()
    examples = [X[rng.choice(by_label[:, [label]].indices, args.examples, replace=False)] for label in out]
    with timed() as taken:
        for label, some in zip(out, examples, strict=True):
            model.add_label(str(label), some)
    line(f"added by {args.examples} examples each", model.predict_topk(V, 5))
    print(f"\n{1e3 * taken.wall / len(out):.1f} ms to add a label")


if __name__ == "__main__":
    main()
