import json

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import ParameterError
from labelspace.features.normalize import normalize_rows
from labelspace.models.hierarchicalxc import model as hierarchicalxc
from labelspace.models.hierarchicalxc.dendrogram import cluster_labels
from labelspace.models.hierarchicalxc.model import HierarchicalXC
from labelspace.training.losses import sigmoid
from tests.checks import digest, precision_at_1, same_topk

INPUTS = ("code", "features")
QUICK = {"input_layers": 32, "epochs": 2}


@pytest.fixture
def small(data):
    return data[0].rows(range(200))


@pytest.fixture(scope="module")
def fitted(data):
    """A model with each kind of input, trained once."""
    train, _ = data
    return {
        kind: HierarchicalXC().set_params(input=kind, input_layers=128, epochs=15).fit(train.X, train.Y)
        for kind in INPUTS
    }


@pytest.mark.parametrize("kind", INPUTS)
def test_both_kinds_of_input_find_planted_labels(fitted, data, kind):
    assert precision_at_1(fitted[kind], data[1]) > 0.85


@pytest.mark.parametrize("similarity", ["counts", "iou"])
@pytest.mark.parametrize("ties", ["average", "order"])
@pytest.mark.parametrize("balance", ["auto", "always", "never"])
def test_every_kind_of_tree_has_each_seen_label_once(data, similarity, ties, balance):
    train, test = data
    Y = train.Y.tolil()
    Y[:, [3, 39]] = 0  # no leaf for these
    model = (
        HierarchicalXC().set_params(**QUICK, similarity=similarity, ties=ties, balance=balance).fit(train.X, Y.tocsr())
    )
    (tree,) = model.label_trees()
    leaf = tree.label >= 0
    assert sorted(tree.label[leaf]) == np.flatnonzero(Y.tocsr().sum(axis=0).A1).tolist()
    assert (tree.last_child - tree.first_child).tolist() == np.where(leaf, 0, 2).tolist()
    assert np.isnan(tree.similarity[leaf]).all()
    assert (tree.similarity[~leaf] >= 0).all()
    report = model.report()
    assert 0 < report.pop("reconstruction_error") < 1.05, "about as good as a prediction of zeros, or better"
    assert report == {
        "tree_height": tree.height,
        "tree_balance": round(tree.balance, 4),
        "tree_mean_depth": round(float(tree.level[leaf].mean()), 2),
        "tree_is_a_chain": tree.is_degenerate,
    }
    json.dumps(report)
    assert not np.isin([3, 39], model.predict_topk(test.X, 40).labels).any()
    assert not report["tree_is_a_chain"] or balance == "never"
    if balance == "always":
        assert tree.height <= 2 * np.log2(38) + 2


def disjoint(n, copies=2):
    """Labels that never co-occur, each with its own feature."""
    X = sp.csr_matrix(np.tile(np.eye(n, dtype=np.float32), (copies, 1)))
    return X, X.copy()


@pytest.mark.parametrize("kind", INPUTS)
def test_a_chain_works_is_reported_and_is_rebalanced(kind):
    X, Y = disjoint(70)
    settings = {"input": kind, "ties": "order", "epochs": 15, "input_layers": 64, "beam_size": 70}
    chain, rebalanced = (
        HierarchicalXC().set_params(**settings, balance=balance).fit(X, Y) for balance in ("never", "auto")
    )
    report = chain.report()
    assert (report["tree_height"], report["tree_balance"]) == (69, round(7 / 69, 4))
    assert report["tree_mean_depth"] == round((69 * 70 / 2 + 69) / 70, 2)
    assert report["tree_is_a_chain"] is True
    assert (report["reconstruction_error"] is None) == (kind == "features")
    assert rebalanced.report()["tree_is_a_chain"] is False
    assert rebalanced.report()["tree_height"] <= 9
    top = chain.predict_topk(X, 70)
    assert (np.sort(top.labels, axis=1) == np.arange(70)).all(), "a wide beam gets to the end of the chain"
    first = rebalanced.predict_topk(X, 1).labels[:, 0]
    assert (first == Y.indices).mean() > 0.8


