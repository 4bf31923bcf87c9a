"""nDCG@5 with 1, 2, 4 and 8 documents of each label, and with none: the default beside baselines on the same vectors.

    python benchmarks/few_shot.py DATA [--encoder granite] [--split validation] [--pecos PYTHON] [--svg FILE]

Documents are drawn until each label has as many (or all that it has); all labels of a document are kept.
``centroid`` ranks labels by how near the mean of their documents is; ``SetFit-like`` is a logistic regression for each
label. Both read vectors of the encoder, as ``semantic`` does. PECOS reads tf-idf of words; it runs in a Python with
libpecos (XR-Linear with its defaults), since it needs a torch of its own. Points are tested on at most 2,000 documents.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from labelspace import Tagger
from labelspace.data.source import open_source
from labelspace.data.splits import hold_out
from labelspace.features import Tfidf
from labelspace.features.embeddings import embed_texts
from labelspace.metrics import ndcg_at_k
from labelspace.training.losses import sigmoid
from labelspace.types import Csr, Dataset, Doubles, Floats, Longs, TopK

SHOTS = (1, 2, 4, 8)
C = 10.0  # of logistic regression: 100 was worse with 4 and 8 documents of each label of CookingSE
MAX_TESTED = 2000
COLORS = {"blend": "#3b6fb6", "semantic": "#4f9d69", "centroid": "#8a7a2a", "SetFit-like": "#b5483f", "PECOS": "#777"}
WIDTH, HEIGHT, LEFT, TOP = 480, 260, 40, 20
PECOS = """
import sys, numpy as np, scipy.sparse as sp
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
X, Y, V = (sp.load_npz(f"{sys.argv[1]}/{name}.npz").astype(np.float32).tocsr() for name in "XYV")
tree = Indexer.gen(LabelEmbeddingFactory.create(Y, X, method="pifa"), indexer_type="hierarchicalkmeans")
sp.save_npz(f"{sys.argv[1]}/P.npz", XLinearModel.train(X, Y.tocsc(), C=tree).predict(V, only_topk=5).tocsr())
"""


def few(Y: Csr, shots: int, seed: int = 0) -> Longs:
    """Draw documents until each label has ``shots`` of them, or all that it has."""
    counts, rows = np.zeros(Y.shape[1], np.int64), []
    for row in np.random.default_rng(seed).permutation(Y.shape[0]):
        labels = Y[row].indices
        if (counts[labels] < shots).any():
            rows.append(row)
            counts[labels] += 1
    return np.sort(np.array(rows, np.int64))


def centroid(X: Floats, Y: Csr, V: Floats) -> TopK:
    """Rank labels by the cosine to the sum of their documents."""
    sums = np.asarray(Y.T @ X)
    return TopK.from_scores(V @ (sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)).T, 5)


def setfit_like(X: Floats, Y: Csr, V: Floats) -> TopK:
    """Rank labels by a logistic regression for each (C=10), all fitted together by L-BFGS."""
    seen = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]))
    A, targets = np.hstack([X, np.ones((len(X), 1), np.float32)]), Y[:, seen].toarray()
    shape = (A.shape[1], len(seen))

    def loss(flat: Doubles) -> tuple[float, Doubles]:
        W = flat.reshape(shape).astype(np.float32)
        Z = A @ W
        penalty = W.copy()
        penalty[-1] = 0.0  # of the intercepts
        value = np.logaddexp(0, Z).sum() - (targets * Z).sum() + (penalty**2).sum() / (2 * C)
        return float(value), (A.T @ (sigmoid(Z) - targets) + penalty / C).ravel().astype(np.float64)

    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 60}).x
    scores = np.full((len(V), Y.shape[1]), -np.inf, np.float32)
    scores[:, seen] = np.hstack([V, np.ones((len(V), 1), np.float32)]) @ found.reshape(shape)
    return TopK.from_scores(scores, 5)


def pecos(python: str, train: Dataset, test: Dataset) -> TopK:
    """Rank labels by XR-Linear, on tf-idf, in another Python."""
    features = Tfidf()
    with tempfile.TemporaryDirectory() as folder:
        tables = {"X": features.fit_transform(train.texts or []), "Y": train.Y}
        for name, table in (tables | {"V": features.transform(test.texts or [])}).items():
            sp.save_npz(f"{folder}/{name}.npz", table)
        subprocess.run([python, "-c", PECOS, folder], check=True, stdout=subprocess.DEVNULL)
        return TopK.from_sparse(sp.load_npz(f"{folder}/P.npz").tocsr(), 5)


def drawing(curves: dict[str, list[float]]) -> str:
    """Draw the curves as SVG: points of 0, 1, 2, 4, 8 documents at equal distances."""
    top, step = 10 * np.ceil(max(map(max, curves.values())) / 10), WIDTH / len(SHOTS)
    marks = ""
    for value in np.arange(0, top + 1, 10):
        y = TOP + HEIGHT * (1 - value / top)
        marks += f"<line x1='{LEFT}' x2='{LEFT + WIDTH}' y1='{y:.1f}' y2='{y:.1f}' stroke='#8888' stroke-width='.5'/>"
        marks += f"<text x='{LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{value:.0f}</text>"
    for at, shots in enumerate((0, *SHOTS)):
        marks += f"<text x='{LEFT + step * at:.1f}' y='{TOP + HEIGHT + 18}' text-anchor='middle'>{shots}</text>"
    for at, (name, values) in enumerate(curves.items()):
        first = len(SHOTS) + 1 - len(values)
        points = [(LEFT + step * (first + i), TOP + HEIGHT * (1 - value / top)) for i, value in enumerate(values)]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        marks += f"<polyline points='{joined}' fill='none' stroke='{COLORS[name]}' stroke-width='2'/>"
        marks += f"<text x='{LEFT + 96 * at}' y='{TOP + HEIGHT + 40}' fill='{COLORS[name]}'>{name}</text>"
    size = f"viewBox='0 0 {LEFT + WIDTH + 20} {TOP + HEIGHT + 50}' font-family='sans-serif' font-size='12' fill='#888'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{marks}</svg>\n"


def main() -> None:
    """Print a table, a row for each method, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--encoder", default="granite")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--pecos", help="a Python that has libpecos")
    parser.add_argument("--svg", type=Path)
    args = parser.parse_args()
    source = open_source(args.data)
    train = source.train()
    test = source.test(train.labels) if args.split == "test" else source.dev(train.labels)
    if test is None:
        train, test = hold_out(train, 0.2, seed=0)
    test = test.rows(range(min(len(test), MAX_TESTED)))
    truth, V = test.Y[:, : len(train.labels)], embed_texts(test.texts or [], encoder=args.encoder)
    zero_shot = Tagger(feature_params={"encoder": args.encoder}).fit_labels(train.labels)
    curves = {name: list[float]() for name in COLORS}
    curves["blend"].append(100 * ndcg_at_k(truth, zero_shot.predict_topk(test.texts or [], 5)))
    for shots in SHOTS:
        some = train.rows(few(train.Y, shots))
        X = embed_texts(some.texts or [], encoder=args.encoder)
        found = {"centroid": centroid(X, some.Y, V), "SetFit-like": setfit_like(X, some.Y, V)}
        if args.pecos:
            found["PECOS"] = pecos(args.pecos, some, test)
        for name in ("blend", "semantic"):
            tagger = Tagger(name, feature_params={"encoder": args.encoder}).fit_dataset(some)
            found[name] = tagger.predict_topk(test.texts or [], 5)
        for name, top in found.items():
            curves[name].append(100 * ndcg_at_k(truth, top))
        print(shots, len(some), {name: round(values[-1], 2) for name, values in curves.items() if values}, flush=True)
    curves = {name: values for name, values in curves.items() if values}
    print(f"\n| nDCG@5, {args.split} | 0 | {' | '.join(map(str, SHOTS))} |\n|---|---|{'---|' * len(SHOTS)}")
    for name, values in curves.items():
        cells = [""] * (len(SHOTS) + 1 - len(values)) + [f"{value:.2f}" for value in values]
        print(f"| {name} |", " | ".join(cells), "|")
    if args.svg:
        args.svg.write_text(drawing(curves))


if __name__ == "__main__":
    main()
