import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from labelspace.errors import DataError
from labelspace.types import Dataset, Hierarchy, LabelSpace, TopK, prefixes


def test_topk_from_scores_breaks_ties_by_the_smaller_label_and_drops_minus_infinity():
    top = TopK.from_scores([[0.5, 0.5, -np.inf]], k=4)
    assert top.labels.tolist() == [[0, 1, -1, -1]]
    assert top.scores.tolist() == [[0.5, 0.5, -np.inf, -np.inf]]


def test_topk_as_matrix_marks_the_listed_labels():
    top = TopK(np.array([[2, 0], [-1, -1]]), np.array([[0.9, 0.1], [-np.inf, -np.inf]]))
    assert top.to_csr(4).toarray().tolist() == [[1, 0, 1, 0], [0, 0, 0, 0]]
    assert top.to_csr(4).has_sorted_indices


def test_topk_of_two_shapes_is_refused():
    with pytest.raises(DataError, match=r"\(1, 2\) and \(1, 3\)"):
        TopK(np.zeros((1, 2), np.int32), np.zeros((1, 3), np.float32))


def test_a_dag_knows_its_levels_and_ancestors():
    # 0 is the root; 3 has the parents 1 (level 1) and 2 (level 2), so it lies on level 3.
    dag = Hierarchy.from_edges([[1, 0], [2, 1], [3, 1], [3, 2]], n_labels=5)
    assert dag.levels.tolist() == [0, 1, 2, 3, 0]
    assert dag.ancestors[3].indices.tolist() == [0, 1, 2]
    assert dag.ancestors[4].nnz == 0
    assert dag.edges.tolist() == [[1, 0], [2, 1], [3, 1], [3, 2]]


def test_closing_marks_every_ancestor_once():
    dag = Hierarchy.from_edges([[1, 0], [2, 1], [3, 1], [3, 2]], n_labels=4)
    closed = dag.closed(sp.csr_matrix(np.array([[0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0]], np.float32)))
    assert closed.toarray().tolist() == [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("edges", [[[0, 0]], [[0, 1], [1, 0]], [[4, 0], [0, 1], [1, 2], [2, 0], [3, 4]]])
def test_a_cycle_is_an_error_that_names_it(edges):
    with pytest.raises(DataError, match=r"no cycle, but .*0.* is one"):
        Hierarchy.from_edges(edges, n_labels=5)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_edges_to_smaller_numbers_never_make_a_cycle_and_ancestors_are_reachability(pairs):
    edges = [(max(p), min(p)) for p in pairs if p[0] != p[1]]
    hierarchy = Hierarchy.from_edges(np.array(edges).reshape(-1, 2), 10)
    reach = {i: set() for i in range(10)}
    for child, parent in sorted(edges):  # parents have smaller numbers, so theirs are complete by then
        reach[child] |= {parent} | reach[parent]
    assert all(set(hierarchy.ancestors[i].indices.tolist()) == reach[i] for i in range(10))
    assert all(hierarchy.levels[c] > hierarchy.levels[p] for c, p in edges)


def chain(n):
    return np.stack([np.arange(1, n), np.arange(n - 1)], axis=1)


def test_a_long_chain():
    n = 300
    hierarchy = Hierarchy.from_edges(chain(n), n)
    assert hierarchy.levels.tolist() == list(range(n))
    assert np.array_equal(hierarchy.ancestors.toarray(), np.tri(n, k=-1))
    assert hierarchy.ancestors.has_canonical_format


def test_more_levels_than_the_limit_are_refused(monkeypatch):
    monkeypatch.setenv("LABELSPACE_MAX_LEVELS", "4")
    assert Hierarchy.from_edges(chain(4), 5).levels.max() == 3
    with pytest.raises(DataError, match="a hierarchy must have at most 4 levels, .* set LABELSPACE_MAX_LEVELS"):
        Hierarchy.from_edges(chain(5), 5)
    assert LabelSpace(["a > b > c > d"]).with_paths().hierarchy.levels.tolist() == [3, 2, 1, 0]
    with pytest.raises(DataError, match=r"the path 'a > b > c > d > e\.\.\.' must have at most 4 levels"):
        LabelSpace(["a > b > c > d > e"]).with_paths()


def test_more_ancestors_than_the_limit_are_refused(monkeypatch):
    n = 100
    Y = sp.csr_matrix(([1.0], ([0], [n - 1])), shape=(1, n))
    hierarchy = Hierarchy.from_edges(chain(n), n)
    assert hierarchy.closed(Y).nnz == n
    monkeypatch.setenv("LABELSPACE_MAX_ANCESTORS", "98")
    rule = "at most 3200 ancestors in all, but have 3240 or more; .* set LABELSPACE_MAX_ANCESTORS"
    with pytest.raises(DataError, match=rule):  # 1 + 2 + ... + 80
        _ = Hierarchy.from_edges(chain(n), n).ancestors
    with pytest.raises(DataError, match="at most 98 ancestors in all, but have 99"):
        hierarchy.closed(Y)
    star = Hierarchy.from_edges([(leaf, 0) for leaf in range(1, n)], n)
    assert star.ancestors.nnz == n - 1


def test_a_long_cycle_is_shown_in_part():
    edges = np.stack([np.arange(500), (np.arange(500) + 1) % 500], axis=1)
    with pytest.raises(DataError, match=r"but 0 -> 1 -> .* -> 9 -> \(490 more\) -> 0 is one"):
        Hierarchy.from_edges(edges, 500)


def joined_prefixes(path):
    steps = path.split(" > ")
    return [" > ".join(steps[:n]) for n in range(len(steps) - 1, 0, -1)] if all(map(str.strip, steps)) else []


@given(st.text("a >", max_size=20))
def test_prefixes_are_joined_steps(path):
    assert list(prefixes(path)) == joined_prefixes(path)


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5).map(" > ".join), unique=True, max_size=8))
def test_prefixes_of_all_names_are_appended_in_the_order_of_the_names(names):
    appended = dict.fromkeys([*names, *(prefix for name in names for prefix in joined_prefixes(name))])
    assert list(LabelSpace(names).with_paths().names) == list(appended)


