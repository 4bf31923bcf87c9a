import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.errors import ModelError
from labelspace.kernels.beam_search import Tree
from labelspace.labels.tree import check_forest
from labelspace.models.label_tree import LabelTree
from labelspace.models.label_tree.growth import GrowingTrees, Place
from labelspace.models.partial_fit import learn_more
from labelspace.training.linear_weights import LinearWeights
from labelspace.types import Hierarchy, LabelSpace

DEEP = {"branching_factor": 2, "max_leaf_size": 4}
SETTINGS = {
    "flat": {},
    "deep": DEEP,
    "several trees": {**DEEP, "n_estimators": 3},
    "k-means": {"tree": "kmeans", "branching_factor": 3, "max_leaf_size": 4},
    "logistic": {**DEEP, "loss": "logistic"},
    "hierarchy": {"tree": "hierarchy"},
}
N_KNOWN = 24  # labels of the training documents; the other six come later


@pytest.fixture(scope="module")
def stream():
    data = planted(n=900, d=400, l=30, seed=5)
    is_new = data.Y[:, N_KNOWN:].sum(axis=1).A1 > 0
    late = is_new | (np.arange(900) >= 600)
    test = np.arange(900) >= 800
    return data.rows(np.flatnonzero(~late)), data.rows(np.flatnonzero(late & ~test)), data.rows(np.flatnonzero(test))


def fit(setting, train):
    hierarchy = Hierarchy.from_edges(np.array([[label, label // 4] for label in range(4, N_KNOWN)]), n_labels=N_KNOWN)
    names = LabelSpace([f"label {label}" for label in range(N_KNOWN)], hierarchy=hierarchy)
    return LabelTree(**SETTINGS[setting]).fit(train.X, train.Y[:, :N_KNOWN], labels=names)


def learn(model, documents, **given):
    names = model.labels_.extended([f"label {label}" for label in range(30)])
    return learn_more(model, documents.X, documents.Y, names, **given)


@pytest.mark.parametrize("setting", SETTINGS)
def test_new_labels_become_leaves_of_valid_trees_and_are_found(setting, stream):
    train, new, test = stream
    model = fit(setting, train)
    n_nodes, n_trees = len(model.label_), len(model.roots_)
    learn(model, new)
    assert len(model.label_) == n_nodes + 6 * n_trees
    model.check_state()
    for tree in model.label_trees():
        assert sorted(tree.label[tree.label >= N_KNOWN]) == list(range(N_KNOWN, 30))
        assert sorted(tree.label[tree.label >= 0]) == list(range(30))
    first = model.predict_topk(test.X, k=1).labels[:, 0]
    right = test.Y[np.arange(len(test)), first].A1 > 0
    assert right.mean() > 0.75
    new_ones = test.Y[:, N_KNOWN:].sum(axis=1).A1 > 0
    top = model.predict_topk(test.X, k=3)
    assert (top.labels[new_ones] >= N_KNOWN).any(axis=1).mean() > 0.7


def test_leaves_are_put_after_their_siblings_and_all_else_keeps_its_order():
    tree = Tree(*np.array([[1, 3, 5, 0, 0, 0, 0], [3, 5, 7, 0, 0, 0, 0], [-1, -1, -1, 0, 1, 2, 3]], np.int32))
    W = sp.csr_matrix(np.arange(1, 8, dtype=np.float32)[None])
    bias = np.array([0, -1, -2, -3, -4, -5, -6], np.float32)
    trees = GrowingTrees(LinearWeights.from_matrix(W, bias), tree, np.zeros(1, np.int32))
    grown = trees.with_leaves([Place(6, 2), Place(4, 1), Place(5, 2)])
    assert grown.tree.first_child.tolist() == [1, 3, 6, 0, 0, 0, 0, 0, 0, 0]
    assert grown.tree.last_child.tolist() == [3, 6, 10, 0, 0, 0, 0, 0, 0, 0]
    assert grown.tree.label.tolist() == [-1, -1, -1, 0, 1, 4, 2, 3, 5, 6]
    assert grown.weights.bias.tolist() == [0, -1, -2, -3, -4, -3.5, -5, -6, -5.5, -5.5]
    np.testing.assert_allclose(grown.weights.to_matrix().toarray()[0], [1, 2, 3, 4, 5, 0, 6, 7, 0, 0], atol=0.03)
    assert grown.parents.tolist() == [-1, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    check_forest(grown.tree.first_child, grown.tree.last_child, grown.roots)
    assert grown.shares().tolist() == [1] * 10, "few labels: most documents reach every node"


def test_a_new_label_goes_where_its_documents_belong(stream):
    train, _, _ = stream
    model = fit("deep", train)
    tree = GrowingTrees(model._linear_weights, Tree(model.first_child_, model.last_child_, model.label_), model.roots_)
    for label in range(0, N_KNOWN, 5):
        rows = train.Y[:, label].nonzero()[0]
        twin = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, np.full(len(rows), N_KNOWN))), (len(train), 25))
        (place,) = tree.places(model._documents({next(iter(model.widths_)): train.X}), twin)
        assert place.label == N_KNOWN
        siblings = model.label_[model.first_child_[place.parent] : model.last_child_[place.parent]]
        assert label in siblings


@pytest.mark.parametrize("setting", ["flat", "deep"])
def test_a_rejected_label_is_a_negative_of_its_leaf_alone(setting, stream):
    train, _, test = stream
    model = fit(setting, train)
    label = int(np.bincount(model.predict_topk(test.X, 1).labels[:, 0]).argmax())
    shown = test.rows(np.flatnonzero(model.predict_topk(test.X, 1).labels[:, 0] == label))
    nothing = sp.csr_matrix((len(shown), N_KNOWN), dtype=np.float32)
    rejected = sp.csr_matrix(np.tile(np.arange(N_KNOWN) == label, (len(shown), 1)).astype(np.float32))
    before = model.weights_
    learn_more(model, shown.X, nothing, rejected=rejected)
    change = abs(before - model.weights_).tocsc().max(axis=0).toarray().ravel()
    changed = np.flatnonzero(change > model.scales_.max() / 2)  # a feature whose scale grows is rounded again
    assert model.label_[changed].tolist() == [label]
    assert (model.predict_topk(shown.X, 1).labels[:, 0] == label).mean() < 0.5


def test_a_model_saved_before_there_were_sums_learns_too(stream):
    train, new, test = stream
    model = fit("deep", train)
    model.squares_ = None
    learn(model, new)
    assert model.squares_ is not None
    first = model.predict_topk(test.X, k=1).labels[:, 0]
    assert (test.Y[np.arange(len(test)), first].A1 > 0).mean() > 0.7


def test_a_tree_without_labels_is_refused():
    lone = Tree(np.zeros(1, np.int32), np.zeros(1, np.int32), np.full(1, -1, np.int32))
    weights = LinearWeights.from_matrix(sp.csr_matrix((1, 1), dtype=np.float32), np.zeros(1, np.float32))
    trees = GrowingTrees(weights, lone, np.zeros(1, np.int32))
    with pytest.raises(ModelError, match="must have labels, but a saved one has none; train it again"):
        trees.places(sp.csr_matrix([[1.0]], dtype=np.float32), sp.csr_matrix([[1.0]], dtype=np.float32))
