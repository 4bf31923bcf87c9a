import json

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace.features.normalize import normalize_rows
from labelspace.models.hierarchicalxc import model as hierarchicalxc
from labelspace.models.hierarchicalxc.model import HierarchicalXC, NodeTargets, node_blocks
from labelspace.models.popular import Popular
from labelspace.training.autoencoder import DECODER_SHARE, TrainingPhase
from labelspace.training.losses import sigmoid
from labelspace.training.optimizers import AdamParameter

INPUTS = ("code", "features")
KEPT = [{"input": "features"}, {"input_layers": 16}, {"input_layers": "16,8", "follow": 0.1}]
QUICK = {"input_layers": 32, "epochs": 2}


def hits(model, documents, k):
    return model.predict_topk(documents.X, k).to_csr(documents.Y.shape[1]).multiply(documents.Y).sum()


@pytest.fixture
def small(data):
    return data[0].rows(range(200))


@pytest.fixture(scope="module")
def fitted(data):
    """A model of each kind of input, trained once."""
    train, _ = data
    return {kind: HierarchicalXC(input=kind, epochs=15).fit(train.X, train.Y) for kind in INPUTS}


@pytest.mark.parametrize("kind", INPUTS)
def test_both_kinds_of_input_find_planted_labels(fitted, data, kind):
    train, test = data
    assert hits(fitted[kind], test, 1) > 170
    assert hits(fitted[kind], test, 3) > 2 * hits(Popular().fit(train.X, train.Y), test, 3)


@pytest.mark.parametrize("similarity", ["counts", "iou"])
@pytest.mark.parametrize("ties", ["average", "order"])
@pytest.mark.parametrize("balance", ["auto", "always", "never"])
def test_every_kind_of_tree_has_each_seen_label_once(data, similarity, ties, balance):
    train, test = data
    Y = train.Y.tolil()
    Y[:, [3, 39]] = 0  # no leaf for these
    model = HierarchicalXC(**QUICK, similarity=similarity, ties=ties, balance=balance).fit(train.X, Y.tocsr())
    (tree,) = model.label_trees()
    leaf = tree.label >= 0
    assert sorted(tree.label[leaf]) == np.flatnonzero(Y.tocsr().sum(axis=0).A1).tolist()
    assert (tree.last_child - tree.first_child).tolist() == np.where(leaf, 0, 2).tolist()
    assert np.isnan(tree.similarity[leaf]).all()
    assert (tree.similarity[~leaf] >= 0).all()
    told = model.report()
    assert 0 < told.pop("reconstruction_error") < 1.05, "about as well as saying nothing, or better"
    assert told == {
        "tree_height": tree.height,
        "tree_balance": round(tree.balance, 4),
        "tree_mean_depth": round(float(tree.level[leaf].mean()), 2),
        "tree_is_a_chain": tree.is_chain,
    }
    json.dumps(told)
    assert not np.isin([3, 39], model.predict_topk(test.X, 40).labels).any()
    assert not told["tree_is_a_chain"] or balance == "never"
    if balance == "always":
        assert tree.height <= 2 * np.log2(38) + 2


def disjoint(n, copies=2):
    """Labels that never stand together, each with a feature of its own."""
    own = sp.csr_matrix(np.tile(np.eye(n, dtype=np.float32), (copies, 1)))
    return own, own.copy()


@pytest.mark.parametrize("kind", INPUTS)
def test_a_chain_works_is_told_and_is_mended(kind):
    X, Y = disjoint(70)
    settings = {"input": kind, "ties": "order", "epochs": 15, "input_layers": 64, "beam": 70}
    chain, mended = (HierarchicalXC(**settings, balance=balance).fit(X, Y) for balance in ("never", "auto"))
    told = chain.report()
    assert (told["tree_height"], told["tree_balance"]) == (69, round(7 / 69, 4))
    assert told["tree_mean_depth"] == round((69 * 70 / 2 + 69) / 70, 2)
    assert told["tree_is_a_chain"] is True
    assert (told["reconstruction_error"] is None) == (kind == "features")
    assert mended.report()["tree_is_a_chain"] is False
    assert mended.report()["tree_height"] <= 9
    top = chain.predict_topk(X, 70)
    assert (np.sort(top.labels, axis=1) == np.arange(70)).all(), "a wide beam gets to the end of the chain"
    first = mended.predict_topk(X, 1).labels[:, 0]
    assert (first == Y.indices).mean() > 0.8