def test_where_no_labels_co_occur_the_tree_is_balanced():
    X, Y = disjoint(37)
    assert HierarchicalXC().set_params(**QUICK).fit(X, Y).report()["tree_balance"] == 1.0


def probabilities(model, X):
    """The probability of each node for each document at its parent, from the stored arrays."""
    X = normalize_rows(X).toarray().astype(np.float64)
    if model.input == "features":
        values, nodes, starts, bias = model.linear_classifiers_
        W = sp.csr_matrix((values, nodes, starts), shape=(X.shape[1], len(bias)))
        return sigmoid(X @ W.toarray() + bias)
    encoder, (weights, scales, bias) = model.encoder_, model.code_classifiers_
    assert encoder.specs == [(128, "linear")]
    code = X @ (encoder.vectors * encoder.scales[:, None].astype(np.float64)) + encoder.bias
    return sigmoid(code @ (weights * scales[:, None].astype(np.float64)).T + bias)


@pytest.mark.parametrize("kind", INPUTS)
def test_a_score_is_the_product_of_the_probabilities_on_the_path(fitted, data, kind):
    model, test = fitted[kind], data[1]
    (tree,) = model.label_trees()
    steps = probabilities(model, test.X)
    scores = np.ones_like(steps)
    for node in range(1, len(tree)):
        scores[:, node] = scores[:, tree.parent[node]] * steps[:, node]
    leaves = np.flatnonzero(tree.label >= 0)
    expected = np.zeros((len(test), 40))
    expected[:, tree.label[leaves]] = scores[:, leaves]
    top = model.set_params(beam_size=40).predict_topk(test.X, 40)
    model.set_params(beam_size=20)
    assert (top.labels[:, : len(leaves)] >= 0).all()
    listed = top.labels >= 0
    rows = np.nonzero(listed)[0]
    assert np.allclose(expected[rows, top.labels[listed]], top.scores[listed], rtol=1e-3, atol=1e-6)
    assert ((top.scores[listed] >= 0) & (top.scores[listed] <= 1)).all()


@pytest.mark.parametrize("kind", INPUTS)
def test_following_only_likely_children_gives_some_of_the_labels_with_the_same_scores(fitted, data, kind):
    model, test = fitted[kind], data[1]
    everything = model.predict_topk(test.X, 40)
    likely = model.set_params(follow_threshold=0.5).predict_topk(test.X, 40)
    model.set_params(follow_threshold=0.0)
    n_likely = 0
    for row in range(len(test)):
        scores = dict(zip(everything.labels[row], everything.scores[row], strict=True))
        listed = likely.labels[row] >= 0
        pairs = zip(likely.labels[row][listed], likely.scores[row][listed], strict=True)
        assert all(scores[label] == score for label, score in pairs)
        n_likely += listed.sum()
    assert 0 < n_likely < (everything.labels >= 0).sum() / 2
    assert likely.to_csr(40).multiply(test.Y).sum() / n_likely > 0.5, "what is likely is mostly right"


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("threshold", [0.5, 0.2])
def test_without_a_ranking_the_answer_is_the_set_of_labels_behind_accepted_children(fitted, data, kind, threshold):
    """By recursion from the root over the probabilities of the stored arrays, as section 4 of the paper has it."""
    model, test = fitted[kind], data[1].rows(range(60))
    (tree,) = model.label_trees()
    accepted = probabilities(model, test.X) >= threshold

    def labels_below(row, node):
        if tree.label[node] >= 0:
            return [int(tree.label[node])]
        children = range(tree.first_child[node], tree.last_child[node])
        return [label for child in children if accepted[row, child] for label in labels_below(row, child)]

    model.set_params(ranking="none", follow_threshold=threshold, beam_size=40)
    full, short = model.predict_topk(test.X, 40), model.predict_topk(test.X, 2)
    model.set_params(ranking="probability", follow_threshold=0.0, beam_size=20)
    expected = [sorted(labels_below(row, 0)) for row in range(60)]
    assert [row[row >= 0].tolist() for row in full.labels] == expected
    assert [row[row >= 0].tolist() for row in short.labels] == [labels[:2] for labels in expected]
    assert set(full.scores[full.labels >= 0]) == {1.0}
    assert 0 < max(map(len, expected)) < 40


