"""Going on learning against training again: figures, CPU seconds and calibration, on a stream of documents.

    python benchmarks/learning.py DATA [--method blend] [--set KEY=VALUE ...] [--batches 10] [--split validation]

A model is trained on 70 % of the training documents (``--share``). The others come in batches, each of which
``Tagger.learn`` learns. Some labels, drawn at random, occur in the later documents only. The table compares the model
before, the model that went on learning, and a model trained on all documents; by default on documents cut from train.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from labelspace import metrics
from labelspace.cli.recipes import parse_settings
from labelspace.data.source import open_source
from labelspace.data.splits import hold_out
from labelspace.experiment import timed
from labelspace.labels.masks import labels_among
from labelspace.models.capabilities import Calibrated
from labelspace.tagger import Tagger
from labelspace.types import Bools, Csr, Dataset, Longs, TopK

K = 5


class Stream(NamedTuple):
    """Documents to train on, documents that come later, and unseen documents; and the labels that come later."""

    first: Dataset
    later: Dataset
    unseen: Dataset
    late: Bools  # (n_labels,)


def read(data: str, split: str, share: float, late_share: float, seed: int) -> Stream:
    """Split the training documents; documents with a late label come last."""
    source = open_source(data)
    train = source.train()
    unseen = source.test(train.labels) if split == "test" else None
    if unseen is None:
        train, unseen = hold_out(train, 0.1, seed=0)
    rng = np.random.default_rng(seed)
    n, n_labels = train.Y.shape
    late, is_later, by_label = np.zeros(n_labels, bool), np.zeros(n, bool), train.Y.tocsc()
    for label in rng.permutation(n_labels).tolist():
        documents = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        both = is_later.copy()
        both[documents] = True
        if len(documents) and both.sum() <= late_share * n:
            late[label], is_later = True, both
    others = rng.permutation(np.flatnonzero(~is_later))
    n_first = round(share * n)
    order = rng.permutation(np.concatenate([others[n_first:], np.flatnonzero(is_later)]))
    return Stream(train.rows(np.sort(others[:n_first])), train.rows(order), unseen, late)


def only_known(documents: Dataset, late: Bools) -> Dataset:
    """Return documents in a label space without the late labels, as a user has them at first."""
    names = [name for name, is_late in zip(documents.labels.names, late, strict=True) if not is_late]
    texts = documents.texts if documents.X is None else None
    space = type(documents.labels)(names)
    if documents.labels.synonyms is not None:
        kept = [also for also, is_late in zip(documents.labels.synonyms, late, strict=True) if not is_late]
        space = type(documents.labels)(names, kept)
    return Dataset(documents.Y[:, np.flatnonzero(~late)], space, texts=texts, X=documents.X)


class Row(NamedTuple):
    """The figures of a model on the unseen documents."""

    ndcg: float
    old: float  # nDCG@5 of the labels known at first, among these
    by_pair: float  # recall@5 of late labels
    by_label: float
    ece: float
    cpu: float


def figures(tagger: Tagger, stream: Stream, cpu: float) -> Row:
    """Measure a model, whose labels may be in another order."""
    unseen, late = stream.unseen, stream.late
    number = np.array([unseen.labels.index[name] for name in tagger.labels_.names], np.int32)

    def predict(allowed: Bools | None = None) -> TopK:
        mask = None if allowed is None else allowed[number]
        top = tagger.model.predict_topk(tagger.read(tagger.inputs_of(unseen)), K, allowed=mask)
        return TopK(np.where(top.labels >= 0, number[np.maximum(top.labels, 0)], -1).astype(np.int32), top.scores)

    top, Y = predict(), unseen.Y
    old = metrics.evaluate(labels_among(Y, ~late), predict(~late), ks=[K], propensity_from="test")
    both = metrics.evaluate(Y, top, ks=[K], propensity_from="test")
    ece = float("nan")
    if isinstance(tagger.model, Calibrated):
        ece = 100 * metrics.expected_calibration_error(Y, tagger.model.to_probabilities(top), K)
    return Row(both["nDCG@5"], old["nDCG@5"], *recalls(Y, top, np.flatnonzero(late)), ece, cpu)


def recalls(Y: Csr, top: TopK, labels: Longs) -> tuple[float, float]:
    """Return the recall@5 of some labels over all pairs, and the mean over these labels, in percent."""
    true = np.bincount(Y.indices, minlength=Y.shape[1])[labels]
    hits = np.asarray(top.to_csr(Y.shape[1]).multiply(Y).sum(axis=0)).ravel()[labels]
    occurs = true > 0
    if not occurs.any():
        return float("nan"), float("nan")
    return 100 * float(hits.sum() / max(true.sum(), 1)), 100 * float((hits[occurs] / true[occurs]).mean())


def main() -> None:
    """Train, learn in batches, train on everything, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--method", default="blend")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.7, help="of the documents that are trained on at first")
    parser.add_argument("--late", type=float, default=0.1, help="at most this share of documents has a late label")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    stream = read(args.data, args.split, args.share, args.late, args.seed)
    settings = parse_settings(args.settings)
    n_pairs = int(np.bincount(stream.unseen.Y.indices, minlength=len(stream.late))[stream.late].sum())
    sizes = f"{len(stream.first):,} + {len(stream.later):,} documents, {len(stream.unseen):,} unseen"
    print(f"{sizes}; {stream.late.sum():,} late labels, {n_pairs:,} pairs of them among the unseen\n")

    with timed() as taken:
        tagger = Tagger(args.method, **settings).fit_dataset(only_known(stream.first, stream.late))
    before = figures(tagger, stream, taken.cpu)
    cpu = 0.0
    for rows in np.array_split(np.arange(len(stream.later)), args.batches):
        batch = stream.later.rows(rows)
        with timed() as taken:
            tagger.learn(batch)
        cpu += taken.cpu
    after = figures(tagger, stream, cpu)
    with timed() as taken:
        both = joined(stream.first, stream.later)
        full = Tagger(args.method, **settings).fit_dataset(both)
    whole = figures(full, stream, taken.cpu)

    print("| | nDCG@5 | nDCG@5, old labels | R@5 late, pairs | R@5 late, labels | ECE@5 | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for title, row in (("at first", before), ("learned", after), ("trained on all", whole)):
        print(f"| {title} |", " | ".join(f"{value:.2f}" for value in row), "|")
    gain = (after.ndcg - before.ndcg) / (whole.ndcg - before.ndcg)
    late = [a / max(b, 1e-9) for a, b in ((after.by_pair, whole.by_pair), (after.by_label, whole.by_label))]
    print(f"\n{gain:.0%} of the gain at {after.cpu / whole.cpu:.2f} of the CPU seconds; ", end="")
    print(f"late labels {late[0]:.0%} by pair, {late[1]:.0%} by label; old labels {after.old - before.old:+.2f}")


def joined(first: Dataset, later: Dataset) -> Dataset:
    """Return the documents of both, in a row."""
    Y = sp.vstack([first.Y, later.Y], format="csr")
    if first.X is not None and later.X is not None:
        return Dataset(Y, first.labels, X=sp.vstack([first.X, later.X], format="csr"))
    return Dataset(Y, first.labels, texts=[*(first.texts or []), *(later.texts or [])])


if __name__ == "__main__":
    main()