def test_where_no_labels_stand_together_the_tree_is_as_low_as_can_be():
    X, Y = disjoint(37)
    assert HierarchicalXC(**QUICK).fit(X, Y).report()["tree_balance"] == 1.0


def chances(model, X):
    """The chance of each node for each document that is at its parent, from what the model keeps."""
    X = normalize_rows(X).toarray().astype(np.float64)
    if model.input == "features":
        W = sp.csr_matrix((model.values_, model.nodes_, model.starts_), shape=(X.shape[1], len(model.label_)))
        return sigmoid(X @ W.toarray() + model.bias_)
    code = X @ (model.vectors_ * model.vector_scales_[:, None].astype(np.float64)) + model.offset_
    assert model.input_code == "linear"
    assert len(model.dense_) == 0
    return sigmoid(code @ (model.node_weights_ * model.node_scales_[:, None].astype(np.float64)).T + model.bias_)


@pytest.mark.parametrize("kind", INPUTS)
def test_a_score_is_the_product_of_the_chances_on_the_path(fitted, data, kind):
    model, test = fitted[kind], data[1]
    (tree,) = model.label_trees()
    steps = chances(model, test.X)
    scores = np.ones_like(steps)
    for node in range(1, len(tree)):
        scores[:, node] = scores[:, tree.parent[node]] * steps[:, node]
    leaves = np.flatnonzero(tree.label >= 0)
    expected = np.zeros((len(test), 40))
    expected[:, tree.label[leaves]] = scores[:, leaves]
    top = model.set_params(beam=40).predict_topk(test.X, 40)
    model.set_params(beam=20)
    assert (top.labels[:, : len(leaves)] >= 0).all()
    listed = top.labels >= 0
    rows = np.nonzero(listed)[0]
    assert np.allclose(expected[rows, top.labels[listed]], top.scores[listed], rtol=1e-3, atol=1e-6)
    assert ((top.scores[listed] >= 0) & (top.scores[listed] <= 1)).all()


@pytest.mark.parametrize("kind", INPUTS)
def test_following_only_likely_children_gives_some_of_the_labels_with_the_same_scores(fitted, data, kind):
    model, X = fitted[kind], data[1].X
    all_of_them = model.predict_topk(X, 40)
    some = model.set_params(follow=0.5).predict_topk(X, 40)
    model.set_params(follow=0.0)
    found = 0
    for row in range(X.shape[0]):
        known = dict(zip(all_of_them.labels[row], all_of_them.scores[row], strict=True))
        listed = some.labels[row] >= 0
        pairs = zip(some.labels[row][listed], some.scores[row][listed], strict=True)
        assert all(known[name] == score for name, score in pairs)
        found += listed.sum()
    assert 0 < found < (all_of_them.labels >= 0).sum() / 2
    assert some.to_csr(40).multiply(data[1].Y).sum() / found > 0.5, "what is likely is mostly right"


@pytest.mark.parametrize("share", [0.5, 0.3])
def test_a_chance_of_just_so_much_is_followed(share):
    """A document without features has the chance of the bias alone."""
    model = HierarchicalXC(input="features", follow=share).fit(np.eye(2), np.array([[1, 0], [0, 1]]))
    model.bias_[:] = np.float32(np.log(share / (1 - share)))
    assert model.predict_topk(np.zeros((1, 2)), 2).labels.tolist() == [[0, 1]]


def same_state(one, other):
    pairs = [(getattr(one, key), getattr(other, key), key == "similarity_") for key in one.state]
    return all(np.array_equal(a, b, equal_nan=of_leaves) for a, b, of_leaves in pairs)


@pytest.mark.parametrize("kind", INPUTS)
def test_blocks_and_threads_change_nothing_but_time(small, monkeypatch, kind):
    models, answers = [], []
    for threads, block in ((1, 64), (2, 64), (2, 4)):
        monkeypatch.setenv("LABELSPACE_THREADS", str(threads))
        monkeypatch.setattr(hierarchicalxc, "ROW_BLOCK", block)
        if kind == "code":
            monkeypatch.setattr(hierarchicalxc, "NODE_BLOCK", block)
        models.append(HierarchicalXC(**QUICK, input=kind).fit(small.X, small.Y))
        answers.append(models[-1].predict_topk(small.X, 5))
    assert all(same_state(models[0], model) for model in models[1:])
    assert all(np.array_equal(answers[0].scores, answer.scores) for answer in answers[1:])


