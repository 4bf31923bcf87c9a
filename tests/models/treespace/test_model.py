"""What treespace promises beyond every model's contract: answers that agree with trees and DAGs, and what it reads."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import labelspace
from labelspace import create
from labelspace.errors import DataError, ParameterError
from labelspace.report.tree import tree_json, tree_newick, tree_text
from labelspace.types import Hierarchy, LabelSpace

SMALL = {"hidden": 16, "root_dimension": 4, "dimension": 8, "learners": 1, "epochs": 1, "batch": 8}
TREE = [[1, 0], [2, 0], [3, 1], [4, 1], [6, 5]]  # 0 over 1 and 2, 1 over 3 and 4, 5 over 6; 7 stands alone
DAG = [*TREE, [4, 2], [6, 2]]


def space(edges, n_labels):
    names = [f"label {i}" for i in range(n_labels)]
    return LabelSpace(names, hierarchy=Hierarchy.from_edges(np.array(edges).reshape(-1, 2), n_labels))


def documents(labels, n=160, closed=True, seed=0, at_most=1):
    """Documents that show a feature for each of their own labels; the labels above are added where asked for."""
    rng, n_labels = np.random.default_rng(seed), len(labels)
    own = np.zeros((n, n_labels), np.float32)
    for row in range(n):
        own[row, rng.choice(n_labels, rng.integers(1, at_most + 1), replace=False)] = 1
    X = np.hstack([own, rng.random((n, 4)) * 0.2]).astype(np.float32)
    Y = labels.hierarchy.closed(sp.csr_matrix(own)) if closed else sp.csr_matrix(own)
    return sp.csr_matrix(X), Y


def is_consistent(top, hierarchy):
    """Whether each label's ancestors stand before it in every row."""
    above = hierarchy.ancestors
    return all(
        set(above[label].indices.tolist()) <= set(row[:place].tolist())
        for row in top.labels
        for place, label in enumerate(row)
        if label >= 0
    )


def same(one, other):
    return np.array_equal(one.labels, other.labels) and np.array_equal(one.scores, other.scores)


def taught(edges=TREE, closed=True, n_labels=8, **params):
    """A model that has learned planted documents, and these."""
    labels = space(edges, n_labels)
    X, Y = documents(labels, closed=closed)
    return create("treespace", **{**SMALL, "epochs": 12, "rate": 0.2, **params}).fit(X, Y, labels=labels), X, Y


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 9))
    edges = [(c, p) for c in range(1, n) for p in draw(st.sets(st.integers(0, c - 1), max_size=3))]
    return space(edges, n)


@settings(max_examples=25)
@given(graphs(), st.integers(0, 99), st.integers(1, 2), st.booleans(), st.integers(1, 3))
def test_answers_agree_with_every_hierarchy(labels, seed, learners, ball, beam):
    X, Y = documents(labels, n=20, seed=seed, at_most=min(2, len(labels)))
    how = {"learners": learners, "space": "poincare" if ball else "euclidean", "beam": beam, "seed": seed}
    model = create("treespace", **{**SMALL, **how}).fit(X, Y, labels=labels)
    assert model.is_closed_
    for k in (1, 3, len(labels)):
        assert is_consistent(model.predict_topk(X, k), labels.hierarchy)
    top = model.predict_topk(X, len(labels))
    assert (top.scores[:, 1:] <= top.scores[:, :-1]).all()
    assert set(top.labels[top.labels >= 0].tolist()) <= set(Y.indices.tolist())


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("edges", [TREE, DAG])
def test_planted_labels_are_found(ball, closed, edges):
    model, X, Y = taught(edges, closed, space="poincare" if ball else "euclidean")
    sizes = np.diff(Y.indptr)
    top = model.predict_topk(X, 8)
    right = [
        len(set(row[:size]) & set(own.indices)) / size for row, size, own in zip(top.labels, sizes, Y, strict=True)
    ]
    assert np.mean(right) > 0.9
    assert model.is_closed_ == closed
    assert model.report()["documents_carry_labels_above"] == closed
    assert model.report()["hierarchy_is_given"]
    assert model.report()["dimensions"] == [4, 6, 8]


def test_documents_without_the_labels_above_get_what_they_carry():
    model, X, Y = taught(closed=False)
    top = model.predict_topk(X, 1)
    firsts = {label: top.labels[Y[:, label].nonzero()[0], 0] for label in range(8)}
    assert all((found == label).mean() > 0.8 for label, found in firsts.items()), "inner labels and leaves alike"
    nodes = model.label_trees()[0]
    assert sorted(nodes.label[nodes.label >= 0]) == list(range(8))
    assert (nodes.last_child[nodes.label >= 0] == 0).all()


