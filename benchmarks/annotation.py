"""How many documents a person has to label, if these are chosen by an order of ``labelspace review``, or at random.

    python benchmarks/annotation.py DATA [--orders uncertain,disagreement,...] [--seeds 0,1] [--batch 300] [--learn]

A model is trained on documents drawn at random (``--start``). Batches of the other training documents are chosen by an
order, labeled as they are in the data, and learned: by training again on all, or with ``--learn`` by ``Tagger.learn``.
The figures are nDCG@5 on documents cut from train. Beside the orders of the command there are other scores that were
tried for ``uncertain``; their names start with ``~``. The bar: with 2,800 documents, as good as with 4,000 at random.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np

from labelspace import metrics
from labelspace.cli.recipes import parse_settings
from labelspace.data.records import Record
from labelspace.data.source import open_source
from labelspace.data.splits import hold_out
from labelspace.experiment import timed
from labelspace.experiment.labeled_batches import LabeledDocuments
from labelspace.experiment.review import ORDERS, choose_documents, disagreement, shortlist
from labelspace.tagger import Tagger
from labelspace.types import Dataset, Doubles, Longs

K = 5
DEPTH = 10  # labels of a document whose probabilities the scores below read
Scores = Callable[[Doubles], Doubles]  # of probabilities (n, DEPTH), best first


def expected_wrong(p: Doubles) -> Doubles:
    """Return the expected number of wrong decisions among the labels shown, if each is decided as is more likely."""
    value: Doubles = np.minimum(p, 1 - p)[:, :K].sum(axis=1)
    return value


def variance(p: Doubles) -> Doubles:
    """Return the variance of the number of right labels among those shown."""
    value: Doubles = (p * (1 - p))[:, :K].sum(axis=1)
    return value


def deep_variance(p: Doubles) -> Doubles:
    """Return the same for a longer list."""
    value: Doubles = (p * (1 - p)).sum(axis=1)
    return value


def wrong_shown(p: Doubles) -> Doubles:
    """Return the share of the labels shown that is expected to be wrong."""
    value: Doubles = 1 - p[:, :K].mean(axis=1)
    return value


def margin(p: Doubles) -> Doubles:
    """Return how near the second label comes to the first."""
    value: Doubles = 1 - (p[:, 0] - p[:, 1])
    return value


def first_wrong(p: Doubles) -> Doubles:
    """Return the probability that the first label is wrong: ``uncertain`` without unlike documents and random ones."""
    value: Doubles = 1 - p[:, 0]
    return value


TRIED: dict[str, Scores] = {
    "~min": expected_wrong,
    "~p(1-p)": variance,
    "~p(1-p)@10": deep_variance,
    "~1-mean(p)": wrong_shown,
    "~margin": margin,
    "~1-p1": first_wrong,
}
DISAGREEMENT = "~disagreement"  # without unlike documents and random ones


class Annotation:
    """Documents that a person labels one batch after the other."""

    def __init__(self, train: Dataset, unseen: Dataset, options: argparse.Namespace, seed: int) -> None:
        self.train, self.unseen, self.options, self.seed = train, unseen, options, seed
        self.drawn = np.random.default_rng(seed).permutation(len(train))
        self.settings = parse_settings(options.settings)

    def fitted(self, rows: Longs) -> Tagger:
        """Return a model of these documents."""
        return Tagger(self.options.method, **self.settings).fit_dataset(self.train.rows(np.sort(rows)))

    def ndcg(self, tagger: Tagger) -> float:
        """Return nDCG@5 on the unseen documents."""
        top = tagger.predict_topk(tagger.inputs_of(self.unseen), K)
        number = np.array([self.unseen.labels.index[name] for name in tagger.labels_.names], np.int32)
        found = type(top)(np.where(top.labels >= 0, number[np.maximum(top.labels, 0)], -1), top.scores)
        return metrics.evaluate(self.unseen.Y, found, ks=[K], propensity_from="test")[f"nDCG@{K}"]

    def choose(self, order: str, tagger: Tagger, rest: Longs, step: int) -> Longs:
        """Return the documents of the next batch."""
        n = min(self.options.batch, len(rest))
        texts = [(self.train.texts or [])[row] for row in rest.tolist()]
        if order == "random":
            return rest[:n]
        if order in ORDERS:
            records = [Record(str(row), text) for row, text in zip(rest.tolist(), texts, strict=True)]
            found = choose_documents(LabeledDocuments(tagger, records, "train"), order, n, K, seed=step)
            chosen = np.array([int(document.record.id) for document in found.documents], np.int64)
            others = rest[~np.isin(rest, chosen)]  # in random order, where an order has too few
            return np.concatenate([chosen, others[: n - len(chosen)]])
        if order == DISAGREEMENT:
            scores = disagreement(list(tagger.predict_members(texts, K).values()))
        else:
            top = shortlist(tagger, texts, DEPTH)
            scores = TRIED[order](np.where(top.labels >= 0, top.scores.astype(np.float64), 0.0))
        return rest[np.argsort(-scores, kind="stable")[:n]]

    def curve(self, order: str, first: Tagger, sizes: list[int]) -> list[float]:
        """Return nDCG@5 at each size."""
        tagger, rows, rest = first, self.drawn[: self.options.start], self.drawn[self.options.start :]
        values = []
        for step, size in enumerate(sizes):
            new = self.choose(order, tagger, rest, step)[: size - len(rows)]
            rows, rest = np.concatenate([rows, new]), rest[~np.isin(rest, new)]
            if self.options.learn:
                batch = self.train.rows(new)
                names = batch.labels.names
                tagger.learn(tagger.inputs_of(batch), [[names[at] for at in row.indices] for row in batch.Y])
            else:
                tagger = self.fitted(rows)
            values.append(self.ndcg(tagger))
        return values


def main() -> None:
    """Print a row per order: means over the seeds at each size, and how many random documents are as good."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--orders", default=",".join([*ORDERS[:3], *TRIED, DISAGREEMENT]))
    parser.add_argument("--method", default="blend")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--start", type=int, default=1000, help="documents labeled at first")
    parser.add_argument("--batch", type=int, default=300)
    parser.add_argument("--until", type=int, default=2800, help="documents labeled in the end")
    parser.add_argument("--target", type=int, default=4000, help="random documents to compare with")
    parser.add_argument("--seeds", default="0,1", help="of the documents drawn at first")
    parser.add_argument("--learn", action="store_true", help="learn each batch in place of training again")
    options = parser.parse_args()
    train, unseen = hold_out(open_source(options.data).train(), 0.1, seed=0)
    sizes = [*range(options.start + options.batch, options.until, options.batch), options.until]
    further = [*sizes, *range(options.until + options.batch, options.target, options.batch), options.target]
    orders = ["random", *options.orders.split(",")]
    curves: dict[str, list[list[float]]] = {order: [] for order in orders}
    with timed() as taken:
        for seed in map(int, options.seeds.split(",")):
            run = Annotation(train, unseen, options, seed)
            for order in orders:
                first = run.fitted(run.drawn[: options.start])
                curves[order].append(run.curve(order, first, further if order == "random" else sizes))
                shown = " ".join(f"{value:.2f}" for value in curves[order][-1])
                print(f"seed {seed} {order}: {shown}", flush=True)
    means = {order: np.mean(values, axis=0) for order, values in curves.items()}
    print(f"\n{len(train):,} documents, {len(unseen):,} unseen, seeds {options.seeds}, {taken.cpu:.0f} CPU s\n")
    print("| order |", " | ".join(f"{size:,}" for size in further), "| as good as random |")
    print("|---" * (len(further) + 2) + "|")
    for order in orders:
        values = means[order].tolist()
        cells = [f"{value:.2f}" for value in values] + [""] * (len(further) - len(values))
        level = np.maximum.accumulate(means["random"])
        same = np.interp(values[-1], level, further)
        print(f"| {order} |", " | ".join(cells), f"| {same:,.0f} |")


if __name__ == "__main__":
    main()