def test_blocks_of_nodes_change_no_classifier(small, monkeypatch):
    models = []
    for block in (64, 4, 1):
        monkeypatch.setattr(hierarchicalxc, "NODE_BLOCK", block)
        models.append(HierarchicalXC(input="features").fit(small.X, small.Y))
    assert all(same_state(models[0], model) for model in models[1:])


@pytest.mark.parametrize("block", [1, 2, 64])
def test_blocks_of_nodes_cover_every_node_once(monkeypatch, block):
    monkeypatch.setattr(hierarchicalxc, "NODE_BLOCK", block)
    for n in (1, 2, 3, 5, 63, 64, 65, 128, 129, 1000):
        blocks = node_blocks(n)
        assert [at for start, stop in blocks for at in range(start, stop)] == list(range(n))
        assert all(0 < stop - start <= block for start, stop in blocks)


def begun(monkeypatch):
    """The nets that fitting begins."""
    nets, kind = [], hierarchicalxc.Net
    monkeypatch.setattr(hierarchicalxc, "Net", lambda *args: nets.append(kind(*args)) or nets[-1])
    return nets


def tables(net):
    """Copies of what the autoencoder is made of, and of the classifiers."""
    dense = [*net.encoder.stack.layers, *net.decoder.stack.layers]
    code = [net.encoder.features.vectors, net.encoder.offset.value, net.decoder.features.vectors]
    code += [part.value for layer in dense for part in (layer.rows, layer.offset)]
    return [table.copy() for table in code], net.nodes.vectors.copy()


@pytest.mark.parametrize("training", ["staged", "pretrained", "joint"])
def test_the_code_rests_while_the_classifiers_of_a_staged_training_learn(small, monkeypatch, training):
    nets, states, batches = begun(monkeypatch), [], hierarchicalxc.batches

    def told(*args):
        states.append(tables(nets[0]))
        yield from batches(*args)

    monkeypatch.setattr(hierarchicalxc, "batches", told)
    HierarchicalXC(input_layers="16,8", epochs=1, training=training).fit(small.X, small.Y)
    states.append(tables(nets[0]))
    moved = [
        ({not np.array_equal(*pair) for pair in zip(old[0], new[0], strict=True)}, not np.array_equal(old[1], new[1]))
        for old, new in zip(states, states[1:], strict=False)
    ]
    assert (
        moved
        == {
            "staged": [({True}, False), ({False}, True)],
            "pretrained": [({True}, False), ({True}, True)],
            "joint": [({True}, True)],
        }[training]
    )


