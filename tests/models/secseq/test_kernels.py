import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.kernels.beam_search import average_tree_lists
from labelspace.models.secseq.kernels import CodeScores, digit_scores, sample_codes, search_codes, softmax_log_odds
from labelspace.types import TopK

HIDDEN = 3


class Case:
    """A tree of codes with random scores; labels that share a code are children of its leaf."""

    def __init__(self, codes, width, rng, softmax, pruned=()):
        self.softmax = softmax
        n_digits = codes.shape[1]
        prefixes = [sorted({tuple(code[:level]) for code in codes.tolist()}) for level in range(n_digits + 1)]
        nodes = [prefix for level in prefixes for prefix in level]
        index = {prefix: at for at, prefix in enumerate(nodes)}
        below = {prefix: [] for prefix in nodes}
        for prefix in nodes[1:]:
            below[prefix[:-1]].append(prefix)
        labels_of = {prefix: [] for prefix in prefixes[-1]}
        for label_id, code in enumerate(codes.tolist()):
            labels_of[tuple(code)].append(label_id)
        first, last = np.zeros((2, len(nodes)), np.int32)
        label, digit = np.full((2, len(nodes)), -1, np.int32)
        gate, gates = np.full(len(nodes), -1, np.int32), []
        fixed = [np.inf] * len(nodes)
        shared, share = [], []
        for at, prefix in enumerate(nodes):
            digit[at] = prefix[-1] if prefix else -1
            children = below[prefix]
            if children:
                first[at], last[at] = index[children[0]], index[children[-1]] + 1
            if len(children) > 1:
                gate[at] = len(gates)
                gates.append(rng.standard_normal(HIDDEN))
            own_labels = labels_of.get(prefix, ())
            if len(own_labels) == 1:
                label[at] = own_labels[0]
            elif len(own_labels):
                first[at] = len(nodes) + len(shared)
                shared += list(own_labels)
                parts = rng.random(len(own_labels)) + 0.1
                share += list(parts / parts.sum() if softmax else np.minimum(parts, 1.0))
                last[at] = len(nodes) + len(shared)
        extra = len(shared)
        with np.errstate(divide="ignore"):
            odds = np.log(share) - np.log1p(-np.array(share))
        self.first, self.last = (np.append(a, np.zeros(extra)).astype(np.int32) for a in (first, last))
        self.label, self.digit = np.append(label, shared).astype(np.int32), np.append(digit, [0] * extra)
        self.digit = self.digit.astype(np.int32)
        self.gate = np.append(gate, [-1] * extra).astype(np.int32)
        self.gates = np.array(gates, np.float32).reshape(-1, HIDDEN)
        self.fixed = np.append(fixed, odds).astype(np.float32)
        self.prior = rng.standard_normal(len(self.label)).astype(np.float32)
        for node in pruned:
            self.prior[node] = -np.inf
        self.outputs = rng.standard_normal((n_digits, width, HIDDEN)).astype(np.float32)
        self.n_labels = len(codes)

    @property
    def table(self):
        nodes = self.gate, self.digit, self.prior, self.fixed, self.first, self.last, self.label
        return CodeScores(self.outputs, self.gates, *nodes)

    def steps(self, a, node, level):
        """The probabilities of a node's children."""
        children = np.arange(self.first[node], self.last[node])
        if self.gate[node] < 0:
            return children, 1 / (1 + np.exp(-self.fixed[children].astype(np.float64)))
        gated = (a * self.gates[self.gate[node]]).astype(np.float64)
        z = np.array([self.outputs[level, self.digit[child]] @ gated + self.prior[child] for child in children])
        if self.softmax:
            z = np.exp(z - z.max())
            return children, z / z.sum()
        return children, 1 / (1 + np.exp(-z))

    def probabilities(self, a):
        """The product along the path to every label: no beam."""
        probabilities, stack = np.zeros(self.n_labels), [(0, 0, 1.0)]
        while stack:
            node, level, probability = stack.pop()
            if self.label[node] >= 0:
                probabilities[self.label[node]] = probability
            children, steps = self.steps(a, node, level) if self.last[node] else ((), ())
            stack += [(child, level + 1, probability * step) for child, step in zip(children, steps, strict=True)]
        return probabilities

    def search(self, documents, beam, k):
        top = TopK.empty(len(documents), k)
        search_codes(documents, self.table, self.softmax, beam, top.labels, top.scores)
        return top

    def draw(self, documents, samples, k, seed=0):
        top = TopK.empty(len(documents), k)
        sample_codes(documents, self.table, self.softmax, samples, seed, top.labels, top.scores)
        return top


