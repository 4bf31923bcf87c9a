"""Training and test data of the benchmarks, as features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labelspace.data.source import open_source
from labelspace.data.splits import hold_out
from labelspace.features import Tfidf
from labelspace.types import Csr

Split = tuple[Csr, Csr]


def read(path: str, split: str, settings: Mapping[str, Any]) -> tuple[Split, Split]:
    """Training documents and test documents: those of the test file, or of ``dev.*``, or else a fifth of train.

    ``settings`` are parameters of the TF-IDF features, for texts.
    """
    source = open_source(path)
    train = source.train()
    unseen = source.test(train.labels) if split == "test" else source.dev(train.labels)
    if unseen is None:
        train, unseen = hold_out(train, 0.2, seed=0)
    if train.X is not None and unseen.X is not None:
        return (train.X, train.Y), (unseen.X, unseen.Y)
    features = Tfidf(**settings)
    X = features.fit_transform(train.texts or [])
    return (X, train.Y), (features.transform(unseen.texts or []), unseen.Y)
