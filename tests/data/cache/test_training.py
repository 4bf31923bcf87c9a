"""Models trained from a cache are the same bytes as models trained in memory."""

import numpy as np
import pytest

from labelspace.data.source import open_source, write_dataset
from labelspace.data.synthetic import planted
from labelspace.experiment.train import Recipe, train
from labelspace.types import Dataset

SETTINGS = {
    "features": ("label_tree", {"max_leaf_size": 8}, {}, "train.txt"),
    "texts": ("label_tree", {"max_leaf_size": 8, "hard_negatives": 3}, {}, "train.jsonl"),
    "stemmed texts": ("label_tree", {"max_leaf_size": 8}, {"ngrams": 1, "stemming": "english"}, "train.jsonl"),
    "trigrams": ("label_tree", {"max_leaf_size": 8}, {"ngrams": 3, "max_features": 500}, "train.jsonl"),
    "many labels": ("label_tree", {"tree": "kmeans", "max_leaf_size": 8}, {}, "train.txt"),
    "network": ("network", {"hidden_dim": 8, "epochs": 2}, {}, "train.jsonl"),
    "hashing": ("network", {"hidden_dim": 8, "epochs": 1}, {"features": "hashing", "bits": 9}, "train.jsonl"),
    "glas": ("glas", {"embedding_dim": 16, "epochs": 2, "patience": 2}, {}, "train.txt"),
    "secseq": ("secseq", {"hidden_dim": 8, "decoder_dim": 8, "epochs": 2, "code_size": 4}, {}, "train.txt"),
    "sequences": (
        "secseq", {"encoder": "gru", "hidden_dim": 8, "decoder_dim": 8, "word_dim": 8, "epochs": 1, "code_size": 4},
        {}, "train.jsonl",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def documents():
    return planted(n=300, d=200, l=30, texts=True, seed=3)


@pytest.mark.parametrize(
    "case",
    [pytest.param(name, marks=pytest.mark.slow if "secseq" in case[0] else ()) for name, case in SETTINGS.items()],
)
def test_the_saved_model_is_the_same(case, documents, tmp_path, request):
    method, params, feature_params, name = SETTINGS[case]
    if method == "secseq":
        pytest.importorskip("torch")
    feature_params = dict(feature_params)
    recipe = Recipe(method, params, feature_params.pop("features", None), feature_params, seed=0)
    X = documents.X if name.endswith(".txt") else None
    written = Dataset(documents.Y, documents.labels, None if X is not None else documents.texts, X)
    write_dataset(written, tmp_path / "data" / name)
    train(open_source(tmp_path / "data"), recipe).save(tmp_path / "in memory")
    cache, source = request.getfixturevalue("cache"), open_source(tmp_path / "data")
    source.cache = cache
    tagger = train(source, recipe)
    assert cache.scratch.peak_bytes > 0
    tagger.save(tmp_path / "cached")
    files = sorted(path.name for path in (tmp_path / "in memory").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "cached").iterdir())
    for file in files:
        assert (tmp_path / "in memory" / file).read_bytes() == (tmp_path / "cached" / file).read_bytes(), file


def test_the_arrays_of_documents_are_in_files(documents, tmp_path, request, monkeypatch):
    from labelspace.models.label_tree import model

    write_dataset(Dataset(documents.Y, documents.labels, documents.texts), tmp_path / "train.jsonl")
    cache, source = request.getfixturevalue("cache"), open_source(tmp_path / "train.jsonl")
    source.cache = cache
    seen = []
    build = model.LabelTree._train_nodes

    def spy(self, X, *rest):
        seen.extend([X.data, X.indices])
        build(self, X, *rest)

    monkeypatch.setattr(model.LabelTree, "_train_nodes", spy)
    train(source, Recipe("label_tree", {"max_leaf_size": 8, "tune": False}))
    assert len(seen) == 2
    assert all(is_mapped(array) for array in seen)


def is_mapped(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return type(array).__name__ == "mmap" or type(getattr(array, "obj", None)).__name__ == "mmap"