def random_documents(rng, n=3):
    return rng.standard_normal((n, HIDDEN)).astype(np.float32)


def dense_scores(top, n_labels):
    """The scores of all labels per row, 0 for those that are not listed."""
    dense = np.zeros((len(top.labels), n_labels))
    for row, (labels, scores) in enumerate(zip(top.labels, top.scores, strict=True)):
        dense[row, labels[labels >= 0]] = scores[labels >= 0]
    return dense


@st.composite
def cases(draw):
    """Few codes of few values: some are shared, and some prefixes have a single digit after them."""
    width, digits, n_labels = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    return Case(rng.integers(0, width, (n_labels, digits)), width, rng, draw(st.booleans())), random_documents(rng)


@settings(max_examples=60)
@given(cases())
def test_a_wide_beam_ranks_all_labels_by_their_products(drawn):
    case, documents = drawn
    top = case.search(documents, beam=64, k=case.n_labels)
    for row, a in enumerate(documents):
        probabilities = case.probabilities(a)
        assert sorted(top.labels[row]) == list(range(case.n_labels)), "each once"
        assert np.allclose(top.scores[row], probabilities[top.labels[row]], rtol=1e-4, atol=1e-7)
        assert (np.diff(top.scores[row]) <= 0).all()


@settings(max_examples=60)
@given(cases(), st.integers(1, 3), st.integers(1, 15))
def test_a_narrow_beam_lists_labels_that_exist_with_their_products(drawn, beam, k):
    case, documents = drawn
    top = case.search(documents, beam, k)
    for row, a in enumerate(documents):
        labels = top.labels[row][top.labels[row] >= 0]
        assert 0 < len(labels) <= min(k, case.n_labels)
        assert len(set(labels)) == len(labels)
        assert np.allclose(top.scores[row, : len(labels)], case.probabilities(a)[labels], rtol=1e-4, atol=1e-7)
        assert (top.labels[row, len(labels) :] == -1).all()
        assert np.isneginf(top.scores[row, len(labels) :]).all()


def mixed_case(softmax, seed=0, pruned=()):
    """Codes of 3 digits: 0.. with all values, 1.. with one child, 2.. whose code is shared by three."""
    codes = [[0, i, j] for i in range(3) for j in range(2)] + [[1, 2, 1]] + [[2, 0, 0]] * 3
    return Case(np.array(codes), 3, np.random.default_rng(seed), softmax, pruned)


@pytest.mark.parametrize("softmax", [False, True])
def test_a_beam_of_one_follows_the_best_child(softmax):
    case = mixed_case(softmax)
    for a in random_documents(np.random.default_rng(1), 20):
        node = level = 0
        while case.label[case.first[node]] < 0:
            children, steps = case.steps(a, node, level)
            node, level = children[np.argmax(steps)], level + 1
        expected = case.label[case.first[node] : case.last[node]]
        assert set(case.search(a[None], 1, 10).labels[0]) - {-1} == set(expected)


@pytest.mark.parametrize("softmax", [False, True])
def test_a_label_alone_at_the_end_of_a_chain_has_the_probability_of_its_last_choice(softmax):
    case = mixed_case(softmax)
    a = random_documents(np.random.default_rng(2), 1)
    _, steps = case.steps(a[0], 0, 0)
    scores = dense_scores(case.search(a, 8, 10), 10)[0]
    assert scores[6] == pytest.approx(steps[1], rel=1e-5)
    shares = 1 / (1 + np.exp(-case.fixed[-3:]))
    assert scores[7:] == pytest.approx(steps[2] * shares, rel=1e-5)


