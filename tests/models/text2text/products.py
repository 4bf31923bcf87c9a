"""A small table of products, and a model that learns it quickly."""

import numpy as np
import scipy.sparse as sp

from labelspace.models.text2text.model import Text2Text
from labelspace.types import Hierarchy, LabelSpace

PRODUCTS = {  # word of the title -> brand, L0, L1; the last one has no L1
    "leaf": ("Kettle", "Drinks", "Tea"),
    "bean": ("Kettle", "Drinks", "Coffee"),
    "bar": ("Foam", "Care", "Soap"),
    "cup": ("Foam", "Drinks", "Tea"),
    "mist": ("Foam", "Care", None),
}


def products_table(n=120, seed=0):
    """Rows as texts, Y, and the labels."""
    rng, names, rows = np.random.default_rng(seed), {}, []
    texts, edges = [], set()
    for _ in range(n):
        word = list(PRODUCTS)[rng.integers(len(PRODUCTS))]
        price = f"; price: {rng.integers(9)}" if rng.random() < 0.7 else ""  # a field may be missing
        texts.append(f"title: {word} no {rng.integers(5)}{price}")
        columns = zip(("brand", "L0", "L1"), PRODUCTS[word], strict=True)
        row = [names.setdefault(f"{column}: {value}", len(names)) for column, value in columns if value]
        edges |= {(row[2], row[1])} if len(row) == 3 else set()
        rows.append(row)
    Y = sp.lil_matrix((n, len(names)), dtype=np.float32)
    for i, row in enumerate(rows):
        Y[i, row] = 1
    return texts, Y.tocsr(), LabelSpace(list(names), hierarchy=Hierarchy.from_edges(sorted(edges), len(names)))


def small_model(**params):
    return Text2Text(**{"embedding_dim": 16, "n_heads": 2, "hidden_dim": 16, "batch_size": 8, "epochs": 1, **params})


def best_by_column(model, texts):
    """The best value of each column, for each text."""
    top = model.predict_topk(texts, k=model.n_labels_)
    rows = []
    for labels in top.labels:
        best = {}
        for name in [model.labels_.names[label] for label in labels if label >= 0]:
            best.setdefault(*name.split(": "))
        rows.append(best)
    return rows