@pytest.mark.parametrize("layers", ["8", "8,5"])
@pytest.mark.parametrize(
    "phase", [TrainingPhase(0.7, 0.0, True), TrainingPhase(0.0, 0.0, True), TrainingPhase(0.7, 0.0, False)]
)
def test_a_step_has_the_gradients_that_torch_finds(monkeypatch, layers, phase):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    X = normalize_rows(sp.random(6, 9, 0.5, "csr", np.float32, rng=rng))
    Y = (rng.random((6, 7)) < 0.4).astype(np.float32)
    Y[0], Y[1], Y[2] = 1, 0, 0  # every label has a document, one document has none
    Y = sp.csr_matrix(Y)
    nets, found = begun(monkeypatch), {}
    model = HierarchicalXC(input_layers=layers, activation="tanh", input_code="elu", epochs=1, astray=1, dropout=0.0)
    model.fit(X, Y)
    net = nets[0]
    dense = [*net.encoder.stack.layers, *net.decoder.stack.layers]
    moved = [net.encoder.offset, *(part for layer in dense for part in (layer.rows, layer.offset))]
    layered = {"E": net.encoder.features, "D": net.decoder.features, "N": net.nodes}
    for table in [part.value for part in moved] + [layer.vectors for layer in layered.values()]:
        table[:] = 0.5 * rng.standard_normal(table.shape)
    for layer in layered.values():
        layer.memory.squares[:] = 0

    def record(self, gradient, rate, number, part=slice(None)):
        found[id(self)] = np.array(gradient)

    monkeypatch.setattr(AdamParameter, "step", record)
    before = {key: layer.vectors.copy() for key, layer in layered.items()}
    w = {id(part): torch.tensor(part.value, dtype=torch.float64, requires_grad=True) for part in moved}
    w |= {key: torch.tensor(table, dtype=torch.float64, requires_grad=True) for key, table in before.items()}
    order = rng.permutation(6).astype(np.int32)
    model._step(net, phase, X, order, 1.0, rng)

    tanh, elu = torch.tanh, torch.nn.functional.elu
    x = torch.tensor(X[order].toarray(), dtype=torch.float64)
    code = (tanh if net.encoder.stack.layers else elu)(x @ w["E"] + w[id(net.encoder.offset)])
    for layer in net.encoder.stack.layers:
        code = elu(code @ w[id(layer.rows)].T + w[id(layer.offset)])
    back = code
    for layer in net.decoder.stack.layers:
        back = tanh(back @ w[id(layer.rows)].T + w[id(layer.offset)])
    loss = phase.alpha * (back @ w["D"].T - x).square().sum()
    if phase.classify:
        z = code @ w["N"][:, :-1].T + w["N"][:, -1]
        targets, nodes, ends = net.ways.of_rows(order)
        rows = np.repeat(np.arange(6), np.diff(ends))
        loss = loss + torch.nn.functional.binary_cross_entropy_with_logits(
            z[rows, nodes], torch.tensor(targets, dtype=torch.float64), reduction="sum"
        )
    (loss / 6).backward()
    slopes = {key: np.zeros(t.shape) if t.grad is None else t.grad.numpy() for key, t in w.items()}
    for part in moved:
        assert np.allclose(found.get(id(part), 0), slopes[id(part)], atol=1e-5)
    of_features = model.feature_rate if phase.classify else model.rate
    rates = {"E": of_features, "D": DECODER_SHARE * model.rate, "N": model.node_rate}
    for key, layer in layered.items():
        sizes = np.sqrt(np.square(slopes[key]).mean(axis=1, keepdims=True))  # Adagrad's memory after one step
        expected = -rates[key] * slopes[key] / np.where(sizes > 1e-9, sizes, 1)
        assert np.allclose(layer.vectors - before[key], expected, atol=1e-4), key


def test_classifiers_begin_at_how_often_their_node_is_reached(small):
    model = HierarchicalXC(**QUICK).fit(small.X, small.Y)
    (tree,) = model.label_trees()
    n = len(tree)
    below = np.zeros((n, 40))
    for node in range(n - 1, -1, -1):
        if tree.label[node] >= 0:
            below[node, tree.label[node]] = 1
        if node:
            below[tree.parent[node]] += below[node]
    reached = small.Y @ below.T > 0
    reached[:, 0] = True
    asked = reached[:, tree.parent]
    asked[:, 0] = False
    yes, no = (reached & asked).sum(axis=0), (~reached & asked).sum(axis=0)
    assert np.allclose(NodeTargets.of(tree, small.Y, 0).log_odds(), np.log((yes + 0.5) / (no + 0.5)), atol=1e-5)


def test_a_document_that_goes_astray_is_a_wrong_one_for_more_nodes(small):
    (tree,) = HierarchicalXC(**QUICK).fit(small.X, small.Y).label_trees()
    rows = np.arange(200, dtype=np.int32)
    found = [NodeTargets.of(tree, small.Y, astray).of_rows(rows) for astray in (0, 1, 2, 100)]
    assert len({targets.sum() for targets, _, _ in found}) == 1
    assert (np.diff([len(nodes) for _, nodes, _ in found]) > 0).all()
    assert len(found[-1][1]) == 200 * (len(tree) - 1)


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("follow", [0.0, 0.5])
def test_a_single_label(kind, follow):
    model = HierarchicalXC(input=kind, follow=follow).fit(np.eye(3), np.array([[0, 1, 0]] * 3))
    top = model.predict_topk(np.eye(3), 2)
    assert top.labels.tolist() == [[1, -1]] * 3
    assert model.report()["tree_height"] == 1
    assert model.label_trees()[0].label.tolist() == [-1, 1]