@pytest.mark.parametrize("softmax", [False, True])
def test_children_with_a_prior_of_minus_infinity_are_never_returned_nor_sampled(softmax):
    for node in (2, 3, 5, 9):  # 1.., 2.., 0 1 ., 0 0 0
        case = mixed_case(softmax, pruned=[node])
        pruned_labels = {2: {6}, 3: {7, 8, 9}, 5: {2, 3}, 9: {0}}[node]
        documents = random_documents(np.random.default_rng(3), 5)
        for top in (case.search(documents, 32, 10), case.draw(documents, 300, 10)):
            assert not pruned_labels & set(top.labels.ravel()), node
            assert 10 - len(pruned_labels) - 2 <= len(set(top.labels[0]) - {-1}) <= 10 - len(pruned_labels)
            assert not np.isnan(top.scores).any()


def test_a_last_child_of_probability_0_is_not_sampled_by_rounding():
    """Probabilities may sum up to a little less than 1: here to much less, so most draws exceed the sum."""
    case = Case(np.array([[0], [1], [2], [3]]), 4, np.random.default_rng(0), True)
    case.gate[0], case.fixed[1:5] = -1, [-40.0, -40.0, -40.0, -np.inf]
    top = case.draw(np.zeros((1, HIDDEN), np.float32), 50, 4)
    assert 3 not in top.labels
    assert top.labels[0, 0] == 2
    assert top.scores[0, 0] > 0.9


@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("seed", [0, 7])
def test_sampled_shares_converge_to_the_probabilities(softmax, seed):
    case, samples = mixed_case(softmax, seed), 4000
    documents = random_documents(np.random.default_rng(4), 2)
    shares = dense_scores(case.draw(documents, samples, 10, seed), 10)
    for row, a in enumerate(documents):
        probabilities = case.probabilities(a)
        error = np.sqrt(probabilities * (1 - probabilities) / samples)
        assert (np.abs(shares[row] - probabilities) < 4.5 * error + 1e-9).all()
        if softmax:
            assert probabilities.sum() == pytest.approx(1)
            assert shares[row].sum() == pytest.approx(1)


def test_labels_are_sampled_independently_without_softmax():
    """The joint probabilities of a single sample, one per seed."""
    case = Case(np.array([[0], [1]]), 2, np.random.default_rng(1), False)
    a = random_documents(np.random.default_rng(5), 1)
    drawn = np.array([dense_scores(case.draw(a, 1, 2, seed), 2)[0] for seed in range(4000)])
    probabilities = case.probabilities(a[0])
    both = probabilities.prod()
    assert set(drawn.ravel()) == {0.0, 1.0}
    assert abs(drawn.prod(axis=1).mean() - both) < 4.5 * np.sqrt(both * (1 - both) / 4000)


@pytest.mark.parametrize("softmax", [False, True])
def test_samples_depend_on_the_seed_and_not_on_other_documents(softmax):
    case = mixed_case(softmax)
    documents = random_documents(np.random.default_rng(6), 6)
    full, again, other = (case.draw(documents, 200, 10, seed) for seed in (3, 3, 4))
    assert np.array_equal(full.labels, again.labels)
    assert np.array_equal(full.scores, again.scores)
    assert not np.array_equal(dense_scores(full, 10), dense_scores(other, 10))
    for row in range(6):
        alone = case.draw(documents[row : row + 1], 200, 10, 3)
        assert np.array_equal(alone.labels[0], full.labels[row])
        assert np.array_equal(alone.scores[0], full.scores[row])
        single = case.search(documents[row : row + 1], 4, 10)
        batch = case.search(documents, 4, 10)
        assert np.array_equal(single.labels[0], batch.labels[row])
        assert np.array_equal(single.scores[0], batch.scores[row])


