"""How often a wrong suggestion is gone after it was rejected for similar documents.

    python benchmarks/rejections.py DATA [--method blend] [--groups 30]

A model is trained on half of the training documents. For a label that it wrongly lists among the five best of at least
20 of the others, 20 similar ones are taken. The label is rejected for ten of them, and the figure is the share of the
other ten whose five best labels no longer have it. Each group starts from the model as it was trained.
"""

from __future__ import annotations

import argparse
from copy import deepcopy

import numpy as np

from labelspace.data.source import open_source
from labelspace.models.checks import check_inputs
from labelspace.tagger import Tagger
from labelspace.types import Csr, Longs

K, SIMILAR = 5, 20


def groups(Y: Csr, listed: Csr, X: Csr, n: int, seed: int) -> list[tuple[int, Longs]]:
    """Return labels, each with 20 similar documents that are wrongly suggested to have it."""
    wrong = (listed - listed.multiply(Y)).tocsc()
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.flatnonzero(np.diff(wrong.indptr) >= SIMILAR))[:n]
    found = []
    for label in labels.tolist():
        documents = wrong[:, [label]].nonzero()[0]
        first = X[[rng.choice(documents)]]
        near = np.asarray((X[documents] @ first.T).todense()).ravel()
        found.append((label, rng.permutation(documents[np.argsort(-near, kind="stable")[:SIMILAR]])))
    return found


def main() -> None:
    """Train, reject, and print the share of documents without the label."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--method", default="blend")
    parser.add_argument("--groups", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    train = open_source(args.data).train()
    order = np.random.default_rng(args.seed).permutation(len(train))
    first, others = train.rows(np.sort(order[::2])), train.rows(np.sort(order[1::2]))
    trained = Tagger(args.method).fit_dataset(first)
    texts, names = others.texts or [], trained.labels_.names
    listed = trained.predict_topk(texts, K).to_csr(len(names))
    views = check_inputs(Tagger("neighbors").fit_dataset(first).read(texts))
    X = views["words"]
    for title, with_labels in (("only the rejected label is known", False), ("with the labels of the document", True)):
        shares = []
        for label, documents in groups(others.Y, listed, X, args.groups, args.seed):
            tagger, half = deepcopy(trained), SIMILAR // 2
            rejected = [texts[at] for at in documents[:half].tolist()]
            known = [
                [names[at] for at in others.Y[row].indices] if with_labels else [] for row in documents[:half].tolist()
            ]
            tagger.learn(rejected, known, rejected=[[names[label]]] * half)
            answers = tagger.predict_topk([texts[at] for at in documents[half:].tolist()], K).labels
            shares.append(float((answers != label).all(axis=1).mean()))
        few = np.mean(np.array(shares) >= 0.8)
        print(f"{title}: gone from {np.mean(shares):.1%} of similar documents; from 8 of 10 in {few:.0%} of groups")


if __name__ == "__main__":
    main()
