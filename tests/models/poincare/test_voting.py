from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.features.normalize import normalize_rows
from labelspace.models.poincare import voting
from labelspace.models.poincare.voting import VoteWeights, distance_weights, vote_weight_grid
from tests.models.poincare.reference import BALL, CLIPPED, distances, project, quick


def test_distance_weights_are_relative_to_the_nearest():
    scores = np.array([[-1, -1.5, -np.inf], [-np.inf] * 3, [0, -2000, -1e30]], np.float32)
    assert np.allclose(distance_weights(scores, 2.0), [[1, np.exp(-1), 0], [0, 0, 0], [1, 0, 0]])
    assert distance_weights(scores, 0.0).tolist() == [[1, 1, 0], [0, 0, 0], [1, 1, 1]]
    assert distance_weights(scores[:, :0], 2.0).shape == (3, 0)
    assert distance_weights(scores[:1], 1e29).tolist() == [[1, 0, 0]]


def brute_force_votes(model, X, weights):
    """The votes for all labels, from textbook distances in float64."""
    m, sharpness, label_weight = weights
    label_share = {"vote": 0.0, "labels": 1.0, "both": label_weight / (1 + label_weight)}[model.route]
    votes = np.zeros((X.shape[0], model.n_labels_))
    for i, (documents, labels) in enumerate(zip(model.document_indexes_, model.label_indexes_, strict=True)):
        r = normalize_rows(X) @ (model.theta_[i] * model.theta_scales_[i][:, None].astype(np.float64))
        points = r if model.geometry == "euclidean" else project(BALL, r)
        if model.projection == "clip":
            points = CLIPPED.project(r)
        to_documents, to_labels = (
            distances(model.manifold, points, index.points.astype(np.float64)) for index in (documents, labels)
        )
        for row in range(len(votes)):
            nearest = np.argsort(to_documents[row])[:m]
            powers = np.exp(-sharpness * (to_documents[row][nearest] - to_documents[row].min()))
            for j, vote in zip(documents.ids[nearest], powers / powers.sum(), strict=True):
                votes[row] += (1 - label_share) * vote * model.Y_[[j]].toarray()[0] / model.n_estimators
            label_votes = np.exp(-model.alpha / 4 * (to_labels[row] - to_labels[row].min()))
            votes[row, labels.ids] += label_share * label_votes / model.n_estimators
    return votes


@pytest.mark.parametrize("route", ["both", "vote", "labels"])
@pytest.mark.parametrize(
    "params",
    [{"n_estimators": 3}, {"geometry": "euclidean"}, {"projection": "clip", "optimizer": "adam"}, {"sharpness": 0.0}],
    ids=["three", "euclidean", "clip", "counted"],
)
def test_labels_are_ranked_by_the_mean_votes_of_learners(small, route, params):
    weights = {"n_neighbors": 9, "sharpness": 3.0, "label_weight": 0.5} | params
    model = quick(route=route, **weights).fit(small.X[:200], small.Y[:200])
    given = (9, weights["sharpness"], 0.5)
    assert model.vote_weights_ == given, "used as given"
    X = small.X[200:]
    expected, top = brute_force_votes(model, X, given), model.predict_topk(X, 30)
    assert expected.max() <= 1 + 1e-6
    votes = np.zeros_like(expected)
    rows, columns = np.nonzero(top.labels >= 0)
    votes[rows, top.labels[rows, columns]] = top.scores[rows, columns]
    right = np.isclose(votes, expected, atol=2e-3).all(axis=1)
    assert right.mean() > 0.95, "but for ties of the last neighbor"
    if route == "labels":
        assert right.all()


@pytest.mark.slow
def test_the_chosen_vote_weights_have_the_highest_dcg_on_the_validation_documents(small):
    train, validation = small.rows(range(180)), small.rows(range(180, 260))
    model = quick(n_estimators=2).fit(train.X, train.Y, validation=(validation.X, validation.Y))
    chosen = model.vote_weights_
    gains = {}
    for tried in product(voting.N_NEIGHBORS, voting.SHARPNESS, voting.LABEL_WEIGHTS):
        model.vote_weights_ = VoteWeights(*tried)
        top = model.predict_topk(validation.X, 5)
        hits = validation.Y.toarray()[np.arange(80)[:, None], top.labels] * (top.labels >= 0)
        gains[tried] = (hits / np.log2(np.arange(2, 7))).sum()
    assert np.isclose(gains[chosen], max(gains.values()))
    assert len(set(np.round(list(gains.values()), 6))) > 5


def test_weights_that_are_given_or_not_used_are_not_tried():
    n_neighbors, sharpness, label_weight = voting.N_NEIGHBORS, voting.SHARPNESS, voting.LABEL_WEIGHTS
    assert vote_weight_grid(quick()) == list(product(n_neighbors, sharpness, label_weight))
    assert vote_weight_grid(quick())[0] == (40, 4.0, 1.0), "the default"
    assert vote_weight_grid(quick(n_neighbors=7)) == list(product([7], sharpness, label_weight))
    assert vote_weight_grid(quick(sharpness=1.5)) == list(product(n_neighbors, [1.5], label_weight))
    assert vote_weight_grid(quick(label_weight=0.7)) == list(product(n_neighbors, sharpness, [0.7]))
    assert vote_weight_grid(quick(route="vote")) == list(product(n_neighbors, sharpness, [1.0]))
    assert vote_weight_grid(quick(route="labels")) == list(product([40], [4.0], label_weight))


def test_weights_that_are_given_are_used_and_the_defaults_where_no_documents_can_be_held_out(small):
    report = quick(n_neighbors=7).fit(small.X, small.Y).report()
    assert report["neighbors"] == 7
    assert report["sharpness"] in voting.SHARPNESS
    few = small.rows(range(6))
    assert quick().fit(few.X, few.Y).vote_weights_ == (40, 4.0, 1.0)


@pytest.mark.parametrize("route", ["both", "vote", "labels"])
def test_labels_without_a_document_are_not_suggested_and_lists_are_padded(small, route):
    Y = sp.csr_matrix(np.c_[small.Y.toarray(), np.zeros((260, 200))].astype(np.float32))
    model = quick(route=route).fit(small.X, Y)
    top = model.predict_topk(small.X[:40], k=500)
    assert top.labels.shape == (40, 500)
    assert top.labels.max() < 30
    assert (top.labels[:, 30:] == -1).all()
    empty = model.predict_topk(sp.csr_matrix((1, 150)), k=3)
    assert (empty.labels >= 0).all()
    assert np.isfinite(empty.scores).all()


def test_more_neighbors_than_documents_are_all_of_them(small):
    model = quick(n_neighbors=10_000, sharpness=0.0, route="vote", epochs=1).fit(small.X, small.Y)
    top = model.predict_topk(small.X[:3], k=30)
    assert np.allclose(np.sort(top.scores), np.sort(np.tile(small.Y.mean(axis=0).A1, (3, 1))), atol=1e-5)
