"""What treespace promises beyond every model's contract: predictions consistent with trees and DAGs, label texts."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.errors import DataError, ParameterError
from labelspace.models.treespace import Treespace
from labelspace.models.treespace.layout import level_weights
from labelspace.report.tree import tree_json, tree_newick, tree_text
from labelspace.types import Hierarchy, LabelSpace
from tests.checks import digest, same_topk

SMALL = {"hidden_dim": 16, "root_dim": 4, "embedding_dim": 8, "n_estimators": 1, "epochs": 1, "batch_size": 8}
TREE = [[1, 0], [2, 0], [3, 1], [4, 1], [6, 5]]  # 0 over 1 and 2, 1 over 3 and 4, 5 over 6; 7 alone
DAG = [*TREE, [4, 2], [6, 2]]


def space(edges, n_labels):
    names = [f"label {i}" for i in range(n_labels)]
    return LabelSpace(names, hierarchy=Hierarchy.from_edges(np.array(edges).reshape(-1, 2), n_labels))


def documents(labels, n=160, closed=True, seed=0, at_most=1):
    """Documents with a feature for each of their labels; ``closed`` adds the ancestors to the labels."""
    rng, n_labels = np.random.default_rng(seed), len(labels)
    carried = np.zeros((n, n_labels), np.float32)
    for row in range(n):
        carried[row, rng.choice(n_labels, rng.integers(1, at_most + 1), replace=False)] = 1
    X = np.hstack([carried, rng.random((n, 4)) * 0.2]).astype(np.float32)
    Y = labels.hierarchy.closed(sp.csr_matrix(carried)) if closed else sp.csr_matrix(carried)
    return sp.csr_matrix(X), Y


def is_consistent(top, hierarchy):
    """Whether each label's ancestors are ranked before it in every row."""
    ancestors = hierarchy.ancestors
    return all(
        set(ancestors[label].indices.tolist()) <= set(row[:rank].tolist())
        for row in top.labels
        for rank, label in enumerate(row)
        if label >= 0
    )


def fitted(edges=TREE, closed=True, n_labels=8, **params):
    """A model trained on planted documents, and these."""
    labels = space(edges, n_labels)
    X, Y = documents(labels, closed=closed)
    return (
        Treespace().set_params(**{**SMALL, "epochs": 12, "learning_rate": 0.2, **params}).fit(X, Y, labels=labels),
        X,
        Y,
    )


def same_nodes(model, other):
    pairs = zip(model.estimators_, other.estimators_, strict=True)
    return all(
        np.array_equal(a.node_embeddings, b.node_embeddings) and np.array_equal(a.node_scales, b.node_scales)
        for a, b in pairs
    )


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 9))
    edges = [(c, p) for c in range(1, n) for p in draw(st.sets(st.integers(0, c - 1), max_size=3))]
    return space(edges, n)


@settings(max_examples=25)
@given(graphs(), st.integers(0, 99), st.integers(1, 2), st.booleans(), st.integers(1, 3))
def test_predictions_are_consistent_with_every_hierarchy(labels, seed, n_estimators, ball, beam_size):
    X, Y = documents(labels, n=20, seed=seed, at_most=min(2, len(labels)))
    params = {**SMALL, "n_estimators": n_estimators, "beam_size": beam_size, "random_state": seed}
    model = Treespace().set_params(**params, space="poincare" if ball else "euclidean").fit(X, Y, labels=labels)
    assert model.is_closed_
    for k in (1, 3, len(labels)):
        assert is_consistent(model.predict_topk(X, k), labels.hierarchy)
    top = model.predict_topk(X, len(labels))
    assert (top.scores[:, 1:] <= top.scores[:, :-1]).all()
    assert set(top.labels[top.labels >= 0].tolist()) <= set(Y.indices.tolist())


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("edges", [TREE, DAG])
def test_planted_labels_are_predicted(ball, closed, edges):
    model, X, Y = fitted(edges, closed, space="poincare" if ball else "euclidean")
    sizes = np.diff(Y.indptr)
    top = model.predict_topk(X, 8)
    right = [
        len(set(row[:size]) & set(true.indices)) / size for row, size, true in zip(top.labels, sizes, Y, strict=True)
    ]
    assert np.mean(right) > 0.9
    assert model.is_closed_ == closed
    assert model.report()["documents_carry_labels_above"] == closed
    assert model.report()["hierarchy_is_given"]
    assert model.report()["dimensions"] == [4, 6, 8]