def test_a_hierarchy_may_be_learned_or_must_be_given():
    model, X, _ = taught(hierarchy="learned")
    assert not model.report()["hierarchy_is_given"]
    assert not model.is_closed_
    alone = create("treespace", **SMALL)
    plain, Y = documents(space(TREE, 8))
    assert not alone.fit(plain, Y).is_given_
    for labels in (None, LabelSpace.numbered(8)):
        with pytest.raises(DataError, match=r"hierarchy='given' needs a hierarchy.*; put a hierarchy.tsv") as error:
            create("treespace", hierarchy="given", **SMALL).fit(X, Y, labels=labels)
        assert "\n" not in str(error.value)
    assert create("treespace", hierarchy="given", **SMALL).fit(plain, Y, labels=space(TREE, 8)).is_given_


def test_a_learned_tree_has_levels(monkeypatch):
    monkeypatch.setattr("labelspace.models.treespace.model.LEAF", 2)
    labels = space([], 8)
    X, Y = documents(labels)
    model = create("treespace", **{**SMALL, "hierarchy": "learned", "branching": 2, "epochs": 12, "rate": 0.2})
    model.fit(X, Y, labels=labels)
    assert model.report()["levels"] == 3
    assert model.report()["dimensions"] == [4, 6, 8]
    assert model.report()["nodes"] == len(model.label_trees()[0]) - 1 == 14
    assert Y[np.arange(160), model.predict_topk(X, 1).labels[:, 0]].mean() > 0.9


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("how", ["auto", "learned"])
def test_labels_without_documents_are_never_suggested(closed, how):
    labels = space(TREE, 8)
    X, Y = documents(labels, closed=closed)
    kept = Y[:, 3].toarray()[:, 0] + Y[:, 7].toarray()[:, 0] == 0
    X, Y = X[kept], Y[kept]
    model = create("treespace", **{**SMALL, "hierarchy": how}).fit(X, Y, labels=labels)
    top = model.predict_topk(X, 100)
    assert top.labels.shape == (X.shape[0], 100)
    assert set(top.labels.ravel().tolist()) == {-1, 0, 1, 2, 4, 5, 6}


@pytest.mark.parametrize("ball", [False, True])
def test_one_label_and_one_document(ball):
    how = {**SMALL, "space": "poincare" if ball else "euclidean"}
    for labels in (None, space([], 1)):
        top = create("treespace", **how).fit(np.eye(2), np.array([[1], [0]]), labels=labels).predict_topk(np.eye(2), 3)
        assert top.labels.tolist() == [[0, -1, -1]] * 2
    alone = create("treespace", **how).fit(np.ones((1, 2)), np.array([[1, 1, 0]]), labels=space([[1, 0]], 3))
    assert alone.predict_topk(np.ones((1, 2)), 2).labels.tolist() == [[0, 1]]


def test_a_tree_of_one_level_has_the_full_dimension():
    labels = space([], 4)
    X, Y = documents(labels, n=30)
    assert create("treespace", **SMALL).fit(X, Y, labels=labels).report()["dimensions"] == [8]


def test_documents_without_labels_lower_chances():
    labels = space(TREE, 8)
    X, Y = documents(labels)
    bare = sp.csr_matrix((200, 12), dtype=np.float32)
    more = sp.vstack([X, bare + sp.csr_matrix((np.ones(200), (range(200), [11] * 200)), (200, 12))]).tocsr()
    how = {**SMALL, "epochs": 6, "rate": 0.2}
    model = create("treespace", **how).fit(more, sp.vstack([Y, sp.csr_matrix((200, 8))]), labels=labels)
    nothing = np.eye(12)[[11]]
    before = create("treespace", **how).fit(X, Y, labels=labels).predict_topk(nothing, 1).scores
    assert model.predict_topk(nothing, 1).scores < 0.5 * before


