"""What every method that explains its scores keeps; found by discovery, as in the contract of all methods."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted
from labelspace.errors import ParameterError
from labelspace.features.views import TEXT
from labelspace.models.capabilities import Explains, ZeroShot, methods_with, require
from labelspace.models.checks import check_inputs
from labelspace.models.evidence import logit
from labelspace.models.registry import METHODS, create
from labelspace.types import LabelSpace
from tests.models.test_contract import SLOW, Inputs, made
from tests.models.variants import OTHERS, SMALL

EXPLAINING = methods_with(Explains)
EXACT = ("one_vs_rest", "pdsparse", "network", "neighbors", "label_tree", "lexical")  # and treespace, but for the ball
HIDDEN = 7  # a label without training documents
LEAST = logit(0.0)
K = 6


def settings(name):
    return [{**SMALL.get(name, {})}, *OTHERS.get(name, [])]


def setting(name, number):
    slow = name == "blend" or (name in SLOW and number > 0)
    return pytest.param((name, number), marks=[pytest.mark.slow] * slow, id=f"{name}-{number}")


@pytest.fixture(scope="module")
def few():
    """Documents whose names are in their texts too; one label has none in training."""
    whole = planted(n=240, d=200, l=12, texts=True, seed=7)
    train, test = whole.rows(range(200)), whole.rows(range(200, 240))
    Y = train.Y.tolil()
    Y[:, HIDDEN] = 0
    return replace(train, Y=Y.tocsr()), test


@pytest.fixture(scope="module")
def trained() -> dict:
    return {}


class Explained:
    """A fitted model, and evidence for its best labels of some documents."""

    def __init__(self, model, few):
        train, test = few
        self.inputs = Inputs(model, train)
        self.model = model.fit(self.inputs(train), train.Y, labels=train.labels)
        self.X = self.inputs(test)

    def read(self, row):
        X = self.X.rows(slice(row, row + 1)) if hasattr(self.X, "tables") else self.X[row : row + 1]
        return X, self.model.read(X if hasattr(X, "tables") else check_inputs(X))

    def evidence(self, row, k=K):
        """The labels with their scores, and their evidence."""
        given, document = self.read(row)
        top = self.model.predict_topk(given, k)
        listed = top.labels[0][top.labels[0] >= 0]
        return listed, top.scores[0, : len(listed)], self.model.explain(document, listed)


@pytest.fixture(params=[setting(name, i) for name in EXPLAINING for i in range(len(settings(name)))])
def explained(request, few, trained) -> Explained:
    name, number = request.param
    if request.param not in trained:
        trained[request.param] = Explained(create(name, **settings(name)[number]), few)
    return trained[request.param]


def is_raw(model):
    """Whether scores are no probabilities."""
    return model.name == "glas" and model.loss != "bce"


def test_the_log_odds_are_those_of_the_score(explained):
    for row in range(5):
        _, scores, found = explained.evidence(row)
        for score, evidence in zip(scores.astype(np.float64), found, strict=True):
            if is_raw(explained.model):
                assert evidence.log_odds == pytest.approx(score, abs=1e-3)
                continue
            p = min(max(score, 1e-6), 1 - 1e-6)
            rounding = 2e-7 / (p * (1 - p))  # of a score in float32
            assert np.clip(evidence.log_odds, LEAST, -LEAST) == pytest.approx(logit(score), abs=1e-3 + rounding)


def test_shares_add_up(explained):
    model, n_exact = explained.model, 0
    for row in range(5):
        for evidence in explained.evidence(row)[2]:
            by_column = sum(part.shares.sum() for part in evidence.columns.values())
            parts = by_column + sum(phrase.share for phrase in evidence.phrases)
            assert np.isfinite(parts)
            assert parts + evidence.remainder == pytest.approx(evidence.log_odds - evidence.baseline, abs=1e-4)
            exact = model.name in EXACT or (model.name == "treespace" and model.space == "euclidean")
            if exact and (evidence.columns or evidence.phrases):
                assert evidence.remainder == pytest.approx(0, abs=1e-4)
                n_exact += 1
            if evidence.path and not evidence.members:
                assert sum(step.share for step in evidence.path) == pytest.approx(by_column, abs=1e-4)
            if evidence.members:
                assert sum(member.share for member in evidence.members) == pytest.approx(evidence.difference, abs=1e-4)
    assert n_exact or model.name in ("glas", "poincare", "treespace", "blend")


def test_columns_are_those_of_the_document(explained):
    _, document = explained.read(0)
    for evidence in explained.evidence(0)[2]:
        for view, part in evidence.columns.items():
            assert part.columns.shape == part.shares.shape
            table = document[view] if hasattr(document, "tables") else document
            assert set(part.columns.tolist()) <= set(table[0].indices.tolist())


def test_words_speak_for_the_best_label(explained):
    if explained.model.name == "glas" and explained.model.loss == "margin":
        pytest.skip("learns too little in so few epochs")
    total = []
    for row in range(10):
        evidence = explained.evidence(row, 1)[2][0]
        total.append(evidence.difference - evidence.remainder)
    assert np.mean(total) > 0


def test_the_same_again_and_each_label_by_itself(explained):
    labels, _, found = explained.evidence(2)
    again = explained.model.explain(explained.read(2)[1], labels)
    assert list(map(repr, again)) == list(map(repr, found))
    for label, evidence in zip(labels, found, strict=True):
        single = explained.model.explain(explained.read(2)[1], np.array([label], np.int32))[0]
        assert repr(single) == repr(evidence)


def test_a_label_never_seen_has_no_reasons(explained):
    if isinstance(explained.model, ZeroShot) or explained.model.name == "blend":
        pytest.skip("reads the name of the label")
    (evidence,) = explained.model.explain(explained.read(0)[1], np.array([HIDDEN], np.int32))
    assert evidence.log_odds == evidence.baseline == pytest.approx(LEAST)
    assert all((part.shares == 0).all() for part in evidence.columns.values())


def test_an_empty_document_has_no_shares(explained):
    model, labels = explained.model, np.arange(3, dtype=np.int32)
    if explained.inputs.transformer is not None:
        empty = explained.inputs.transformer.transform([""])
    else:
        empty = check_inputs(sp.csr_matrix((1, model.n_features_), dtype=np.float32))
    for evidence in model.explain(model.read(empty), labels):
        assert np.isfinite([evidence.log_odds, evidence.baseline]).all()
        assert sum(len(part.columns) for part in evidence.columns.values()) == 0
        assert not evidence.phrases


def test_voters_are_training_documents_that_have_the_label(explained, few):
    train, n_voters = few[0], 0
    for row in range(5):
        labels, _, found = explained.evidence(row, 3)
        for label, evidence in zip(labels, found, strict=True):
            n_voters += len(evidence.voters)
            assert all(0 <= voter.similarity <= 1 + 1e-5 for voter in evidence.voters)
            if explained.model.trained_rows is None:
                assert all(train.Y[voter.row, label] for voter in evidence.voters)
    votes = explained.model.names_documents and getattr(explained.model, "route", "vote") != "labels"
    assert bool(n_voters) == votes


@pytest.mark.parametrize("name", [name for name in METHODS if name not in EXPLAINING])
def test_methods_that_cannot_name_those_that_can(name):
    with pytest.raises(ParameterError, match=f"but {name} cannot; train with --method .*label_tree.* or [a-z]+$"):
        require(made(name), Explains)


def test_the_embedding_methods_explain():
    assert {"glas", "poincare", "treespace"} <= set(EXPLAINING)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "blend")) for n in EXPLAINING])
def test_a_single_label_and_a_single_document_are_explained(name):
    is_text = create(name).view == TEXT
    given = ["a word or two"] if is_text else sp.csr_matrix(np.array([[1.0, 0.0]], np.float32))
    model = made(name).fit(given, np.array([[1]]), labels=LabelSpace(["word"]))
    for X in (given, [""] if is_text else 0 * given):
        (evidence,) = model.explain(model.read(check_inputs(X)), np.zeros(1, np.int32))
        assert np.isfinite([evidence.log_odds, evidence.baseline, evidence.remainder]).all()