@pytest.mark.parametrize("preset", list(Treespace.presets))
def test_presets_learn_planted_labels_with_all_losses(preset):
    labels = space(TREE, 8)
    X, Y = documents(labels)
    quick = {**SMALL, "epochs": 12, "learning_rate": 0.2}
    model = Treespace.from_preset(preset, **{**quick, "level_weight": [1, 2, 3]}).fit(X, Y, labels=labels)
    assert Y[np.arange(160), model.predict_topk(X, 1).labels[:, 0]].mean() > 0.9
    off = {key: Treespace.params[key].default for key in ("consistency_weight", "weight_decay", "dimension_penalty")}
    for without in ({"level_weight": 1.0}, {"projection_rank": 1}, *({key: value} for key, value in off.items())):
        params = {**quick, "level_weight": [1, 2, 3], **without}
        other = Treespace.from_preset(preset, **params).fit(X, Y, labels=labels)
        assert not same_nodes(other, model), f"{without} has no effect"


def test_level_weights_are_as_many_as_the_levels():
    same, each = fitted(level_weight=0.5)[0], fitted(level_weight=[1, 0.5, 0.25])[0]
    assert same_nodes(same, each)
    with pytest.raises(ParameterError, match="one number or 3, one for each level of the hierarchy, but has 2; "):
        fitted(level_weight="1,0.5")


def test_the_dimension_penalty_empties_coordinates():
    plain, sparse = fitted()[0], fitted(dimension_penalty=0.1)
    assert plain.report()["effective_dimensions"] == plain.report()["dimensions"] == [4, 6, 8]
    model, X, Y = sparse
    used = model.report()["effective_dimensions"]
    assert all(0 < few < all_ for few, all_ in zip(used, [4, 6, 8], strict=True))
    assert Y[np.arange(160), model.predict_topk(X, 1).labels[:, 0]].mean() > 0.9


@pytest.mark.parametrize("normalize", [True, False])
def test_documents_are_normalized_or_used_as_given(normalize):
    labels = space(TREE, 8)
    X, Y = documents(labels)
    scaled = sp.csr_matrix(X.multiply(np.linspace(0.5, 2, 160)[:, None]), dtype=np.float32)
    model, other = (Treespace().set_params(**SMALL, normalize=normalize).fit(x, Y, labels=labels) for x in (X, scaled))
    maps, other_maps = model.estimators_[0].level_maps, other.estimators_[0].level_maps
    assert np.allclose(maps, other_maps, atol=1e-3) == normalize
    scores = [model.predict_topk(x, 3).scores for x in (X, scaled)]
    assert np.allclose(*scores, atol=1e-3) == normalize


def test_documents_without_the_ancestors_get_the_labels_they_carry():
    model, X, Y = fitted(closed=False)
    top = model.predict_topk(X, 1)
    firsts = {label: top.labels[Y[:, label].nonzero()[0], 0] for label in range(8)}
    assert all((first == label).mean() > 0.8 for label, first in firsts.items()), "inner labels and leaves alike"
    nodes = model.label_trees()[0]
    assert sorted(nodes.label[nodes.label >= 0]) == list(range(8))
    assert (nodes.last_child[nodes.label >= 0] == 0).all()


def test_a_hierarchy_may_be_learned_or_must_be_given():
    model, X, _ = fitted(hierarchy="learned")
    assert not model.report()["hierarchy_is_given"]
    assert not model.is_closed_
    alone = Treespace().set_params(**SMALL)
    plain, Y = documents(space(TREE, 8))
    assert not alone.fit(plain, Y).uses_given_hierarchy_
    for labels in (None, LabelSpace.numbered(8)):
        with pytest.raises(DataError, match=r"hierarchy='given' needs a hierarchy.*; put a hierarchy.tsv") as error:
            Treespace().set_params(hierarchy="given", **SMALL).fit(X, Y, labels=labels)
        assert "\n" not in str(error.value)
    assert Treespace().set_params(hierarchy="given", **SMALL).fit(plain, Y, labels=space(TREE, 8)).uses_given_hierarchy_