def test_prefixes_that_many_names_share_are_made_once(monkeypatch):
    monkeypatch.setenv("LABELSPACE_MAX_PATH_CHARACTERS", "6")  # of 'a > b' and 'a'
    assert len(LabelSpace([f"a > b > {i}" for i in range(50)]).with_paths()) == 52
    with pytest.raises(DataError, match="at most 6 characters, but have more; .* set LABELSPACE_MAX_PATH_CHARACTERS"):
        LabelSpace(["a > b > 0", "c > 0"]).with_paths()


def test_extending_keeps_ids_and_pads_what_is_known():
    tree = Hierarchy.from_edges([[1, 0]], 2)
    space = LabelSpace(["a", "b"], [["A"], []], np.array([4, 2]), 5, tree)
    wider = space.extended(["b", "c", "c"])
    assert list(wider.names) == ["a", "b", "c"]
    assert list(wider.synonyms) == [["A"], [], []]
    assert wider.counts.tolist() == [4, 2, 0]
    assert wider.n_documents == 5
    assert wider.hierarchy.edges.tolist() == [[1, 0]]
    assert space.extended(["a"]) is space


def test_paths_hang_below_their_prefixes_and_missing_ones_are_appended():
    given = LabelSpace(["a > b > c", "a", "d > e", "x"], [["see"], [], [], []], np.array([3, 9, 1, 1]), 9)
    space = given.with_paths()
    assert list(space.names) == ["a > b > c", "a", "d > e", "x", "a > b", "d"]
    assert space.hierarchy.edges.tolist() == [[0, 4], [2, 5], [4, 1]]
    assert space.hierarchy.levels.tolist() == [2, 0, 1, 0, 1, 0]
    assert list(space.synonyms)[4:] == [[], []]
    assert (space.counts.tolist(), space.n_documents) == ([3, 9, 1, 1, 0, 0], 9)


