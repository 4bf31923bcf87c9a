"""Node embeddings in a flat array, for tests."""

import numpy as np


def embedding_of(layout, embeddings, node):
    return embeddings[int(layout.offset[node]) : int(layout.offset[node] + layout.width[node])]


def random_embeddings(layout, rng):
    return rng.standard_normal(int(layout.width.sum())).astype(np.float32)