def test_a_learned_tree_has_levels(monkeypatch):
    monkeypatch.setattr("labelspace.models.treespace.model.MAX_LEAF", 2)
    labels = space([], 8)
    X, Y = documents(labels)
    model = Treespace().set_params(
        **{**SMALL, "hierarchy": "learned", "branching_factor": 2, "epochs": 12, "learning_rate": 0.2}
    )
    model.fit(X, Y, labels=labels)
    assert model.report()["levels"] == 3
    assert model.report()["dimensions"] == [4, 6, 8]
    assert model.report()["nodes"] == len(model.label_trees()[0]) - 1 == 14
    assert Y[np.arange(160), model.predict_topk(X, 1).labels[:, 0]].mean() > 0.9


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("hierarchy", ["auto", "learned"])
def test_labels_without_documents_are_never_suggested(closed, hierarchy):
    labels = space(TREE, 8)
    X, Y = documents(labels, closed=closed)
    others = Y[:, 3].toarray()[:, 0] + Y[:, 7].toarray()[:, 0] == 0
    X, Y = X[others], Y[others]
    model = Treespace().set_params(**{**SMALL, "hierarchy": hierarchy}).fit(X, Y, labels=labels)
    top = model.predict_topk(X, 100)
    assert top.labels.shape == (X.shape[0], 100)
    assert set(top.labels.ravel().tolist()) == {-1, 0, 1, 2, 4, 5, 6}


@pytest.mark.parametrize("ball", [False, True])
def test_one_label_and_one_document(ball):
    params = {**SMALL, "space": "poincare" if ball else "euclidean"}
    for labels in (None, space([], 1)):
        top = (
            Treespace()
            .set_params(**params)
            .fit(np.eye(2), np.array([[1], [0]]), labels=labels)
            .predict_topk(np.eye(2), 3)
        )
        assert top.labels.tolist() == [[0, -1, -1]] * 2
    alone = Treespace().set_params(**params).fit(np.ones((1, 2)), np.array([[1, 1, 0]]), labels=space([[1, 0]], 3))
    assert alone.predict_topk(np.ones((1, 2)), 2).labels.tolist() == [[0, 1]]


def test_a_tree_of_one_level_has_the_full_dimension():
    labels = space([], 4)
    X, Y = documents(labels, n=30)
    assert Treespace().set_params(**SMALL).fit(X, Y, labels=labels).report()["dimensions"] == [8]


def test_documents_without_labels_lower_probabilities():
    labels = space(TREE, 8)
    X, Y = documents(labels)
    bare = sp.csr_matrix((200, 12), dtype=np.float32)
    more = sp.vstack([X, bare + sp.csr_matrix((np.ones(200), (range(200), [11] * 200)), (200, 12))]).tocsr()
    params = {**SMALL, "epochs": 6, "learning_rate": 0.2}
    model = Treespace().set_params(**params).fit(more, sp.vstack([Y, sp.csr_matrix((200, 8))]), labels=labels)
    nothing = np.eye(12)[[11]]
    before = Treespace().set_params(**params).fit(X, Y, labels=labels).predict_topk(nothing, 1).scores
    assert model.predict_topk(nothing, 1).scores < 0.5 * before


def test_label_texts_with_features_are_trained_on():
    """A label whose documents have noise for features is learned from its name alone."""
    labels = space([], 4)
    X, Y = documents(labels, n=120)
    X = X.toarray()
    X[:, 3] = 0  # documents of label 3 have noise
    names = np.zeros((4, 8), np.float32)
    names[3, 3] = names[0, 0] = 1
    params = {**SMALL, "epochs": 12, "learning_rate": 0.2, "feature_learning_rate": 0.3}
    query = np.eye(8)[[3]]
    with_texts = Treespace().set_params(**params, label_text=4.0).fit(X, Y, labels=labels, label_features=names)
    weight_0 = Treespace().set_params(**params, label_text=0.0).fit(X, Y, labels=labels, label_features=names)
    without = Treespace().set_params(**params, label_text=4.0).fit(X, Y, labels=labels)
    assert with_texts.predict_topk(query, 1).labels[0, 0] == 3
    assert same_topk(weight_0.predict_topk(X, 4), without.predict_topk(X, 4))
    empty = Treespace().set_params(**params, label_text=4.0).fit(X, Y, labels=labels, label_features=np.zeros((4, 8)))
    assert same_topk(empty.predict_topk(X, 4), without.predict_topk(X, 4))
    assert with_texts.label_counts_.tolist() == np.bincount(Y.indices, minlength=4).tolist()


