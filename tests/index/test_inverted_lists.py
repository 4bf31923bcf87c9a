import numpy as np
import pytest

from labelspace.errors import ModelError, ParameterError
from labelspace.index import Exact, Quantized, choice, choose, quantized
from labelspace.index.choice import recall
from labelspace.index.inverted_lists import InvertedLists
from labelspace.types import TopK
from tests.checks import same_topk
from tests.index.test_quantized import save_and_load


def in_lists(clustered, n_read=600, **params):
    vectors, ids, queries = clustered
    return Quantized(vectors, ids, 4, 64, queries, n_read=n_read, **params)


@pytest.fixture(autouse=True)
def read_little(monkeypatch):
    """A short list of candidates does not raise how much is read."""
    monkeypatch.setattr(quantized, "MIN_READ", 1)


def test_lists_have_every_vector_once_and_its_mean(clustered):
    vectors, _, queries = clustered
    lists, list_of = InvertedLists.build(vectors, queries, seed=0)
    assert lists.means.shape == (16, round(4 * 3000**0.5))
    assert np.array_equal(np.diff(lists.starts), np.bincount(list_of, minlength=lists.means.shape[1]))
    largest = np.bincount(list_of).argmax()
    assert np.allclose(lists.means[:, largest], vectors[list_of == largest].mean(axis=0), atol=1e-5)


def test_how_many_rows_are_needed_is_what_is_read(clustered):
    vectors, _, queries = clustered
    lists, list_of = InvertedLists.build(vectors, queries, seed=0)
    order = np.lexsort([np.arange(3000), list_of])
    rows = np.argsort(-(queries @ vectors[order].T), axis=1)[:, :5]
    truth = TopK(rows.astype(np.int32), np.zeros(rows.shape, np.float32))
    needed = lists.rows_needed(queries, np.arange(3000), truth).reshape(rows.shape)
    for i in range(len(queries)):
        for row, n_rows in zip(rows[i], needed[i], strict=True):
            its_list = np.searchsorted(lists.starts, row, side="right") - 1
            assert its_list in lists.to_read(queries[i : i + 1], n_rows)[0]
            before = n_rows - np.diff(lists.starts)[its_list]
            assert before == 0 or its_list not in lists.to_read(queries[i : i + 1], before)[0]


def test_a_search_reads_some_lists_and_finds_most(clustered):
    vectors, ids, queries = clustered
    truth = Exact(vectors, ids).search(queries, 5)
    few, many = in_lists(clustered, 60), in_lists(clustered, 1000)
    assert recall(few.search(queries, 5), truth) < recall(many.search(queries, 5), truth)
    assert recall(many.search(queries, 5), truth) > 0.97
    everything = in_lists(clustered, 3000).search(queries, 5)
    assert same_topk(everything, Quantized(vectors, ids, 4, 64, queries).search(queries, 5))


def test_results_do_not_depend_on_batch_or_threads(clustered, monkeypatch):
    queries, found = clustered[2], []
    for threads in ("1", "3"):
        monkeypatch.setenv("LABELSPACE_THREADS", threads)
        index = in_lists(clustered)
        found.append(index.search(queries, 5))
        for row in range(0, 100, 9):
            alone = index.search(queries[row : row + 1], 5)
            assert np.array_equal(alone.labels[0], found[0].labels[row])
            assert np.array_equal(alone.scores[0], found[0].scores[row])
    assert same_topk(*found)


def test_an_index_in_lists_is_saved_and_loaded(clustered, tmp_path):
    index, queries = in_lists(clustered), clustered[2]
    loaded = save_and_load(index, tmp_path / "model")
    assert loaded.n_read == 600
    assert same_topk(loaded.search(queries, 5), index.search(queries, 5))
    assert same_topk(loaded.search(queries, 400), index.search(queries, 400))


def test_an_index_without_lists_is_loaded_without(clustered, tmp_path):
    vectors, ids, queries = clustered
    index = Quantized(vectors, ids, 4, 64, queries)
    loaded = save_and_load(index, tmp_path / "model")
    assert loaded.lists_ is None
    assert loaded.n_read is None
    assert same_topk(loaded.search(queries, 5), index.search(queries, 5))


def test_more_than_the_lists_have_are_returned_on_request(clustered):
    top = in_lists(clustered, 60).search(clustered[2][:2], 700)
    assert (top.labels >= 0).all()
    assert all(len(set(row)) == 700 for row in top.labels)