def test_no_ranking_of_all_labels_is_an_error():
    with pytest.raises(ParameterError, match=r"ranking='none' .* follow_threshold=0 .*; set follow_threshold"):
        HierarchicalXC().set_params(ranking="none").fit(np.eye(2), np.eye(2))


def test_the_paper_is_a_chain_of_counts_and_a_code_that_is_trained_before(data):
    train, test = data
    model = HierarchicalXC.paper(input_layers=128, epochs=15).fit(train.X, train.Y)
    counts = cluster_labels(train.Y, "counts", "order", "never")
    assert np.array_equal(model.label_trees()[0].label, counts.label)
    found = model.predict(test.X, 40)
    assert found.multiply(test.Y).sum() / found.sum() > 0.3, "random would be under a tenth"
    assert HierarchicalXC.from_preset("authors").input_layers == "1152,600,256"


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("normalize", [True, False])
def test_documents_are_normalized_or_used_as_given(small, kind, normalize):
    scaled = sp.csr_matrix(small.X.multiply(np.linspace(0.5, 2, 200)[:, None]), dtype=np.float32)
    model, other = (
        HierarchicalXC().set_params(**QUICK, input=kind, normalize=normalize).fit(X, small.Y) for X in (small.X, scaled)
    )
    scores = [model.predict_topk(X, 3).scores for X in (small.X, scaled)]
    assert np.allclose(*scores, atol=1e-3) == normalize
    assert np.allclose(scores[0], other.predict_topk(scaled, 3).scores, atol=1e-3) == normalize


@pytest.mark.parametrize("threshold", [0.5, 0.3])
def test_a_probability_equal_to_the_threshold_is_followed(threshold):
    """A document without features has the probability of the bias alone."""
    model = HierarchicalXC().set_params(input="features", follow_threshold=threshold).fit(np.eye(2), np.eye(2))
    model.linear_classifiers_.bias[:] = np.float32(np.log(threshold / (1 - threshold)))
    assert model.predict_topk(np.zeros((1, 2)), 2).labels.tolist() == [[0, 1]]


@pytest.mark.parametrize("kind", INPUTS)
def test_blocks_and_threads_change_nothing_but_time(small, monkeypatch, tmp_path, kind):
    models = []
    for threads, block in ((1, 64), (2, 64), (2, 4)):
        monkeypatch.setenv("LABELSPACE_THREADS", str(threads))
        monkeypatch.setattr(hierarchicalxc, "ROW_BLOCK", block)
        models.append(HierarchicalXC().set_params(**QUICK, input=kind).fit(small.X, small.Y))
        models[-1].save(tmp_path / f"{threads}-{block}")
    first, *others = (digest(folder) for folder in sorted(tmp_path.iterdir()))
    assert others == [first, first]
    assert all(same_topk(models[0].predict_topk(small.X, 5), model.predict_topk(small.X, 5)) for model in models[1:])


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_a_single_label(kind, threshold):
    model = (
        HierarchicalXC().set_params(input=kind, follow_threshold=threshold).fit(np.eye(3), np.array([[0, 1, 0]] * 3))
    )
    top = model.predict_topk(np.eye(3), 2)
    assert top.labels.tolist() == [[1, -1]] * 3
    assert model.report()["tree_height"] == 1
    assert model.label_trees()[0].label.tolist() == [-1, 1]


@pytest.mark.parametrize("kind", INPUTS)
def test_two_labels(kind):
    X, Y = disjoint(2, copies=8)
    model = HierarchicalXC().set_params(input=kind, input_layers=16).fit(X, Y)
    assert model.predict_topk(np.eye(2), 2).labels.tolist() == [[0, 1], [1, 0]]
    assert model.label_trees()[0].height == 1


@pytest.mark.parametrize("kind", INPUTS)
def test_labels_that_never_co_occur(kind):
    X, Y = disjoint(30, copies=4)
    model = HierarchicalXC().set_params(input=kind, epochs=15).fit(X, Y)
    assert (model.predict_topk(X, 1).labels[:, 0] == Y.indices).mean() > 0.9