@pytest.mark.parametrize("n_estimators", [1, 2])
def test_rare_boost_ranks_rare_labels_higher(n_estimators):
    labels = space(TREE, 8)
    X, Y = documents(labels)
    plain = (
        Treespace()
        .set_params(**{**SMALL, "n_estimators": n_estimators, "hierarchy": "learned"})
        .fit(X, Y, labels=labels)
    )
    top, counts = plain.predict_topk(X, 8), plain.label_counts_
    plain.rare_boost = 0.7
    boosted = plain.predict_topk(X, 8)
    expected = np.take_along_axis(top.scores, np.argsort(top.labels, 1), 1) * (1 / counts[None, :]) ** 0.7
    assert np.array_equal(boosted.labels, np.argsort(-expected, axis=1, kind="stable"))
    assert np.allclose(boosted.scores, -np.sort(-expected, axis=1), rtol=1e-5)
    assert not np.array_equal(boosted.labels, top.labels)
    for rare_boost in (30, 1000):
        plain.rare_boost = rare_boost
        extreme = plain.predict_topk(X, 8)
        assert np.isfinite(extreme.scores).all()
        assert (counts[extreme.labels[:, 0]] == counts.min()).all() or rare_boost == 1000


def test_the_score_is_the_mean_of_the_learners():
    model, X, _ = fitted(edges=[], n_estimators=3)
    first, second, _ = estimators = model.estimators_
    assert not np.array_equal(first.node_embeddings, second.node_embeddings)

    def by_label(top):
        return np.take_along_axis(top.scores, np.argsort(top.labels, 1), 1)

    mean, single = by_label(model.predict_topk(X, 8)), []
    for estimator in estimators:
        model.estimators_ = [estimator]
        single.append(by_label(model.predict_topk(X, 8)))
    assert np.allclose(mean, np.mean(single, axis=0), atol=1e-5)


@pytest.mark.parametrize("ball", [False, True])
def test_same_seed_same_bytes_with_every_loss_whatever_the_threads(ball, tmp_path, monkeypatch):
    params = {"space": "poincare" if ball else "euclidean", "consistency_weight": 0.1, "weight_decay": 0.001}
    for threads in ("1", "2"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        model, X, _ = fitted(DAG, **params, n_estimators=2)
        model.save(tmp_path / threads)
    assert digest(tmp_path / "1") == digest(tmp_path / "2")
    top = model.predict_topk(X, 8)
    assert same_topk(Treespace.load(tmp_path / "1").predict_topk(X, 8), top)
    for row in (0, 63, 64, 159):
        single = model.predict_topk(X[row : row + 1], 8)
        assert np.array_equal(single.labels[0], top.labels[row])
        assert np.array_equal(single.scores[0], top.scores[row])
    other, _, _ = fitted(DAG, **params, n_estimators=2, random_state=1)
    assert not same_topk(other.predict_topk(X, 8), top)


def test_a_new_fit_forgets_what_was_derived_from_the_first():
    model, X, _ = fitted(space="poincare")
    model.predict_topk(X, 3)
    labels = space(DAG, 8)
    X, Y = documents(labels, seed=3)
    fresh = Treespace(**model.get_params()).fit(X, Y, labels=labels)
    assert same_topk(model.fit(X, Y, labels=labels).predict_topk(X, 3), fresh.predict_topk(X, 3))


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("n_estimators", [1, 2])
def test_k_only_cuts_the_list_even_where_probabilities_round_to_the_same_topk(closed, n_estimators):
    model, X, _ = fitted(closed=closed, n_estimators=n_estimators)
    for bias in (40.0, -150.0):  # probabilities that round to 1, and to 0 in float32
        for net in model.estimators_:
            net.node_bias[:] = bias + np.linspace(0, 1e-3, len(net.node_bias), dtype=np.float32)
        full = model.predict_topk(X, 8)
        assert (np.sort(full.labels, axis=1) == np.arange(8)).all()
        for k in range(1, 8):
            cut = model.predict_topk(X, k)
            assert np.array_equal(cut.labels, full.labels[:, :k])
            assert np.array_equal(cut.scores, full.scores[:, :k])


def test_a_label_starts_at_its_share_of_the_documents_on_its_parents_path():
    model, _, Y = fitted(learning_rate=1e-9)
    (nodes,), counts = model.label_trees(), np.bincount(Y.indices, minlength=8)
    for node in range(1, len(nodes)):
        parent = nodes.label[nodes.parent[node]]
        n = counts[parent] if parent >= 0 else Y.shape[0]
        share = min((counts[nodes.label[node]] + 0.5) / (n + 1), 0.999)
        expected = np.log(share / (1 - share))
        assert model.estimators_[0].node_bias[node] == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {"consistency_weight": 0.3},
        {"weight_decay": 0.05},
        {"level_weight": 3.0},
        {"projection_rank": 2},
        {"root_dim": 8},
    ],
)
def test_every_part_of_the_loss_changes_the_model(change):
    one, other = (fitted(**params)[0].estimators_[0].node_embeddings for params in ({}, change))
    assert np.array_equal(one, other) == (change == {"projection_rank": 2}), "without the loss nothing is projected"


