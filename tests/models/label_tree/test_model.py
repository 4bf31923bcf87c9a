import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace.data.synthetic import planted
from labelspace.errors import DataError
from labelspace.models.label_tree import LabelTree, search
from labelspace.models.one_vs_rest import OneVsRest
from labelspace.types import Hierarchy, LabelSpace

SETTINGS = {
    "parabel": {"branching_factor": 2, "max_leaf_size": 10, "n_estimators": 3},
    "bonsai": {"tree": "kmeans", "branching_factor": 10, "max_leaf_size": 5, "n_estimators": 2},
    "plt": {"branching_factor": 2, "max_leaf_size": 10, "loss": "logistic", "C": 10.0},
    "hierarchy": {"tree": "hierarchy"},
    "hard negatives": {"branching_factor": 4, "max_leaf_size": 5, "hard_negatives": 3, "n_estimators": 2},
}


def precision(model, test):
    first = model.predict_topk(test.X, k=1).labels[:, 0]
    return test.Y[np.arange(len(test)), first].mean()


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_finds_planted_labels_whatever_the_threads(data, setting, monkeypatch):
    train, test = data
    models = []
    for threads in ("1", "2"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        models.append(LabelTree(**SETTINGS[setting]).fit(train.X, train.Y, labels=train.labels))
    assert precision(models[0], test) > 0.85
    assert (models[0].weights_ != models[1].weights_).nnz == 0
    one, other = (model.predict_topk(test.X, 5) for model in models)
    assert np.array_equal(one.scores, other.scores)
    assert np.array_equal(one.labels, other.labels)


def test_a_flat_tree_is_one_vs_rest(data):
    train, test = data
    same = {"C": 1.0, "threshold": 0.0, "tol": 1e-5, "max_iter": 500}
    tree, flat = LabelTree(**same).fit(train.X, train.Y), OneVsRest(**same).fit(train.X, train.Y)
    rounding = 5e-3 + tree.scales_.max() / 2  # to 8 bits
    assert np.allclose(tree.weights_.toarray()[:, 1:], flat.weights_.toarray()[:, tree.label_[1:]], atol=rounding)
    assert (tree.predict_topk(test.X, 5).labels == flat.predict_topk(test.X, 5).labels).mean() > 0.95


def test_few_labels_make_a_flat_tree_and_many_a_deep_one():
    few, many = planted(n=300, d=300, l=30, seed=0), planted(n=3000, d=2000, l=3000, seed=0)
    assert LabelTree().fit(few.X, few.Y).last_child_[0] == 1 + (few.Y.sum(axis=0) > 0).sum()
    assert LabelTree(tree="kmeans", branching_factor=5, max_leaf_size=10).fit(few.X, few.Y).last_child_[0] <= 6
    assert LabelTree().fit(many.X, many.Y).last_child_[0] < 40


def test_with_several_trees_k_only_cuts_the_list(data):
    train, test = data
    model = LabelTree(**SETTINGS["parabel"]).fit(train.X, train.Y)
    assert np.array_equal(model.predict_topk(test.X, 20).labels[:, :3], model.predict_topk(test.X, 3).labels)


def test_hard_negatives_are_added_to_the_documents_that_reach_a_node(monkeypatch):
    data = planted(n=400, d=300, l=60, seed=3)
    sizes = []
    train_children = labelspace.models.label_tree.node_training.tree_classifiers.train_children

    def spy(*args):
        sizes.append(len(args[1].rows))
        return train_children(*args)

    monkeypatch.setattr("labelspace.models.label_tree.node_training.tree_classifiers.train_children", spy)
    monkeypatch.setenv("LABELSPACE_THREADS", "1")
    LabelTree(branching_factor=4, max_leaf_size=10).fit(data.X, data.Y)
    plain = sum(sizes)
    sizes.clear()
    LabelTree(branching_factor=4, max_leaf_size=10, hard_negatives=4).fit(data.X, data.Y)
    assert sum(sizes) > plain
    assert max(sizes) == 400


def test_an_inner_label_of_a_hierarchy_can_be_suggested():
    # label 0 is the parent of 1 and 2; every label has documents with a word of its own
    X = sp.csr_matrix(np.repeat(np.eye(4, dtype=np.float32), 10, axis=0))
    Y = sp.csr_matrix(np.repeat(np.eye(4, dtype=np.float32), 10, axis=0))
    space = LabelSpace(list("abcd"), hierarchy=Hierarchy.from_edges(np.array([[1, 0], [2, 0]]), 4))
    model = LabelTree(tree="hierarchy").fit(X, Y, labels=space)
    assert model.predict_topk(X[::10], 1).labels[:, 0].tolist() == [0, 1, 2, 3]
    assert model.last_child_[0] == 3, "a and what is below it, and d"


def test_a_hierarchy_that_is_not_there_is_an_error(data):
    with pytest.raises(DataError, match=r"hierarchy\.tsv"):
        LabelTree(tree="hierarchy").fit(data[0].X, data[0].Y)


def test_the_labels_own_texts_shape_the_tree():
    # Every document is alike but for its label's own word, so the documents do not tell which labels belong together.
    n = 40
    own = sp.identity(n, np.float32, "csr")
    X, Y = sp.hstack([own, sp.csr_matrix((n, 2), dtype=np.float32)]).tocsr(), own
    theme = np.arange(n) % 2
    of_labels = sp.csr_matrix((np.ones(n, np.float32), (np.arange(n), n + theme)), shape=(n, n + 2))
    model = LabelTree(branching_factor=2, max_leaf_size=20, label_text=1.0).fit(X, Y, label_features=of_labels)
    first = model.label_[model.first_child_[1] : model.last_child_[1]]
    assert len(set(theme[first])) == 1
    with pytest.raises(DataError, match="label_text=0"):
        LabelTree(label_text=1.0).fit(X, Y)
    with pytest.raises(DataError, match="one row per label"):
        LabelTree(label_text=1.0).fit(X, Y, label_features=of_labels[:3])


def test_a_tagger_gives_the_labels_texts():
    texts = [f"{animal} in the {place}" for animal in ("cat", "dog") for place in ("house", "garden")] * 3
    names = [[text.split()[0], f"the {text.split()[-1]}"] for text in texts]
    tagger = labelspace.Tagger("label_tree", label_text=0.5).fit(texts, names)
    assert {name for name, _ in tagger.tag("a cat in a garden", k=2)} == {"cat", "the garden"}


def test_awkward_data_is_fine(data):
    train, test = data
    X, Y = train.X.tolil(), train.Y.tolil()
    X[:20] = 0  # documents without features
    Y[:, 5] = 0  # a label never seen
    Y[:, 6] = 0
    Y[100, 6] = 1  # a label with one document
    for setting in SETTINGS.values():
        model = LabelTree(**setting).fit(X.tocsr(), Y.tocsr(), labels=train.labels)
        top = model.predict_topk(sp.vstack([test.X, sp.csr_matrix((1, X.shape[1]))]), k=40)
        assert 5 not in top.labels
        assert 6 in top.labels
        assert np.isfinite(top.scores[top.labels >= 0]).all()


def test_progress_reaches_the_number_of_nodes(data):
    train, _ = data
    for hard in (0, 2):
        seen = []
        model = LabelTree(branching_factor=2, max_leaf_size=10, hard_negatives=hard)
        model.fit(train.X, train.Y, progress=lambda *step, seen=seen: seen.append(step))
        nodes = int((model.label_ < 0).sum())
        assert seen[-1] == ("nodes", nodes, nodes)


def every_label(model, X):
    """The scores of all labels by products along all paths: no beam."""
    beam_size = model.beam_size
    top = model.set_params(beam_size=len(model.label_)).predict_topk(X, model.n_labels_)
    model.set_params(beam_size=beam_size)
    return top


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("few", [1000, 0])  # copied trees, which are exact; a beam among allowed nodes
def test_among_allowed_labels_the_search_is_exact_or_a_beam_of_them(data, setting, few, monkeypatch):
    monkeypatch.setattr(search, "FEW_LABELS", few)
    train, test = data
    model = LabelTree(**{**SETTINGS[setting], "beam_size": 1 if few else 2})
    model.fit(train.X, train.Y, labels=train.labels)
    everything = every_label(model, test.X)
    for n_allowed in (1, 6, 39):
        allowed = np.random.default_rng(n_allowed).permutation(40) < n_allowed
        expected = everything.among(allowed, 5)
        found = model.predict_topk(test.X, 5, allowed=allowed)
        assert allowed[found.labels[found.labels >= 0]].all()
        assert np.array_equal((found.labels >= 0).sum(axis=1), (expected.labels >= 0).sum(axis=1)), "k answers"
        if few:
            assert np.array_equal(found.labels, expected.labels)
            assert np.array_equal(found.scores, expected.scores), "a filter changes no score"
    assert np.array_equal(model.predict_topk(test.X, 5, allowed=allowed).scores, found.scores), "kept for the next"


def test_a_few_of_very_many_labels_get_their_answers():
    """A beam of 10 nodes would never reach a branch that the document has nothing to do with."""
    rng = np.random.default_rng(3)
    n, n_labels = 3000, 3000
    Y = sp.csr_matrix((np.ones(n, np.float32), (np.arange(n), rng.permutation(n_labels))), shape=(n, n_labels))
    X = sp.random(n, 500, 0.02, "csr", np.float32, rng=rng)
    model = LabelTree(max_leaf_size=20, max_iter=2).fit(X, Y)
    for n_allowed in (50, 1500):
        allowed = rng.permutation(n_labels) < n_allowed
        assert (model.predict_topk(X[:30], 30, allowed=allowed).labels >= 0).all()
    assert (model.predict_topk(X[:30], 300).among(rng.permutation(n_labels) < 50, 5).labels < 0).any()