def test_labels_are_added_and_removed_and_the_others_stay_in_their_lists(clustered):
    vectors, ids, queries = clustered
    index = Quantized(vectors[:2500], ids[:2500], 4, 64, queries, n_read=600)
    before = index.search(queries, 5)
    index.add(ids[2500:], vectors[2500:])
    index.check_state()
    assert sorted(index.ids) == sorted(ids)
    truth = Exact(vectors, ids).search(queries, 5)
    assert recall(index.search(queries, 5), truth) > 0.85
    found = index.vectors(ids[2490:2510])
    assert np.allclose(found, vectors[2490:2510], atol=1e-3)
    index.remove(ids[2500:])
    assert same_topk(index.search(queries, 5), before)
    index.remove(index.ids)
    assert (index.search(queries, 5).labels == -1).all()
    index.add(ids[:1], vectors[:1])
    assert index.search(queries[:1], 2).labels.tolist() == [[ids[0], -1]]


def test_a_part_of_few_labels_is_read_as_a_whole(clustered):
    vectors, ids, queries = clustered
    allowed = np.zeros(9000, bool)
    allowed[np.random.default_rng(0).permutation(ids)[:300]] = True
    some = in_lists(clustered).among(allowed)
    kept = allowed[ids]
    truth = Exact(vectors[kept], ids[kept]).search(queries, 5)
    assert recall(some.search(queries, 5), truth) > 0.99


def test_a_new_number_of_bits_keeps_the_lists(clustered):
    vectors, ids, queries = clustered
    order = np.argsort(ids)
    index = Quantized(vectors[order], ids[order], 1, 64, queries, n_read=600)
    other = index.with_bits(4, vectors[order])
    assert other.lists_ is index.lists_
    expected = Quantized(vectors[order], ids[order], 4, 64, queries, n_read=600)
    assert same_topk(other.search(queries, 5), expected.search(queries, 5))


def replace_lists(index, **arrays):
    index.lists_ = index.lists_._replace(
        **{name: change(getattr(index.lists_, name)) for name, change in arrays.items()}
    )


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda index: setattr(index, "n_read", None), "both lists and how much to read of them"),
        (lambda index: setattr(index, "lists_", None), "both lists and how much to read of them"),
        (lambda index: setattr(index, "n_read", 0), "n_read"),
        (lambda index: replace_lists(index, starts=lambda starts: starts + 1), "rise from 0 to n=3000"),
        (lambda index: replace_lists(index, starts=lambda starts: starts[:-1].copy()), "shape|rise from 0"),
        (lambda index: replace_lists(index, starts=lambda starts: starts[::-1].copy()), "rise from 0"),
        (lambda index: replace_lists(index, means=lambda means: means[:-1].copy()), "shape"),
        (lambda index: replace_lists(index, means=lambda means: np.full_like(means, np.inf)), "finite"),
        (lambda index: setattr(index, "ids_", index.ids_[::-1].copy()), "ids in order"),
    ],
)
def test_lists_that_would_be_read_beyond_their_end_are_rejected(clustered, tmp_path, change, rule):
    index = in_lists(clustered)
    change(index)
    with pytest.raises(ModelError, match=rule):
        save_and_load(index, tmp_path / "model")


def test_reading_nothing_is_rejected(clustered):
    with pytest.raises(ParameterError, match="n_read must be .*, but is 0"):
        in_lists(clustered, n_read=0)


@pytest.fixture
def large(monkeypatch):
    """Every table is large enough for lists."""
    for name in ("MAX_FLOAT32_SIZE", "MAX_INT8_SIZE", "MIN_LISTED_SIZE"):
        monkeypatch.setattr(choice, name, 0)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("target", [0.8, 0.97])
def test_very_many_labels_are_read_in_part_where_that_reaches_the_target(clustered, target):
    vectors, ids, queries = clustered
    index = choose(vectors, ids, queries[:50], recall_target=target, more_queries=queries[50:])
    assert isinstance(index, Quantized)
    assert index.lists_ is not None
    assert index.report["recall"] >= target
    assert 0 < index.report["n_read"] == index.n_read <= 1500
    truth = Exact(vectors, ids).search(queries[:50], 5)
    assert recall(index.search(queries[:50], 5), truth) == pytest.approx(index.report["recall"], abs=1e-4)


@pytest.mark.usefixtures("large")
def test_labels_without_groups_are_read_as_a_whole():
    rng = np.random.default_rng(0)
    vectors, queries = rng.standard_normal((2, 2000, 64))
    index = choose(vectors, np.arange(2000), queries[:100], recall_target=0.97, more_queries=queries[100:])
    assert isinstance(index, Quantized)
    assert index.lists_ is None
    assert "n_read" not in index.report
    assert index.report["recall"] >= 0.97