def test_paths_may_have_another_separator_and_may_be_none():
    assert LabelSpace(["a/b", "a"]).with_paths("/").hierarchy.edges.tolist() == [[0, 1]]
    assert LabelSpace(["a", "b"]).with_paths().hierarchy.edges.tolist() == []
    assert [*prefixes("a >  > b"), *prefixes(" > b"), *prefixes("a > "), *prefixes("")] == []


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        (["a > b", "a > c"], True),
        (["a", "a > b"], True),
        (["a", "b", "a > b"], False),
        (["more > less", "cat", "dog"], False),
        (["a>b", "a/b"], False),
        (["a > ", " > b"], False),
        ([], False),
    ],
)
def test_labels_are_paths_where_half_of_them_lie_below_another(names, paths):
    assert LabelSpace(names).are_paths == paths


def test_a_new_path_hangs_below_its_nearest_prefix():
    space = LabelSpace(["a > b", "a > c"]).with_paths()
    wider = space.extended(["a > b > x > y", "z", "q > r"])
    assert list(wider.names) == ["a > b", "a > c", "a", "a > b > x > y", "z", "q > r"]
    assert wider.hierarchy.edges.tolist() == [[0, 2], [1, 2], [3, 0]]
    by_file = LabelSpace(["b", "a"], hierarchy=Hierarchy.from_edges([[0, 1]], 2))
    assert by_file.extended(["a > c"]).hierarchy.edges.tolist() == [[0, 1]]  # these names are no paths


def test_a_label_taken_out_leaves_its_children_to_its_parents():
    dag = Hierarchy.from_edges([[2, 0], [2, 1], [3, 2], [4, 2], [4, 0]], n_labels=5)
    assert dag.without(2).edges.tolist() == [[3, 0], [3, 1], [4, 0], [4, 1]]
    assert dag.without(0).edges.tolist() == [[2, 1], [3, 2], [4, 2]]


def test_two_labels_of_one_name_are_an_error():
    with pytest.raises(DataError, match="'b' occurs twice"):
        _ = LabelSpace(["a", "b", "b"]).index


def test_counts_come_from_the_training_labels():
    counted = LabelSpace(["a", "b", "c"]).counted(sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0]])))
    assert counted.counts.tolist() == [2, 1, 0]
    assert counted.n_documents == 2


def test_mismatched_sizes_are_refused():
    Y = sp.csr_matrix((2, 3))
    with pytest.raises(DataError, match="has 3 for 2 labels"):
        Dataset(Y, LabelSpace.numbered(2), texts=["a", "b"])
    with pytest.raises(DataError, match="as many texts as documents, but there are 1 for 2"):
        Dataset(Y, LabelSpace.numbered(3), texts=["a"])
    with pytest.raises(DataError, match="has neither"):
        Dataset(Y, LabelSpace.numbered(3))
    with pytest.raises(DataError, match="2 for 3 labels"):
        LabelSpace(["a", "b", "c"], counts=np.array([1, 2]))


def test_rows_pick_documents_with_everything_they_have():
    data = Dataset(
        sp.csr_matrix(np.eye(3, dtype=np.float32)), LabelSpace.numbered(3), ["x", "y", "z"], None, ["i", "j", "k"]
    )
    part = data.rows([2, 0])
    assert part.texts == ["z", "x"]
    assert part.ids == ["k", "i"]
    assert part.Y.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]


def test_a_forest_has_one_root_above_each_label():
    assert Hierarchy.from_edges(np.zeros((0, 2)), 3).is_forest()
    assert Hierarchy.from_edges([[1, 0], [2, 1], [3, 2], [4, 0]], 5).is_forest()
    assert not Hierarchy.from_edges([[2, 0], [2, 1]], 3).is_forest(), "two parents"
    for cycle in ([[1, 1]], [[1, 2], [2, 1]], [[1, 2], [2, 3], [3, 1], [4, 3]]):
        parents = sp.csr_matrix((np.ones(len(cycle), np.float32), np.array(cycle).T), shape=(5, 5))
        assert not Hierarchy(parents).is_forest()
