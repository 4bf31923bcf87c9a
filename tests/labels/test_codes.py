import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelspace.errors import DataError, ParameterError
from labelspace.labels.codes import QUANTIZERS, SCHEMES, Codes, CodeTree, code_summary, make_codes
from labelspace.report.tree import tree_newick, tree_summary
from labelspace.types import LabelSpace


def random_vectors(n, dimension=5, seed=0, decimals=None):
    vectors = np.random.default_rng(seed).standard_normal((n, dimension)).astype(np.float32)
    return vectors if decimals is None else vectors.round(decimals)


def naive_codes(vectors, width, digits, recursive, quantizer, seed):
    """The same in plain Python: lists of labels by prefix, split one by one."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((len(vectors), digits), int)
    groups = {(): list(range(len(vectors)))}
    for position in range(digits):
        if all(len(group) == 1 for group in groups.values()) and recursive:
            break
        directions = rng.standard_normal((len(groups), vectors.shape[1]), np.float32)
        for direction, group in zip(directions, [groups[prefix] for prefix in sorted(groups)], strict=True):
            z = {label: np.einsum("j,j->", vectors[label], direction) for label in group}
            low, high = float(min(z.values())), float(max(z.values()))
            few = recursive and len(group) <= width
            for rank, label in enumerate(sorted(group, key=lambda label: (z[label], label))):
                if quantizer == "ordinal" or few:
                    digit = rank * min(width, len(group)) // len(group)
                else:
                    digit = 0 if low == high else min(int((z[label] - low) / (high - low) * width), width - 1)
                codes[label, position] = digit
        if recursive:
            groups = {}
            for label, code in enumerate(codes[:, : position + 1].tolist()):
                groups.setdefault(tuple(code), []).append(label)
    return codes


@pytest.mark.parametrize("quantizer", QUANTIZERS)
@pytest.mark.parametrize("scheme", ["projection", "tree"])
@pytest.mark.parametrize(("n", "width", "digits"), [(1, 2, 2), (5, 8, 2), (40, 3, 3), (100, 7, 2), (60, 2, 9)])
def test_codes_are_those_of_the_naive_implementation(scheme, quantizer, n, width, digits):
    vectors = random_vectors(n, seed=n)
    codes = make_codes(vectors, width, digits, scheme, quantizer, seed=3)
    expected = naive_codes(vectors, width, digits, scheme == "tree", quantizer, seed=3)
    assert codes.code_size == width
    assert codes.digits.tolist() == expected.tolist()


sizes = st.tuples(st.integers(1, 150), st.integers(2, 9), st.integers(1, 4))


@given(sizes, st.sampled_from(["tree", "clusters"]), st.integers(0, 9), st.sampled_from([None, 0]))
def test_labels_share_codes_only_where_there_are_too_few(size, scheme, seed, decimals):
    n, width, digits = size
    codes = make_codes(random_vectors(n, seed=seed, decimals=decimals), width, digits, scheme, "ordinal", seed)
    labels_per_code = Counter(map(tuple, codes.digits.tolist()))
    assert len(labels_per_code) == min(n, width**digits)
    assert max(labels_per_code.values()) == math.ceil(n / width**digits)
    for position in range(digits):  # the labels of every prefix are split evenly
        of_prefix = {}
        for code, count in Counter(map(tuple, codes.digits[:, : position + 1].tolist())).items():
            of_prefix.setdefault(code[:-1], []).append(count)
        for counts in of_prefix.values():
            assert max(counts) - min(counts) <= 1
            assert len(counts) == min(sum(counts), width)


@given(sizes, st.sampled_from(SCHEMES), st.sampled_from(QUANTIZERS), st.integers(0, 9))
def test_the_seed_decides_and_inputs_stay_as_they_are(size, scheme, quantizer, seed):
    n, width, digits = size
    vectors = random_vectors(n)
    before = vectors.copy()
    codes = make_codes(vectors, width, digits, scheme, quantizer, seed)
    assert codes.digits.dtype == np.int32
    assert codes.digits.shape == (n, digits)
    assert np.array_equal(codes.digits, make_codes(vectors, width, digits, scheme, quantizer, seed).digits)
    assert np.array_equal(vectors, before)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_seeds_change_codes_and_threads_do_not(scheme, monkeypatch):
    vectors = random_vectors(200)
    monkeypatch.setenv("LABELSPACE_THREADS", "1")
    one = make_codes(vectors, 4, 4, scheme, "ordinal", seed=1)
    assert not np.array_equal(one.digits, make_codes(vectors, 4, 4, scheme, "ordinal", seed=2).digits)
    monkeypatch.setenv("LABELSPACE_THREADS", "2")
    assert np.array_equal(one.digits, make_codes(vectors, 4, 4, scheme, "ordinal", seed=1).digits)


def test_four_thousand_labels_have_unique_codes_of_two_digits_of_64():
    vectors = random_vectors(4000, 16)
    for scheme in ("tree", "clusters"):
        assert code_summary(make_codes(vectors, 64, 2, scheme, "ordinal", seed=0))["collisions"] == 0


def test_many_rows_are_projected_block_by_block(monkeypatch):
    vectors = random_vectors(50)
    codes = make_codes(vectors, 3, 3, "tree", "ordinal", seed=0)
    monkeypatch.setattr("labelspace.labels.codes.ROW_BLOCK", 7)
    assert np.array_equal(codes.digits, make_codes(vectors, 3, 3, "tree", "ordinal", seed=0).digits)


def test_digits_below_a_single_label_are_0():
    digits = make_codes(random_vectors(20), 5, 4, "tree", "ordinal", seed=0).digits
    assert digits[:, 1].any()
    assert not digits[:, 2:].any()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("quantizer", QUANTIZERS)
def test_one_label(scheme, quantizer):
    codes = make_codes(np.zeros((1, 3), np.float32), 4, 2, scheme, quantizer, seed=0)
    assert codes.digits.tolist() == [[0, 0]]
    assert code_summary(codes)["evenness"] == [0.0, 0.0]


def test_ordinal_quantization_splits_ties_by_id_and_uniform_quantization_does_not_split_them():
    vectors = np.ones((10, 3), np.float32)
    assert make_codes(vectors, 2, 1, "projection", "ordinal", seed=0).digits.ravel().tolist() == [0] * 5 + [1] * 5
    assert make_codes(vectors, 3, 2, "tree", "ordinal", seed=0).digits[:, 0].tolist() == [0] * 4 + [1] * 3 + [2] * 3
    for scheme in ("projection", "tree"):
        assert not make_codes(vectors, 3, 2, scheme, "uniform", seed=0).digits.any()
    assert code_summary(make_codes(vectors, 4, 2, "clusters", "uniform", seed=0))["collisions"] == 0


def test_clusters_do_not_depend_on_norms():
    vectors = random_vectors(60)
    scaled = vectors * np.random.default_rng(1).uniform(0.5, 9, (60, 1)).astype(np.float32)
    one, other = (make_codes(v, 4, 1, "clusters", "ordinal", seed=0).digits for v in (vectors, scaled))
    assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"code_size": 1}, "code_size must be at least 2, but is 1"),
        ({"code_length": 0}, "code_length must be at least 1, but is 0"),
        ({"scheme": "hash"}, "scheme must be one of projection, tree, clusters, but is 'hash'"),
        ({"quantizer": "log"}, "quantizer must be one of ordinal, uniform, but is 'log'"),
        ({"vectors": np.zeros((0, 3), np.float32)}, r"shape \(0, 3\); give at least one label"),
        ({"vectors": np.zeros(3, np.float32)}, r"shape \(3,\)"),
    ],
)
def test_invalid_arguments_are_refused(change, message):
    given = {
        "vectors": np.ones((3, 2), np.float32),
        "code_size": 2,
        "code_length": 2,
        "scheme": "tree",
        "quantizer": "ordinal",
    }
    with pytest.raises((ParameterError, DataError), match=message):
        make_codes(**{**given, **change}, seed=0)


@pytest.mark.parametrize(
    ("digits", "message"),
    [([[0, 2]], "from 0 to 1, but are from 0 to 2"), ([[-1]], "but are from -1 to -1"), ([[]], r"shape \(1, 0\)")],
)
def test_codes_are_checked(digits, message):
    with pytest.raises(DataError, match=message):
        Codes(np.array(digits, np.int32), code_size=2)


some_codes = st.builds(
    lambda n, digits, width, seed: Codes(np.random.default_rng(seed).integers(0, width, (n, digits)), width),
    st.integers(1, 40), st.integers(1, 4), st.integers(2, 5), st.integers(0, 99),
)  # fmt: skip


@given(some_codes)
def test_the_tree_has_exactly_the_prefixes_of_the_codes(codes):
    tree = CodeTree.from_codes(codes)
    rows = [tuple(row) for row in codes.digits.tolist()]
    levels = [sorted({row[:size] for row in rows}) for size in range(codes.code_length + 1)]
    prefixes = [prefix for level in levels for prefix in level]
    number = {prefix: node for node, prefix in enumerate(prefixes)}
    assert (tree.n_nodes, tree.code_length) == (len(prefixes), codes.code_length)
    assert tree.level_starts.tolist() == np.cumsum([0, *map(len, levels)]).tolist()
    assert tree.digit.tolist() == [-1, *(prefix[-1] for prefix in prefixes[1:])]
    for prefix, node in number.items():
        children = [number[other] for other in prefixes if other and other[:-1] == prefix]
        assert list(range(tree.first_child[node], tree.last_child[node])) == children
        assert children or not tree.first_child[node]
    paths = [[number[row[:size]] for size in range(codes.code_length + 1)] for row in rows]
    assert tree.ancestors().tolist() == paths
    assert [tree.ancestors()[label].tolist() for label in range(len(rows))] == paths
    assert tree.leaf_of.tolist() == [path[-1] for path in paths]
    for leaf, code in enumerate(levels[-1]):
        labels = tree.labels[tree.label_starts[leaf] : tree.label_starts[leaf + 1]].tolist()
        assert labels == [label for label, row in enumerate(rows) if row == code]
    assert {a.dtype for a in (tree.first_child, tree.last_child, tree.digit, tree.labels, tree.leaf_of)} == {
        np.dtype(np.int32)
    }


@given(some_codes)
def test_as_nodes_every_label_is_a_leaf_below_its_prefixes(codes):
    nodes = CodeTree.from_codes(codes).to_nodes()
    claimed = [c for node in range(len(nodes)) for c in range(nodes.first_child[node], nodes.last_child[node])]
    assert claimed == list(range(1, len(nodes))), "children are consecutive, in the order of their parents"
    assert sorted(nodes.label[nodes.label >= 0]) == list(range(codes.n_labels))
    assert ((nodes.label < 0) == (nodes.last_child > nodes.first_child)).all()
    below = [{int(label)} - {-1} for label in nodes.label]
    for node in range(len(nodes) - 1, 0, -1):
        below[nodes.parent[node]] |= below[node]
    rows = codes.digits.tolist()
    for node, labels in enumerate(below):
        if nodes.label[node] < 0:
            level = int(nodes.level[node])
            prefix = rows[min(labels)][:level]
            assert labels == {label for label, row in enumerate(rows) if row[:level] == prefix}
            assert len(labels) > 1 or node == 0, "a single label needs no more nodes"


def test_nodes_of_codes_can_be_printed():
    nodes = CodeTree.from_codes(Codes(np.array([[1, 0], [0, 2], [1, 0], [1, 1]], np.int32), code_size=3)).to_nodes()
    assert tree_newick(nodes, LabelSpace(["a", "b", "c", "d"])) == "(b,((a,c),d));"
    assert tree_summary(nodes)["n_labels"] == 4
    alone = CodeTree.from_codes(Codes(np.zeros((1, 3), np.int32), code_size=3)).to_nodes()
    assert alone.label.tolist() == [-1, 0]


def test_the_figures_of_a_case_worked_by_hand():
    codes = Codes(np.array([[0, 3], [0, 3], [0, 1], [1, 0], [1, 0], [1, 0]], np.int32), code_size=4)
    summary = code_summary(codes)
    thirds = -(math.log(1 / 6) / 6 + math.log(1 / 3) / 3 + math.log(1 / 2) / 2) / math.log(4)
    assert summary == {
        "n_labels": 6,
        "width": 4,
        "digits": 2,
        "codes": 3,
        "collisions": 5,
        "largest": 3,
        "occupancy": 3 / 16,
        "used": [2, 3],
        "evenness": [0.5, round(thirds, 6)],
        "bits_a_label": 4.0,
        "outputs": 8,
        "compression": 0.75,
    }
    assert {type(value) for value in summary.values()} == {int, float, list}


def test_an_astronomic_number_of_codes_does_not_overflow():
    assert code_summary(Codes(np.zeros((2, 400), np.int32), code_size=1000))["occupancy"] == 0.0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_seed_may_be_as_large_as_a_model_makes_it(scheme):
    codes = [make_codes(random_vectors(30), 3, 3, scheme, "ordinal", 2**31 * 1_000_003 + tree) for tree in range(2)]
    assert not np.array_equal(codes[0].digits, codes[1].digits)