def test_the_consistency_loss_draws_children_to_their_parents():
    """With one dimension for all levels, a large weight leaves children near their parent."""
    distances = []
    for weight in (0.0, 20.0):
        model, _, _ = fitted(root_dim=8, consistency_weight=weight)
        (net,), parent = model.estimators_, model.label_trees()[0].parent
        embeddings = net.node_embeddings.reshape(-1, 8) * net.node_scales[1:, None]
        below = np.flatnonzero(parent > 0)
        distances.append(np.linalg.norm(embeddings[below - 1] - embeddings[parent[below] - 1], axis=1).mean())
    assert distances[1] < 0.5 * distances[0]


def test_labels_at_inner_nodes_are_shown_in_every_form():
    model, _, _ = fitted()
    (nodes,) = model.label_trees()
    labels = model.labels_
    rows = tree_json(nodes, labels)
    assert {row["label"] for row in rows if "label" in row} == set(labels.names)
    newick = tree_newick(nodes, labels)
    assert newick == "((('label 3','label 4')'label 1','label 2')'label 0',('label 6')'label 5','label 7');"
    drawn = tree_text(nodes, labels, depth=5).splitlines()
    assert drawn[1:] == [
        "├─ label 0", "│  ├─ label 1", "│  │  ├─ label 3", "│  │  └─ label 4", "│  └─ label 2", "├─ label 5",
        "│  └─ label 6", "└─ label 7",
    ]  # fmt: skip
    assert "│  └─ … 4 more labels" in tree_text(nodes, labels, depth=1)


def test_on_the_command_line(run, hierarchy_folder, data):
    small = [part for name, value in SMALL.items() for part in ("--set", f"{name}={value}")]
    code, _, err = run(
        "train", hierarchy_folder, "--method", "treespace", "--out", "model", *small, "--set", "epochs=8"
    )
    assert code == 0, err
    code, out, err = run("evaluate", "model", hierarchy_folder, "--json")
    assert code == 0, err
    assert json.loads(out)["P@1"] > 40
    code, out, _ = run("predict", "model", data[1].texts[0], "--k", "3", "--json")
    assert code == 0
    assert len(json.loads(out)["results"][0]["labels"]) == 3
    for form in ("text", "newick", "json"):
        code, out, err = run("tree", "model", "--format", form)
        assert code == 0, err
        assert out
    for setting in ("space=sphere", "beam_size=0", "nothing=1", "hierarchy=mine"):
        code, _, err = run("train", hierarchy_folder, "--method", "treespace", "--out", "other", "--set", setting)
        assert code == 2
        assert err.count("\n") == 1
    (hierarchy_folder / "hierarchy.tsv").unlink()
    code, _, err = run("train", hierarchy_folder, "--method", "treespace", "--out", "other", "--set", "hierarchy=given")
    assert code == 2
    assert err.splitlines()[-1].startswith("error: hierarchy='given' needs a hierarchy")
    assert not Path("other").exists()


def test_the_command_line_warns_of_a_chain_and_names_the_remedy(run):
    labels = space([[i + 1, i] for i in range(39)], 40)
    X, Y = documents(labels, n=60)
    Treespace().set_params(**SMALL).fit(X, Y, labels=labels).save("chain")
    code, out, _ = run("tree", "chain")
    assert code == 0
    assert out.splitlines()[1].endswith("train with --set hierarchy=learned")


@pytest.mark.parametrize("given", [[1, 0.5, 0.25], "1,0.5,0.25", "1, .5, 25e-2", 0.5, "0.5", [0.5]])
def test_one_number_is_relative_and_several_are_the_weights(given):
    assert level_weights(given, 3).tolist() == [1, 0.5, 0.25]


@pytest.mark.parametrize("given", [[1, 2], "1,2,3,4"])
def test_another_number_of_weights_than_levels_is_an_error_that_says_the_levels(given):
    with pytest.raises(ParameterError, match=r"one number or 3, one for each level .* but has [24]; "):
        level_weights(given, 3)


@pytest.mark.parametrize("given", [0, -1, "", "a", "1,,2", "1,0", [], [1, 0], [1, "2"], [[1]], None, True, "nan"])
def test_anything_but_numbers_above_0_is_refused(given):
    with pytest.raises(ParameterError, match="level_weight of treespace must be a number above 0, or one for each"):
        Treespace(level_weight=given).check_params()
