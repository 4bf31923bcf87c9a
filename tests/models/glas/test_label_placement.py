import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.errors import DataError, ParameterError
from labelspace.models.glas.label_placement import place_label, without_label
from labelspace.types import Hierarchy, LabelSpace
from tests.models.glas.cases import quick, small_data


def unit_rows(rng, n, dim=8):
    rows = rng.standard_normal((n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_a_new_label_points_to_its_examples_and_scores_above_0_for_its_share(share):
    rng = np.random.default_rng(0)
    background, examples = unit_rows(rng, 1000), unit_rows(rng, 3)
    v, b = place_label(examples, background, scale=12.0, share=share)
    assert np.isclose(np.linalg.norm(v), 1)
    direction = examples.mean(axis=0) - background.mean(axis=0)
    assert np.isclose(v @ direction, np.linalg.norm(direction))
    assert np.isclose((12.0 * background @ v + b > 0).mean(), share, atol=0.002)


@pytest.fixture(scope="module")
def small():
    return small_data()


@pytest.fixture
def fitted(small):
    return quick(epochs=1).fit(small.X, small.Y, labels=small.labels)


def test_a_label_comes_and_goes_and_comes_back_with_its_id(small, fitted):
    examples = small.X[[4, 9]]
    label = fitted.add_label("new", examples, share=0.5)
    assert label == 30
    assert (fitted.n_labels_, fitted.labels_.names[30], fitted.labels_.counts[30]) == (31, "new", 2)
    assert (fitted.predict_topk(examples, 31).labels == 30).any(axis=1).all()
    fitted.remove_label("new")
    assert not (fitted.predict_topk(examples, 31).labels == 30).any()
    assert (fitted.n_labels_, fitted.labels_.counts[30]) == (31, 0)
    assert fitted.add_label("new", examples) == 30


def test_a_filter_knows_labels_that_come_and_go(small, fitted):
    examples, allowed = small.X[[4, 9]], np.arange(31) % 6 == 0  # 30 is the new one
    fitted.add_label("new", examples, share=0.5)
    first = fitted.predict_topk(examples, 6, allowed=allowed)
    assert (first.labels == 30).any(axis=1).all()
    fitted.remove_label("new")
    assert not (fitted.predict_topk(examples, 6, allowed=allowed).labels == 30).any()
    fitted.add_label("new", small.X[[1]], share=0.01)
    again = fitted.predict_topk(examples, 6, allowed=allowed)
    assert not np.allclose(again.scores[again.labels == 30], first.scores[first.labels == 30])


def test_the_larger_its_share_the_more_documents_a_label_scores_high(small, fitted):
    scores = []
    for name, share in (("rare", 0.01), ("frequent", 0.5)):
        label = fitted.add_label(name, small.X[[4, 9]], share=share)
        top = fitted.predict_topk(small.X, 40)
        scores.append(top.scores[top.labels == label])
    assert (scores[0] < scores[1]).all()


def test_the_hierarchy_bypasses_a_removed_label():
    labels = LabelSpace(
        ["a", "b", "c"], hierarchy=Hierarchy.from_edges([[1, 0], [2, 1]], 3), counts=np.array([1, 2, 3])
    )
    remaining = without_label(labels, 1)
    assert remaining.hierarchy.edges.tolist() == [[2, 0]]
    assert remaining.counts.tolist() == [1, 0, 3]


def test_labels_that_cannot_be_added_or_removed_are_one_clear_line(small, fitted):
    known = small.labels.names[0]
    with pytest.raises(ParameterError, match="share must be above 0 and below 1, but is 0; give a part"):
        fitted.add_label("new", small.X[:1], share=0)
    with pytest.raises(DataError, match=f"must be new, but {known!r} is known; remove it first"):
        fitted.add_label(known, small.X[:1])
    with pytest.raises(DataError, match="an example with a known feature, but 'new' has none; give some"):
        fitted.add_label("new", sp.csr_matrix((1, 150)))
    with pytest.raises(DataError, match="150 features the model was trained on, but has 149"):
        fitted.add_label("new", small.X[:1, :-1])
    with pytest.raises(DataError, match="must be known, but 'new' is not; see labels_.names"):
        fitted.remove_label("new")
    assert (fitted.n_labels_, len(fitted.index_)) == (30, 30), "nothing was changed"
    with pytest.raises(DataError, match="labels must have names to come and go"):
        quick(epochs=1).fit(small.X, small.Y).add_label("new", small.X[:1])