def test_samples_are_cut_to_the_top_k():
    case = mixed_case(False)
    documents = random_documents(np.random.default_rng(7), 4)
    full, cut = case.draw(documents, 50, 10), case.draw(documents, 50, 3)
    assert np.array_equal(cut.labels, full.labels[:, :3])
    assert np.array_equal(cut.scores, full.scores[:, :3])
    for labels, scores in zip(full.labels, full.scores, strict=True):
        pairs = [(-score, label) for score, label in zip(scores, labels, strict=True) if label >= 0]
        assert pairs == sorted(pairs), "ties: the smaller id first"


@pytest.mark.parametrize("softmax", [False, True])
def test_a_node_with_many_children_enlarges_the_buffer(softmax):
    case = Case(np.arange(1100)[:, None], 1100, np.random.default_rng(8), softmax)
    a = random_documents(np.random.default_rng(9), 1)
    probabilities = case.probabilities(a[0])
    top = case.search(a, 2, 5)
    assert np.allclose(top.scores[0], np.sort(probabilities)[::-1][:5], rtol=1e-4)
    shares = dense_scores(case.draw(a, 20, 1100), 1100)[0]
    assert shares.sum() == pytest.approx(1 if softmax else probabilities.sum(), rel=0.1)


def test_the_scores_of_digits_are_those_of_the_formula():
    case = mixed_case(False)
    a = random_documents(np.random.default_rng(10), 1)[0]
    for node, level in ((0, 0), (1, 1), (4, 2), (2, 1)):
        first, last = case.first[node], case.last[node]
        out, scratch = np.empty(last - first, np.float32), np.empty(HIDDEN, np.float32)
        digit_scores(a, node, case.outputs[level], case.table, first, last, scratch, out)
        with np.errstate(divide="ignore"):
            _, steps = case.steps(a, node, level)
        assert np.allclose(1 / (1 + np.exp(-out)), steps, atol=1e-6)


@pytest.mark.parametrize("scores", [[0.0], [1.0, 2.0, -3.0], [80.0, -80.0], [-np.inf, 0.5, 0.5], [500.0, 499.0]])
def test_log_odds_are_those_of_a_softmax(scores):
    out = np.array(scores, np.float32)
    probabilities = np.exp(np.array(scores) - np.max(scores))
    probabilities /= probabilities.sum()
    softmax_log_odds(out)
    assert not np.isnan(out).any()
    with np.errstate(over="ignore"):
        assert np.allclose(1 / (1 + np.exp(-out.astype(np.float64))), probabilities, rtol=1e-5, atol=1e-30)


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 8), st.integers(0, 2**31))
def test_the_mean_of_lists_counts_missing_labels_as_0(trees, list_size, k, seed):
    rng = np.random.default_rng(seed)
    n, n_labels = 3, 7
    lists, scores = np.full((trees, n, list_size), -1, np.int32), np.full((trees, n, list_size), -np.inf, np.float32)
    table = np.zeros((trees, n, n_labels))
    for tree in range(trees):
        for row in range(n):
            size = rng.integers(0, min(list_size, n_labels) + 1)
            lists[tree, row, :size] = rng.permutation(n_labels)[:size]
            scores[tree, row, :size] = np.sort(rng.random(size))[::-1]
            table[tree, row, lists[tree, row, :size]] = scores[tree, row, :size]
    out = TopK.empty(n, k)
    average_tree_lists(lists, scores, out.labels, out.scores)
    mean = table.mean(axis=0)
    for row in range(n):
        expected = np.sort(mean[row][mean[row] > 0])[::-1][:k]
        labels = out.labels[row][out.labels[row] >= 0]
        assert len(labels) == len(expected)
        assert np.allclose(out.scores[row, : len(labels)], expected, rtol=1e-5)
        assert np.allclose(mean[row, labels], expected, rtol=1e-5)


def test_a_listed_score_of_0_stays_finite():
    labels, scores = np.array([[[4, 2]]], np.int32), np.array([[[0.5, 0.0]]], np.float32)
    out = TopK.empty(1, 3)
    average_tree_lists(labels, scores, out.labels, out.scores)
    assert out.labels.tolist() == [[4, 2, -1]]
    assert out.scores[0].tolist() == [0.5, 0.0, -np.inf]