def test_names_are_learned_from_where_they_have_features():
    """A label whose documents show nothing is known by its name alone."""
    labels = space([], 4)
    X, Y = documents(labels, n=120)
    X = X.toarray()
    X[:, 3] = 0  # documents of label 3 show noise
    names = np.zeros((4, 8), np.float32)
    names[3, 3] = names[0, 0] = 1
    how = {**SMALL, "epochs": 12, "rate": 0.2, "feature_rate": 0.3}
    asked = np.eye(8)[[3]]
    read = create("treespace", **how, label_text=4.0).fit(X, Y, labels=labels, label_features=names)
    blind = create("treespace", **how, label_text=0.0).fit(X, Y, labels=labels, label_features=names)
    without = create("treespace", **how, label_text=4.0).fit(X, Y, labels=labels)
    assert read.predict_topk(asked, 1).labels[0, 0] == 3
    assert same(blind.predict_topk(X, 4), without.predict_topk(X, 4))
    empty = create("treespace", **how, label_text=4.0).fit(X, Y, labels=labels, label_features=np.zeros((4, 8)))
    assert same(empty.predict_topk(X, 4), without.predict_topk(X, 4))
    assert read.counts_.tolist() == np.bincount(Y.indices, minlength=4).tolist()


@pytest.mark.parametrize("learners", [1, 2])
def test_rare_labels_go_first_where_asked_for(learners):
    labels = space(TREE, 8)
    X, Y = documents(labels)
    plain = create("treespace", **{**SMALL, "learners": learners, "hierarchy": "learned"}).fit(X, Y, labels=labels)
    top, counts = plain.predict_topk(X, 8), plain.counts_
    plain.rare = 0.7
    found = plain.predict_topk(X, 8)
    want = np.take_along_axis(top.scores, np.argsort(top.labels, 1), 1) * (1 / counts[None, :]) ** 0.7
    assert np.array_equal(found.labels, np.argsort(-want, axis=1, kind="stable"))
    assert np.allclose(found.scores, -np.sort(-want, axis=1), rtol=1e-5)
    assert not np.array_equal(found.labels, top.labels)
    for rare in (30, 1000):
        plain.rare = rare
        extreme = plain.predict_topk(X, 8)
        assert np.isfinite(extreme.scores).all()
        assert (counts[extreme.labels[:, 0]] == counts.min()).all() or rare == 1000


def test_the_score_is_the_mean_of_the_learners():
    model, X, _ = taught(edges=[], learners=3)
    assert not np.array_equal(model.vectors_[0], model.vectors_[1])
    whole = model.predict_topk(X, 8)
    lists = []
    for learner in range(3):
        one = create("treespace", **{**model.get_params(), "learners": 1})
        one.__dict__.update(
            {name: getattr(model, name) for name in (*model.state, "n_features_", "n_labels_", "labels_")}
        )
        for name in "features_ feature_scales_ offset_ maps_ vectors_ vector_scales_ bias_".split():
            setattr(one, name, getattr(model, name)[learner : learner + 1])
        top = one.predict_topk(X, 8)
        lists.append(np.take_along_axis(top.scores, np.argsort(top.labels, 1), 1))
    by_label = np.take_along_axis(whole.scores, np.argsort(whole.labels, 1), 1)
    assert np.allclose(by_label, np.mean(lists, axis=0), atol=1e-5)


@pytest.mark.parametrize("ball", [False, True])
def test_same_seed_same_bytes_whatever_the_threads_and_as_saved(ball, tmp_path, monkeypatch):
    how = {"space": "poincare" if ball else "euclidean", "learners": 2, "consistency": 0.1, "decay": 0.001}
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        model, X, _ = taught(DAG, **how)
        found.append(model)
    one, two = found
    for name in one.state:
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    top = one.predict_topk(X, 8)
    assert same(top, two.predict_topk(X, 8))
    for row in (0, 63, 64, 159):
        single = one.predict_topk(X[row : row + 1], 8)
        assert np.array_equal(single.labels[0], top.labels[row])
        assert np.array_equal(single.scores[0], top.scores[row])
    one.save(tmp_path / "model")
    assert same(labelspace.load(tmp_path / "model").predict_topk(X, 8), top)
    other, _, _ = taught(DAG, **how, seed=1)
    assert not same(other.predict_topk(X, 8), top)


def test_the_ball_is_searched_with_the_lengths_of_the_nodes():
    model, _, _ = taught(space="poincare", learners=2)
    ready = model._ready()
    for learner in range(2):
        ends = (ready.shape.offset + ready.shape.width)[1:-1]
        for node, vector in enumerate(np.split(model.vectors_[learner].astype(np.float64), ends), start=1):
            length = np.linalg.norm(vector) * model.vector_scales_[learner, node]
            assert ready.lengths[learner, node] == pytest.approx(length, rel=1e-4)


