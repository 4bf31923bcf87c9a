"""Documents that are appended to the index, against an index of all documents."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace.data.synthetic import planted
from labelspace.errors import DataError
from labelspace.features.normalize import normalize_rows
from labelspace.models.neighbors import Neighbors
from labelspace.models.neighbors.index import append_rows, empty_index
from labelspace.models.neighbors.kernels import Postings
from labelspace.models.partial_fit import learn_more
from labelspace.types import LabelSpace
from tests.checks import digest, same_topk
from tests.models.neighbors.numpy_index import index_of, index_of_numbers


def zipf_rows(n, d=4000, words=30, seed=0, signed=False):
    """Unit rows whose first columns are common, and the last ones rare; some rows and columns are empty."""
    rng = np.random.default_rng(seed)
    columns = np.minimum((d * rng.random((n, words)) ** 3).astype(int), d - 5)
    values = rng.random((n, words)) * (rng.choice([-1, 1], (n, words)) if signed else 1)
    X = sp.csr_matrix((values.ravel(), (np.repeat(np.arange(n), words), columns.ravel())), (n, d), np.float32)
    X = sp.diags((np.arange(n) % 50 != 7).astype(np.float32)) @ X
    X.eliminate_zeros()
    return normalize_rows(sp.csr_matrix(X, dtype=np.float32))


def same_index(one, other):
    for name in Postings._fields:
        found, expected = getattr(one, name), getattr(other, name)
        assert found.dtype == expected.dtype, name
        assert np.array_equal(found, expected), name


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("n", [1, 40, 3000])
def test_an_index_equals_the_numpy_one(n, signed):
    X = zipf_rows(n, signed=signed)
    built = append_rows(empty_index(4000), X)
    same_index(built, index_of(X))
    if n == 3000:
        assert built.common.shape[1] > 1
        assert len(built.gaps) > 1000
        assert len(built.values) > 100


@pytest.mark.slow
def test_an_index_of_many_rows_has_32_bits_a_row():
    X = zipf_rows(2**16 + 10, words=3)
    same_index(append_rows(append_rows(empty_index(4000), X[:-20]), X[-20:]), index_of(X))


def with_every_largest_value_first(X):
    """X, after a row for each column with a larger value than any other: scales do not grow afterwards."""
    return sp.vstack([sp.identity(X.shape[1], np.float32, "csr"), X]).tocsr()


@pytest.mark.parametrize("sizes", [(1,), (100, 1, 0, 900), (1500,)])
def test_appended_rows_are_as_if_built_at_once_where_scales_stay(sizes):
    X = with_every_largest_value_first(zipf_rows(2000, signed=True))
    at = X.shape[0] - sum(sizes)
    index = append_rows(empty_index(4000), X[:at])
    for size in sizes:
        index = append_rows(index, X[at : at + size])
        at += size
    same_index(index, index_of(X))


def test_features_change_their_kind_both_ways():
    rare_first = np.zeros((600, 3), np.float32)
    rare_first[:400, 0] = 1  # common, then not
    rare_first[5, 1] = rare_first[410:, 1] = 1  # rare, then common
    rare_first[:40:8, 2] = 1  # frequent at first
    X = sp.csr_matrix(rare_first)
    index = append_rows(empty_index(3), X[:400])
    assert index.common_column.tolist() == [0, -1, -1]
    for size in (500, 600):
        index = append_rows(index, X[len(index.common_norms) : size])
        same_index(index, index_of(X[:size]))
    many = sp.vstack([X, sp.csr_matrix((4000, 3), dtype=np.float32)]).tocsr()
    index = append_rows(index, many[600:])
    same_index(index, index_of(many))
    assert index.common_column.tolist() == [-1, -1, -1]
    assert len(index.values) == 5, "rare again"


def test_numbers_are_rounded_again_where_a_largest_value_grows():
    X = zipf_rows(500)
    X.data *= np.repeat(np.where(np.arange(500) < 400, np.float32(0.3), np.float32(1)), np.diff(X.indptr))
    old, joined = append_rows(empty_index(4000), X[:400]), append_rows(append_rows(empty_index(4000), X[:400]), X[400:])
    by_feature = X.tocsc()
    features = np.repeat(np.arange(4000), np.diff(by_feature.indptr))
    own = np.where(by_feature.indices < 400, old.scales[features], joined.scales[features])
    numbers = np.rint(by_feature.data / own).astype(np.int8)
    again = np.rint(numbers * (own.astype(np.float64) / joined.scales[features])).astype(np.int8)
    assert (numbers != again).mean() > 0.2
    assert ((numbers != 0) & (again == 0)).any(), "a number that becomes 0 is no posting"
    same_index(joined, index_of_numbers(again, by_feature.indices, by_feature.indptr, joined.scales, 500))
    assert np.array_equal(joined.scales, index_of(X).scales)


def test_rows_of_a_damaged_index_that_do_not_rise_are_left_out():
    index = append_rows(empty_index(2), sp.csr_matrix(np.ones((3, 2), np.float32)))._replace(
        values=np.full(50, 9, np.int8),
        rows=np.array([2, 1, 0, 2, 1] * 10, np.uint16),
        starts=np.array([0, 50, 50], np.int32),
        gap_values=np.full(70, 5, np.int8),
        gaps=np.array([1] + [0] * 69, np.uint8),
        gap_starts=np.array([0, 0, 70], np.int32),
        common_column=np.full(2, -1, np.int32),
        scales=np.array([-3.0, 1.0], np.float32),
    )
    joined = append_rows(index, sp.csr_matrix(np.ones((1, 2), np.float32)))
    assert len(joined.values) + np.count_nonzero(joined.common) <= 2 * 4


def documents(n=300, d=200, n_labels=12, seed=3):
    data = planted(n=n, d=d, l=n_labels, texts=True, seed=seed)
    return data.X, data.Y, data.labels


def check_nearly_same(model, other, X):
    """The score of every label differs by rounding only."""
    by_label = []
    for one in (model, other):
        top = one.predict_topk(X, one.n_labels_)
        scores = np.zeros(top.labels.shape)
        rows, ranks = np.nonzero(top.labels >= 0)
        scores[rows, top.labels[rows, ranks]] = top.scores[rows, ranks]
        by_label.append(scores)
    np.testing.assert_allclose(*by_label, atol=4e-3)


def test_learning_equals_training_on_everything():
    X, Y, labels = documents()
    params = {"n_neighbors": 1000, "power": 2.0, "pruning": 0.0}  # all vote: rounding decides nowhere who does
    model = Neighbors(**params).fit(X[:200], Y[:200], labels=labels)
    learn_more(model, X[200:250], Y[200:250])
    learn_more(model, X[250:], Y[250:])
    whole = Neighbors(**params).fit(X, Y, labels=labels)
    assert np.array_equal(model.labels_of_, whole.labels_of_)
    assert np.array_equal(model.label_starts_, whole.label_starts_)
    assert np.array_equal(model.labels_.counts, whole.labels_.counts)
    assert model.labels_.n_documents == 300
    check_nearly_same(model, whole, X)


def test_a_tagger_that_learns_the_second_half_answers_as_one_trained_on_both():
    data = planted(n=400, d=30, l=15, texts=True, seed=9)
    first, second = data.rows(range(200)), data.rows(range(200, 400))
    names = [[data.labels.names[label] for label in row.indices] for row in data.Y]
    tagger = labelspace.Tagger("neighbors", n_neighbors=1000, power=2.0).fit(first.texts, names[:200])
    features = tagger.features_
    n_features = tagger.model.n_features_
    assert tagger.learn(second.texts, names[200:]) is tagger
    assert tagger.model.n_features_ == n_features, "no word is new"
    X = features.transform(data.texts)
    labels = LabelSpace(list(tagger.labels_.names))
    rows = [[labels.index[name] for name in row] for row in names]
    pairs = [(row, label) for row, ids in enumerate(rows) for label in ids]
    Y = sp.csr_matrix((np.ones(len(pairs)), np.array(pairs).T), (400, len(labels)))
    whole = Neighbors(n_neighbors=1000, power=2.0).fit(X, Y, labels=labels)
    check_nearly_same(tagger.model, whole, X)


def test_a_document_with_rejected_labels_only_votes_for_no_label():
    X = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    model = Neighbors(n_neighbors=10, power=1.0).fit(X, np.array([[1, 0], [1, 0], [0, 1]]))
    query = np.array([[1.0, 0.0]])
    before = model.predict_topk(query, 1)
    assert (before.labels[0, 0], before.scores[0, 0]) == (0, 1.0)
    learn_more(model, query, np.zeros((1, 2)), rejected=sp.csr_matrix([[1.0, 0.0]]))
    after = model.predict_topk(query, 1)
    assert after.labels[0, 0] == 0
    assert after.scores[0, 0] == pytest.approx(2 / 3, abs=0.01)
    assert model.label_starts_.tolist() == [0, 1, 2, 3, 3], "it is document 3, without labels"


def test_a_new_label_is_found_at_once_and_explained_by_its_document():
    X, Y, labels = documents()
    model = Neighbors(n_neighbors=5, power=4.0).fit(X[:200], Y[:200], labels=labels)
    new = sp.csr_matrix(([1.0], ([0], [12])), (2, 13))
    learn_more(model, X[200:202], new, labels=labels.extended(["one more"]))
    assert model.predict_topk(X[200], 1).labels.tolist() == [[12]]
    evidence = model.explain(X[200], np.array([12]))[0]
    assert evidence.voters[0].row == 200


def test_a_new_label_may_come_without_documents():
    X, Y, labels = documents()
    model = Neighbors(n_neighbors=5, power=4.0).fit(X[:200], Y[:200], labels=labels)
    before = model.predict_topk(X, 3)
    learn_more(model, X[:0], sp.csr_matrix((0, 13)), labels=labels.extended(["one more"]))
    assert same_topk(model.predict_topk(X, 3), before)
    assert model.predict_topk(X, 13).labels.max() < 12


def test_labels_above_16_bits_are_kept():
    model = Neighbors().fit(np.eye(3), np.eye(3))
    assert model.labels_of_.dtype == np.uint16
    learn_more(model, np.eye(3)[:1], sp.csr_matrix(([1.0], ([0], [2**16])), (1, 2**16 + 1)))
    assert model.labels_of_.dtype == np.int32
    assert model.predict_topk(np.eye(3)[:1], 2).labels.tolist() == [[0, 2**16]]


def test_empty_rows_are_documents_too():
    X, Y, labels = documents()
    model = Neighbors(n_neighbors=5, power=1.0).fit(X[:200], Y[:200], labels=labels)
    before = model.predict_topk(X[200:], 3)
    empty = sp.csr_matrix((3, X.shape[1]), dtype=np.float32)
    learn_more(model, empty, Y[200:203])
    assert len(model.common_norms_) == 203
    assert np.array_equal(model.predict_topk(X[200:], 3).labels, before.labels)
    assert (model.predict_topk(empty, 2).labels == -1).all(), "nothing is similar to a document without features"


def test_a_loaded_index_learns_the_same_and_is_left_as_it_was(tmp_path):
    X, Y, labels = documents()
    model = Neighbors().fit(X[:200], Y[:200], labels=labels)
    model.save(tmp_path / "first")
    loaded = Neighbors.load(tmp_path / "first")
    for one in (model, loaded):
        learn_more(one, X[200:], Y[200:])
    model.save(tmp_path / "one")
    loaded.save(tmp_path / "other")
    assert digest(tmp_path / "one") == digest(tmp_path / "other")
    again = Neighbors.load(tmp_path / "one")
    assert same_topk(again.predict_topk(X, 5), model.predict_topk(X, 5))
    assert len(Neighbors.load(tmp_path / "first").common_norms_) == 200
    with pytest.raises(DataError, match="200 features the model was trained on, but has 199"):
        learn_more(model, X[:1, :-1], Y[:1])