@pytest.mark.parametrize("kind", INPUTS)
def test_one_document_with_some_labels(kind):
    model = HierarchicalXC().set_params(input=kind).fit(np.ones((1, 4)), np.array([[1, 0, 1, 1]]))
    top = model.predict_topk(np.ones((1, 4)), 5)
    assert sorted(top.labels[0]) == [-1, -1, 0, 2, 3]
    assert not np.isnan(top.scores).any()


@pytest.mark.parametrize("kind", INPUTS)
def test_documents_without_features_or_labels(kind):
    X, Y = np.eye(6), np.eye(6)
    X[2], Y[3] = 0, 0
    top = HierarchicalXC().set_params(input=kind, input_layers=8).fit(X, Y).predict_topk(X, 6)
    assert (np.sort(top.labels, axis=1) == [-1, 0, 1, 2, 4, 5]).all()
    assert np.isfinite(top.scores[:, :5]).all()


@pytest.mark.parametrize("kind", INPUTS)
def test_documents_without_labels_teach_that_none_is_right(kind):
    X, Y = disjoint(2, copies=10)
    X = sp.csr_matrix(np.concatenate([np.pad(X.toarray(), ((0, 0), (0, 1))), [[0, 0, 1]] * 20]))
    Y = sp.csr_matrix(np.concatenate([Y.toarray(), np.zeros((20, 2))]))
    scores = HierarchicalXC().set_params(input=kind, input_layers=16).fit(X, Y).predict_topk(np.eye(3), 2).scores
    assert (scores[:2, 0] > 0.5).all()
    assert (scores[2] < 0.3).all()


@pytest.mark.parametrize("params", [{"input": "features"}, {"input_layers": "16,8", "follow_threshold": 0.1}])
def test_linear_and_deep_models_are_saved_and_loaded(small, tmp_path, params):
    model = HierarchicalXC().set_params(**{"epochs": 1, **params}).fit(small.X, small.Y)
    model.save(tmp_path / "model")
    loaded = HierarchicalXC.load(tmp_path / "model")
    assert loaded.report() == model.report()
    assert same_topk(loaded.predict_topk(small.X, 5), model.predict_topk(small.X, 5))


def test_a_fit_with_the_other_input_leaves_nothing_of_the_first(small):
    model = HierarchicalXC().set_params(**QUICK).fit(small.X, small.Y)
    model.set_params(input="features").fit(small.X, small.Y)
    assert (model.encoder_, model.code_classifiers_, model.reconstruction_error_) == (None, None, None)
    fresh = HierarchicalXC().set_params(**QUICK, input="features").fit(small.X, small.Y)
    assert same_topk(model.predict_topk(small.X, 5), fresh.predict_topk(small.X, 5))


@pytest.mark.parametrize("kind", INPUTS)
def test_the_command_line_trains_it_and_shows_its_tree(run, tmp_path, kind):
    texts = ["bread", "bread dough", "fish", "grilled fish", "fish bread"] * 4
    labels = ["baking", "baking|white bread", "fish", "fish|grilling", "fish|baking"] * 4
    lines = "".join(f"{text},{names}\n" for text, names in zip(texts, labels, strict=True))
    (tmp_path / "train.csv").write_text("text,labels\n" + lines, encoding="utf-8")
    settings = ["--set", f"input={kind}", "--set", "balance=always"]
    settings += ["--set", "input_layers=16,8"] if kind == "code" else []
    code, _, err = run("train", "train.csv", "--method", "hierarchicalxc", "--out", "model", *settings)
    assert code == 0, err
    code, out, err = run("tree", "model")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("4 labels, height ")
    code, out, _ = run("tree", "model", "--json")
    (figures,) = json.loads(out)["trees"]
    assert (figures["n_labels"], figures["n_nodes"], figures["most_children"]) == (4, 7, 2)
    code, out, _ = run("tree", "model", "--format", "newick")
    assert all(name in out for name in ("baking", "fish", "grilling", "white bread"))


def test_the_command_line_warns_of_a_chain_and_names_the_remedy(run):
    X, Y = disjoint(60)
    HierarchicalXC().set_params(**QUICK, ties="order", balance="never").fit(X, Y).save("chain")
    code, out, _ = run("tree", "chain")
    assert code == 0
    assert out.splitlines()[1] == (
        "warning: the tree is degenerate, of height 59 for 60 labels; train with --set balance=always"
    )
