"""The sample of documents that a model never learns from."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace import Tagger
from labelspace.data.document_sketch import document_hashes
from labelspace.data.texts import dataset_from_names
from labelspace.errors import ModelError
from labelspace.tagger.held_out import HeldOutDocuments, are_among, put_aside
from labelspace.types import Dataset, SideColumns
from tests.tagger.test_lineage import NAMES, TEXTS


@pytest.mark.parametrize("kind", ["texts", "features"])
def test_is_saved_with_the_model_and_forgotten_by_a_training(kind, tmp_path):
    documents = dataset_from_names(TEXTS, NAMES)
    if kind == "features":
        documents = Dataset(documents.Y, documents.labels, X=sp.csr_matrix(np.eye(4, 6, dtype=np.float32)))
    tagger = Tagger("popular").fit_dataset(documents)
    Y = sp.csr_matrix(np.array([[0, 1, 0], [1, 1, 0]], np.float32))
    texts, X = (["naïve", ""], None) if kind == "texts" else (None, sp.csr_matrix(np.eye(2, 6, dtype=np.float32)))
    tagger.held_out_ = HeldOutDocuments.of(Dataset(Y, documents.labels, texts, X))
    tagger.save(tmp_path / "model")
    tagger.save(tmp_path / "model")  # its own file does not keep a model from being replaced
    found = labelspace.load(tmp_path / "model").held_out_.dataset(documents.labels.extended(["new"]), SideColumns())
    assert found.texts == texts
    assert found.Y.toarray().tolist() == [[0, 1, 0, 0], [1, 1, 0, 0]]
    if X is not None:
        assert (found.X != X).nnz == 0
    assert tagger.fit_dataset(documents).held_out_ is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda sample: setattr(sample, "text_starts_", np.array([0, 3, 3], np.int64)),
        lambda sample: setattr(sample, "text_starts_", np.array([0, 3, 9, 9, 99], np.int64)),
        lambda sample: setattr(sample, "labels_", sample.labels_ * 2),
        lambda sample: setattr(sample, "labels_", sample.labels_[:0]),
        lambda sample: setattr(sample, "features_", sp.csr_matrix((4, 3), dtype=np.float32)),
    ],
)
def test_a_damaged_sample_is_refused(damage, tmp_path):
    tagger = Tagger("popular").fit(TEXTS, NAMES)
    tagger.held_out_ = HeldOutDocuments.of(dataset_from_names(TEXTS, NAMES))
    damage(tagger.held_out_)
    with pytest.raises(ModelError, match="must"):
        tagger.save(tmp_path / "model")


def test_documents_are_compared_by_content():
    X = sp.csr_matrix(np.array([[1, 0], [0, 0], [0, 2]], np.float32))
    assert are_among(X, document_hashes(X[2])).tolist() == [False, False, True]
    assert are_among([], document_hashes([])).tolist() == []
    assert put_aside(["", " "], 3).tolist() == [False, False]


def test_the_choice_depends_on_the_content_alone():
    texts = [f"text {i}" for i in range(50)]
    chosen = {text for text, is_chosen in zip(texts, put_aside(texts, 5), strict=True) if is_chosen}
    again = {text for text, is_chosen in zip(texts[::-1], put_aside(texts[::-1], 5), strict=True) if is_chosen}
    assert chosen == again
    assert len(chosen) == 5
    assert put_aside(["a", "b", "a"], 1).sum() in (1, 2)


def test_labels_that_the_model_does_not_have_are_refused(tmp_path):
    tagger = Tagger("popular").fit(TEXTS, NAMES)
    sample = dataset_from_names(TEXTS, [["a"], ["b"], ["c"], ["d"]])
    tagger.held_out_ = HeldOutDocuments.of(sample)
    tagger.save(tmp_path / "model")
    with pytest.raises(ModelError, match="must have the 4 labels of its held-out documents"):
        labelspace.load(tmp_path / "model")
