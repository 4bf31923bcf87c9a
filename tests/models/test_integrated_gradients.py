"""Shares in closed form against numerical integration of gradients, on dense twins of the models in float64."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.models.evidence import gauss_legendre, logit
from labelspace.models.glas import Glas
from labelspace.models.label_tree import LabelTree
from labelspace.models.network import Network
from labelspace.models.poincare import Poincare, explanations
from labelspace.models.poincare.geometry import Euclidean, PoincareBall
from labelspace.models.treespace import Treespace
from labelspace.models.treespace.kernels import hyperbolic_product
from labelspace.types import LabelSpace

STEP = 1e-5
MIDPOINTS = (np.arange(2000) + 0.5) / 2000, np.full(2000, 1 / 2000)


@pytest.fixture(scope="module")
def few():
    whole = planted(n=160, d=60, l=8, seed=3)
    return whole.X[:150], whole.Y[:150], whole.X[150:]


def integrated_gradients(F, x, points=MIDPOINTS):
    """x_f times the integral of dF/dx_f along the line from 0 to x, for the features that x has; F takes rows."""
    at, weights = points
    out, line = np.zeros(len(x)), at[:, None] * x
    for f in np.flatnonzero(x):
        step = np.zeros(len(x))
        step[f] = STEP
        out[f] = x[f] * weights @ (F(line + step) - F(line - step)) / (2 * STEP)
    return out


def shares(evidence, n):
    """The shares of all columns, as one row."""
    (part,) = evidence.columns.values()
    return np.bincount(part.columns, part.shares, n)


def explain(model, X, row, label):
    given = sp.csr_matrix(X[row])
    read = model.read({name: given for name in [model.view.name, *model.widths_]})
    return model.explain(read, np.array([label], np.int32))[0], given.toarray()[0].astype(np.float64)


def dense(values, scales):
    return values * scales[:, None].astype(np.float64)


def test_network(few):
    X, Y, asked = few
    model = Network(hidden_dim=16, normalize=False).fit(X, Y)
    E, W = dense(model.feature_embeddings_, model.feature_scales_), dense(model.output_weights_.T, model.output_scales_)
    for row, label in [(0, 0), (1, 3), (2, 7)]:
        evidence, x = explain(model, asked, row, label)

        def z(rows, label=label):
            return np.maximum(rows @ E + model.hidden_bias_, 0) @ W[label] + model.output_bias_[label]

        assert evidence.log_odds == pytest.approx(z(x))
        assert evidence.baseline == pytest.approx(z(0 * x))
        np.testing.assert_allclose(shares(evidence, len(x)), integrated_gradients(z, x), atol=2e-3)


def tree_paths(model, label):
    """The nodes of each path to a label."""
    for leaf in np.flatnonzero(model.label_ == label):
        nodes = []
        while model.parents_[leaf] >= 0:
            nodes.append(leaf)
            leaf = model.parents_[leaf]
        yield nodes


@pytest.mark.parametrize("params", [{}, {"n_estimators": 3}, {"loss": "logistic", "n_estimators": 2}])
def test_label_tree(few, params):
    X, Y, asked = few
    model = LabelTree(normalize=False, branching_factor=2, max_leaf_size=2, **params).fit(X, Y)
    W = sp.csr_matrix((model.values_, model.nodes_, model.starts_), shape=(X.shape[1], len(model.label_)))
    W = dense(W.toarray(), model.scales_)
    evidence, x = explain(model, asked, 1, 2)

    def log_p(rows, nodes):
        z = rows @ W[:, nodes] + model.bias_[nodes]
        if model.power_of_gap:
            return -((np.logaddexp(0, 2 - 2 * z) / 2) ** model.power_of_gap).sum(axis=1)
        return -np.logaddexp(0, -z).sum(axis=1)

    paths, n = list(tree_paths(model, 2)), len(model.roots_)
    assert len(paths) == n
    after, before = (np.exp([log_p(row[None], nodes)[0] for nodes in paths]) / n for row in (x, 0 * x))
    assert evidence.log_odds == pytest.approx(logit(after.sum()), abs=1e-4)
    assert evidence.baseline == pytest.approx(logit(before.sum()), abs=1e-4)
    outer = (logit(after.sum()) - logit(before.sum())) / (after.sum() - before.sum())
    inner = (after - before) / np.log(after / before)
    by_tree = [integrated_gradients(lambda rows, nodes=nodes: log_p(rows, nodes), x) for nodes in paths]
    np.testing.assert_allclose(shares(evidence, len(x)), outer * inner @ by_tree, atol=1e-4)
    assert len(evidence.path) == sum(map(len, paths))
    assert evidence.path[-1].labels.tolist() == [2]


def glas_output(encoder, rows):
    """h: the encoder before normalization."""
    dim = len(encoder.hidden_bias)
    out = rows @ dense(encoder.feature_embeddings, encoder.feature_scales) + encoder.hidden_bias
    for layer in range(max(len(encoder.dense_weights) // dim, 1)):
        out = np.maximum(out, 0) if encoder.relu else out
        if len(encoder.dense_weights):
            part = slice(layer * dim, (layer + 1) * dim)
            out = out @ encoder.dense_weights[part].astype(np.float64) + encoder.dense_bias[part]
    return out


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"hidden_bias": False},
        {"activation": "linear", "loss": "softmax"},
        {"normalize_document_embeddings": False},
        {"n_layers": 3},
    ],
)
def test_glas(few, params):
    X, Y, asked = few
    model = Glas(embedding_dim=16, normalize=False, epochs=3, **params).fit(X, Y)
    vectors = model.index_.vectors(np.arange(8))
    for row, label in [(0, 0), (1, 3), (2, 7)]:
        evidence, x = explain(model, asked, row, label)
        v, b = vectors[label, :-1].astype(np.float64), vectors[label, -1] * model.bias_scale_
        after, before = glas_output(model.encoder_, np.stack([x, 0 * x]))
        norm = np.linalg.norm(after) if model.normalize_document_embeddings else 1.0
        assert evidence.log_odds == pytest.approx(after @ v / norm + b, rel=1e-5)
        assert evidence.baseline == pytest.approx(b)
        assert evidence.remainder == pytest.approx(before @ v / norm, abs=1e-5)
        if model.n_layers == 1:  # else the slopes of layers are multiplied, which are no integrated gradients
            expected = integrated_gradients(lambda rows: glas_output(model.encoder_, rows) @ v / norm, x)  # noqa: B023
            np.testing.assert_allclose(shares(evidence, len(x)), expected, atol=5e-3)
    assert model.hidden_bias or not before.any()


@pytest.mark.parametrize("space", ["euclidean", "poincare"])
def test_treespace_of_one_level(few, space):
    """The log-odds are the margin of the leaf."""
    X, Y, asked = few
    model = Treespace(hidden_dim=16, embedding_dim=8, n_estimators=1, normalize=False, space=space).fit(X, Y)
    assert model.report()["levels"] == 1
    net, evidence_of = model.estimators_[0], [explain(model, asked, 1, label) for label in range(8)]
    E, nodes = dense(net.feature_embeddings, net.feature_scales), net.dequantized_nodes(model._layout).reshape(-1, 8)

    def margin(rows, label):
        u = np.maximum(rows @ E + net.hidden_bias, 0) @ net.level_maps
        node = int(np.flatnonzero(model.tree_.label == label)[0])
        e = nodes[node - 1].astype(np.float64)
        if space == "euclidean":
            return u @ e + net.node_bias[node]
        raw = np.linalg.norm(u, axis=1) + 1e-6
        r = 4 * np.tanh(raw / 4)
        products = u @ e * r / raw
        return np.array(
            [hyperbolic_product(p, s, np.linalg.norm(e) + 1e-6)[0] for p, s in zip(products, r, strict=True)]
        ) + net.node_bias[node]  # fmt: skip

    for label, (evidence, x) in enumerate(evidence_of):
        assert evidence.log_odds == pytest.approx(margin(x[None], label)[0], abs=1e-3)
        assert evidence.baseline == pytest.approx(margin(0 * x[None], label)[0], abs=1e-3)
        if space == "euclidean":
            expected = integrated_gradients(lambda rows, label=label: margin(rows, label), x)
            np.testing.assert_allclose(shares(evidence, len(x)), expected, atol=2e-3)
        assert evidence.remainder == pytest.approx(0, abs=1e-5 if space == "euclidean" else 1e-2)


def test_treespace_with_a_hierarchy_and_rare_boost(few):
    whole = planted(n=160, d=60, l=8, seed=3)
    X, Y, asked = few
    closed = whole.labels.hierarchy.closed(Y)
    params = {"hidden_dim": 16, "root_dim": 4, "embedding_dim": 8, "n_estimators": 2, "normalize": False}
    model = Treespace(**params, rare_boost=0.3).fit(X, closed, labels=whole.labels)
    top = model.predict_topk(asked[:1], k=8)
    for label, score in zip(top.labels[0], top.scores[0].astype(float), strict=True):
        evidence, _ = explain(model, asked, 0, label)
        assert evidence.log_odds == pytest.approx(logit(score), abs=1e-3)
        assert evidence.remainder == pytest.approx(0, abs=1e-5)
        assert evidence.path[-1].labels[0] == label, "its own name comes first"
    unnamed = Treespace(**params).fit(X, Y, labels=LabelSpace.numbered(8))
    assert explain(unnamed, asked, 0, 1)[0].remainder == pytest.approx(0, abs=1e-5)


POINCARE = [
    {"label_weight": 1.0},
    {"projection": "clip", "init_std": 0.1},
    {"geometry": "euclidean", "n_estimators": 2},
    {"route": "vote"},
    {"route": "labels"},
]


def votes_twin(model, number, neighbors, rows, label):
    """The votes of one learner for a label at documents x, with fixed voters."""
    (documents,), (labels,) = (top.labels for top in neighbors[number])
    documents = documents[: model.vote_weights_.n_neighbors]
    r = rows @ dense(model.theta_[number], model.theta_scales_[number])
    x = model.manifold.project(r)

    def distances(index, ids):
        y = index.points[np.argsort(index.ids)][np.searchsorted(np.sort(index.ids), ids)].astype(np.float64)
        squares = ((x[:, None] - y) ** 2).sum(axis=2)
        if model.geometry == "euclidean":
            return np.sqrt(squares)
        gaps = (1 - (x**2).sum(axis=1))[:, None] * (1 - (y**2).sum(axis=1))
        return np.arccosh(1 + 2 * squares / gaps)

    w = {"vote": 0.0, "labels": 1.0}.get(model.route, model.vote_weights_[2] / (1 + model.vote_weights_[2]))
    total = np.zeros(len(rows))
    if len(documents):
        weights = np.exp(-model.vote_weights_.sharpness * distances(model.document_indexes_[number], documents))
        carry = model.Y_[documents][:, [label]].toarray()[:, 0]
        total += (1 - w) * weights @ carry / weights.sum(axis=1)
    if len(labels):
        d = distances(model.label_indexes_[number], labels)
        own = d[:, labels == label].sum(axis=1)
        total += w * np.exp(-0.25 * model.alpha * (own - d.min(axis=1)))
    return total


@pytest.mark.parametrize("params", POINCARE)
def test_poincare_gradients_of_the_votes(few, params):
    X, Y, asked = few
    model = Poincare(embedding_dim=4, normalize=False, epochs=5, n_neighbors=9, sharpness=3.0, **params).fit(X, Y)
    points, total = gauss_legendre(explanations.POINTS), 0.0
    for row, label in ((0, 0), (0, 7), (2, 1), (2, 7), (4, 2), (6, 3), (8, 4)):
        X = sp.csr_matrix(asked[row])
        neighbors, x = model._nearest(X, 9, 8), X.toarray()[0].astype(np.float64)
        for number, learner in enumerate(explanations.VoteEvidence(model, X, neighbors, "words").learners):

            def score(rows, number=number, neighbors=neighbors, label=label):
                return votes_twin(model, number, neighbors, rows, label)

            votes = learner.votes_for(label)
            assert votes.total == pytest.approx(score(x[None])[0], rel=1e-4)
            found = learner.column_shares(votes._gradient())
            np.testing.assert_allclose(found, integrated_gradients(score, x, points)[X.indices], rtol=1e-3, atol=1e-5)
            total += np.abs(found).sum()
    assert total > 0.05


@pytest.mark.parametrize("manifold", [PoincareBall(), PoincareBall(exponential=False), Euclidean()])
@pytest.mark.parametrize("norm", [0.3, 0.95, 2.0, 5.0])
def test_poincare_gradients_by_vectors_inside_and_beyond_the_boundary(manifold, norm):
    rng = np.random.default_rng(0)
    r, by_lifted = rng.standard_normal((1, 4)), rng.standard_normal((1, 5 + (manifold.geometry == "euclidean")))
    r *= norm / np.linalg.norm(r)
    steps = 1e-7 * np.eye(4)
    change = [np.vdot(by_lifted, manifold.lift_projected(r + s) - manifold.lift_projected(r - s)) for s in steps]
    found = explanations.vector_gradient(manifold, r, by_lifted)[0]
    np.testing.assert_allclose(found, np.array(change) / 2e-7, rtol=1e-3, atol=1e-3 * np.abs(found).max())


@pytest.mark.parametrize("geometry", ["poincare", "euclidean"])
def test_poincare_has_a_smaller_remainder_with_more_points(few, geometry, monkeypatch):
    X, Y, asked = few
    params = {"sharpness": 4.0, "label_weight": 1.0, "geometry": geometry}
    model = Poincare(embedding_dim=8, normalize=False, epochs=5, **params).fit(X, Y)
    best = model.predict_topk(asked, k=3).labels
    left = {}
    for points in (2, 8, 64, 256):
        monkeypatch.setattr(explanations, "POINTS", points)
        found = [model.explain(sp.csr_matrix(x), labels) for x, labels in zip(asked, best, strict=True)]
        left[points] = np.array([evidence.remainder for row in found for evidence in row])
    errors = [np.abs(left[points] - left[256]).mean() for points in (2, 8, 64)]
    assert errors[2] < 0.3 * errors[1] < 0.3 * errors[0]
    assert np.abs(left[256]).mean() < 0.1 * np.mean([abs(evidence.difference) for row in found for evidence in row])


def test_poincare_shares_of_voters_are_their_votes_less_what_the_frequency_gives(few):
    X, Y, asked = few
    model = Poincare(embedding_dim=8, epochs=5, route="vote", n_estimators=2).fit(X, Y)
    for row, labels in enumerate(model.predict_topk(asked, k=3).labels):
        for label, evidence in zip(labels, model.explain(sp.csr_matrix(asked[row]), labels), strict=True):
            p, p0 = 1 / (1 + np.exp(-evidence.log_odds)), Y[:, [label]].mean()
            assert evidence.baseline == pytest.approx(logit(p0))
            votes = sum(voter.share for voter in evidence.voters)
            assert votes * (p - p0) / p == pytest.approx(evidence.difference, rel=1e-3)
            rows = [voter.row for voter in evidence.voters]
            assert len(set(rows)) == len(rows), "a document is named once, whatever the learners"


def test_poincare_names_the_documents_that_were_held_out_too(few):
    X, Y, _ = few
    model = Poincare(embedding_dim=8, epochs=5, validation_share=0.3, route="vote").fit(X, Y)
    named = set()
    for row in range(0, 150, 3):
        evidence = model.explain(sp.csr_matrix(X[row]), Y[row].indices[:1])[0]
        nearest = max(evidence.voters, key=lambda voter: voter.similarity)
        assert nearest.similarity == pytest.approx(1, abs=1e-2)
        named |= {nearest.row} & {row}
    assert len(named) > 45, "a document is its own nearest one, but for duplicates"