@pytest.mark.parametrize("kind", INPUTS)
def test_two_labels(kind):
    X, Y = disjoint(2, copies=8)
    model = HierarchicalXC(input=kind, input_layers=16).fit(X, Y)
    assert model.predict_topk(np.eye(2), 2).labels.tolist() == [[0, 1], [1, 0]]
    assert model.label_trees()[0].height == 1


@pytest.mark.parametrize("kind", INPUTS)
def test_labels_that_never_stand_together(kind):
    X, Y = disjoint(30, copies=4)
    model = HierarchicalXC(input=kind, epochs=15).fit(X, Y)
    assert (model.predict_topk(X, 1).labels[:, 0] == Y.indices).mean() > 0.9


@pytest.mark.parametrize("kind", INPUTS)
def test_one_document_with_some_labels(kind):
    model = HierarchicalXC(input=kind).fit(np.ones((1, 4)), np.array([[1, 0, 1, 1]]))
    top = model.predict_topk(np.ones((1, 4)), 5)
    assert sorted(top.labels[0]) == [-1, -1, 0, 2, 3]
    assert not np.isnan(top.scores).any()


@pytest.mark.parametrize("kind", INPUTS)
def test_documents_without_features_or_labels(kind):
    X, Y = np.eye(6), np.eye(6)
    X[2], Y[3] = 0, 0
    top = HierarchicalXC(input=kind, input_layers=8).fit(X, Y).predict_topk(X, 6)
    assert (np.sort(top.labels, axis=1) == [-1, 0, 1, 2, 4, 5]).all()
    assert np.isfinite(top.scores[:, :5]).all()


@pytest.mark.parametrize("kind", INPUTS)
def test_documents_without_labels_teach_that_none_is_right(kind):
    X, Y = disjoint(2, copies=10)
    X = sp.csr_matrix(np.concatenate([np.pad(X.toarray(), ((0, 0), (0, 1))), [[0, 0, 1]] * 20]))
    Y = sp.csr_matrix(np.concatenate([Y.toarray(), np.zeros((20, 2))]))
    scores = HierarchicalXC(input=kind, input_layers=16).fit(X, Y).predict_topk(np.eye(3), 2).scores
    assert (scores[:2, 0] > 0.5).all()
    assert (scores[2] < 0.3).all()


@pytest.mark.parametrize("given", KEPT)
def test_it_is_saved_and_read(small, tmp_path, given):
    model = HierarchicalXC(**{"epochs": 1, **given}).fit(small.X, small.Y)
    model.save(tmp_path / "model")
    again = labelspace.load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert same_state(model, again)
    assert again.report() == model.report()
    one, other = (it.predict_topk(small.X, 5) for it in (model, again))
    assert np.array_equal(one.labels, other.labels)
    assert np.array_equal(one.scores, other.scores)


def test_fitting_again_with_the_other_input_leaves_nothing_of_the_first(small):
    model = HierarchicalXC(**QUICK).fit(small.X, small.Y)
    model.set_params(input="features").fit(small.X, small.Y)
    assert same_state(model, HierarchicalXC(**QUICK, input="features").fit(small.X, small.Y))


@pytest.mark.parametrize("kind", INPUTS)
def test_the_command_line_trains_it_and_shows_its_tree(run, tmp_path, kind):
    texts = ["bread", "bread dough", "fish", "grilled fish", "fish bread"] * 4
    labels = ["baking", "baking|white bread", "fish", "fish|grilling", "fish|baking"] * 4
    lines = "".join(f"{text},{names}\n" for text, names in zip(texts, labels, strict=True))
    (tmp_path / "train.csv").write_text("text,labels\n" + lines, encoding="utf-8")
    settings = ["--set", f"input={kind}", "--set", "input_layers=16,8", "--set", "balance=always"]
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


def test_the_command_line_warns_of_a_chain_and_says_how_to_mend_it(run):
    X, Y = disjoint(60)
    HierarchicalXC(**QUICK, ties="order", balance="never").fit(X, Y).save("chain")
    code, out, _ = run("tree", "chain")
    assert code == 0
    assert out.splitlines()[1] == (
        "warning: the tree is chain-like: height 59 for 60 labels; train with --set balance=always"
    )