def test_a_new_training_is_searched_anew():
    model, X, _ = taught()
    model.predict_topk(X, 3)
    labels = space(DAG, 8)
    fresh, Y = documents(labels, seed=3)
    again = create("treespace", **model.get_params()).fit(fresh, Y, labels=labels)
    assert same(model.fit(fresh, Y, labels=labels).predict_topk(X, 3), again.predict_topk(X, 3))


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("learners", [1, 2])
def test_k_only_cuts_the_list_even_where_chances_round_to_the_same(closed, learners):
    model, X, _ = taught(closed=closed, learners=learners)
    for bias in (40.0, -150.0):  # chances of 1, and of nothing that a float32 can hold
        model.bias_[:] = bias + np.linspace(0, 1e-3, model.bias_.shape[1], dtype=np.float32)
        whole = model.predict_topk(X, 8)
        assert (np.sort(whole.labels, axis=1) == np.arange(8)).all()
        for k in range(1, 8):
            cut = model.predict_topk(X, k)
            assert np.array_equal(cut.labels, whole.labels[:, :k])
            assert np.array_equal(cut.scores, whole.scores[:, :k])


def test_a_label_begins_at_its_share_of_the_documents_that_pass_its_parent():
    model, _, Y = taught(rate=1e-9)
    (nodes,), counts = model.label_trees(), np.bincount(Y.indices, minlength=8)
    for node in range(1, len(nodes)):
        above = nodes.label[nodes.parent[node]]
        passing = counts[above] if above >= 0 else Y.shape[0]
        chance = min((counts[nodes.label[node]] + 0.5) / (passing + 1), 0.999)
        assert model.bias_[0, node] == pytest.approx(np.log(chance / (1 - chance)), rel=1e-4, abs=1e-5)


def test_every_part_of_the_loss_changes_what_is_learned():
    base, X, _ = taught()
    for change in ({"consistency": 0.3}, {"decay": 0.05}, {"level_weight": 3.0}, {"rank": 2}, {"root_dimension": 8}):
        other, _, _ = taught(**change)
        moved = other.vectors_.shape != base.vectors_.shape or not np.array_equal(other.vectors_, base.vectors_)
        assert moved == (change != {"rank": 2}), "without a pull nothing is projected"


def test_the_pull_brings_children_to_their_parents():
    """With one width for all levels, a strong pull leaves children near where their parent is."""
    far = []
    for consistency in (0.0, 20.0):
        model, _, _ = taught(root_dimension=8, consistency=consistency)
        vectors = model.vectors_.reshape(-1, 8) * model.vector_scales_[0, 1:, None]
        parent = model.label_trees()[0].parent
        below = np.flatnonzero(parent > 0)
        far.append(np.linalg.norm(vectors[below - 1] - vectors[parent[below] - 1], axis=1).mean())
    assert far[1] < 0.5 * far[0]


def test_labels_at_inner_nodes_are_shown_in_every_form():
    model, _, _ = taught()
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


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"space": "sphere"}, "space"),
        ({"hierarchy": "none"}, "hierarchy"),
        ({"beam": 0}, "beam"),
        ({"dropout": 1.0}, "dropout"),
        ({"branching": 1}, "branching"),
        ({"level_weight": 0}, "level_weight"),
        ({"rare": -1}, "rare"),
        ({"dimension": 1.5}, "dimension"),
    ],
)
def test_bad_settings_are_told_in_one_line(params, message):
    with pytest.raises(ParameterError, match=f"^{message} of treespace must be .*, but is .*; ") as error:
        create("treespace", **params).fit(np.eye(2), np.eye(2))
    assert "\n" not in str(error.value)


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
    for setting in ("space=sphere", "beam=0", "nothing=1", "hierarchy=mine"):
        code, _, err = run("train", hierarchy_folder, "--method", "treespace", "--out", "other", "--set", setting)
        assert code == 2
        assert err.count("\n") == 1
    (hierarchy_folder / "hierarchy.tsv").unlink()
    code, _, err = run("train", hierarchy_folder, "--method", "treespace", "--out", "other", "--set", "hierarchy=given")
    assert code == 2
    assert err.splitlines()[-1].startswith("error: hierarchy='given' needs a hierarchy")
    assert not Path("other").exists()


def test_a_chain_is_told_the_setting_that_helps(run):
    labels = space([[i + 1, i] for i in range(39)], 40)
    X, Y = documents(labels, n=60)
    create("treespace", **SMALL).fit(X, Y, labels=labels).save("chain")
    code, out, _ = run("tree", "chain")
    assert code == 0
    assert out.splitlines()[1].endswith("train with --set hierarchy=learned")
