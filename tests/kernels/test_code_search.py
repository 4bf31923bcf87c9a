import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.kernels.code_search import digit_scores, draw_codes, mean_of_lists, search_codes, to_log_odds
from labelspace.kernels.random_numbers import uniform
from labelspace.types import TopK

HIDDEN = 3


class Case:
    """A tree of codes with random scores; labels that share a code are children of its leaf."""

    def __init__(self, codes, width, rng, choose, unseen=()):
        self.choose = choose
        n_digits = codes.shape[1]
        prefixes = [sorted({tuple(code[:level]) for code in codes.tolist()}) for level in range(n_digits + 1)]
        nodes = [prefix for level in prefixes for prefix in level]
        place = {prefix: at for at, prefix in enumerate(nodes)}
        below = {prefix: [] for prefix in nodes}
        for prefix in nodes[1:]:
            below[prefix[:-1]].append(prefix)
        owners = {prefix: [] for prefix in prefixes[-1]}
        for owner, code in enumerate(codes.tolist()):
            owners[tuple(code)].append(owner)
        first, last = np.zeros((2, len(nodes)), np.int32)
        label, digit = np.full((2, len(nodes)), -1, np.int32)
        gate, gates = np.full(len(nodes), -1, np.int32), []
        fixed = [np.inf] * len(nodes)
        shared, share = [], []
        for at, prefix in enumerate(nodes):
            digit[at] = prefix[-1] if prefix else -1
            children = below[prefix]
            if children:
                first[at], last[at] = place[children[0]], place[children[-1]] + 1
            if len(children) > 1:
                gate[at] = len(gates)
                gates.append(rng.standard_normal(HIDDEN))
            mine = owners.get(prefix, ())
            if len(mine) == 1:
                label[at] = mine[0]
            elif len(mine):
                first[at] = len(nodes) + len(shared)
                shared += list(mine)
                parts = rng.random(len(mine)) + 0.1
                share += list(parts / parts.sum() if choose else np.minimum(parts, 1.0))
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
        for node in unseen:
            self.prior[node] = -np.inf
        self.outputs = rng.standard_normal((n_digits, width, HIDDEN)).astype(np.float32)
        self.n_labels = len(codes)

    @property
    def tables(self):
        return (
            self.outputs, self.gates, self.gate, self.digit, self.prior, self.fixed, self.first, self.last, self.label
        )  # fmt: skip

    def steps(self, a, node, level):
        """The chances of a node's children."""
        children = np.arange(self.first[node], self.last[node])
        if self.gate[node] < 0:
            return children, 1 / (1 + np.exp(-self.fixed[children].astype(np.float64)))
        own = (a * self.gates[self.gate[node]]).astype(np.float64)
        z = np.array([self.outputs[level, self.digit[child]] @ own + self.prior[child] for child in children])
        if self.choose:
            z = np.exp(z - z.max())
            return children, z / z.sum()
        return children, 1 / (1 + np.exp(-z))

    def chances(self, a):
        """The product along the way to every label: no beam."""
        found, waiting = np.zeros(self.n_labels), [(0, 0, 1.0)]
        while waiting:
            node, level, chance = waiting.pop()
            if self.label[node] >= 0:
                found[self.label[node]] = chance
            children, steps = self.steps(a, node, level) if self.last[node] else ((), ())
            waiting += [(child, level + 1, chance * step) for child, step in zip(children, steps, strict=True)]
        return found

    def search(self, documents, beam, listed):
        top = TopK.empty(len(documents), listed)
        search_codes(documents, *self.tables, self.choose, beam, top.labels, top.scores)
        return top

    def draw(self, documents, samples, listed, seed=0):
        top = TopK.empty(len(documents), listed)
        draw_codes(documents, *self.tables, self.choose, samples, seed, top.labels, top.scores)
        return top


def documents_of(rng, n=3):
    return rng.standard_normal((n, HIDDEN)).astype(np.float32)


def by_label(top, n_labels):
    """The scores of all labels of each row, 0 for those that are not listed."""
    found = np.zeros((len(top.labels), n_labels))
    for row, (labels, scores) in enumerate(zip(top.labels, top.scores, strict=True)):
        found[row, labels[labels >= 0]] = scores[labels >= 0]
    return found


@st.composite
def cases(draw):
    """Few codes of few values: some are shared, and some prefixes have a single digit after them."""
    width, digits, n_labels = draw(st.integers(1, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    return Case(rng.integers(0, width, (n_labels, digits)), width, rng, draw(st.booleans())), documents_of(rng)


@settings(max_examples=60)
@given(cases())
def test_a_wide_beam_ranks_all_labels_by_their_products(drawn):
    case, documents = drawn
    top = case.search(documents, beam=64, listed=case.n_labels)
    for row, a in enumerate(documents):
        chances = case.chances(a)
        assert sorted(top.labels[row]) == list(range(case.n_labels)), "each once"
        assert np.allclose(top.scores[row], chances[top.labels[row]], rtol=1e-4, atol=1e-7)
        assert (np.diff(top.scores[row]) <= 0).all()


@settings(max_examples=60)
@given(cases(), st.integers(1, 3), st.integers(1, 15))
def test_a_narrow_beam_lists_labels_that_exist_with_their_products(drawn, beam, listed):
    case, documents = drawn
    top = case.search(documents, beam, listed)
    for row, a in enumerate(documents):
        found = top.labels[row][top.labels[row] >= 0]
        assert 0 < len(found) <= min(listed, case.n_labels)
        assert len(set(found)) == len(found)
        assert np.allclose(top.scores[row, : len(found)], case.chances(a)[found], rtol=1e-4, atol=1e-7)
        assert (top.labels[row, len(found) :] == -1).all()
        assert np.isneginf(top.scores[row, len(found) :]).all()


def whole_case(choose, seed=0, unseen=()):
    """Codes of 3 digits: 0.. with all values, 1.. with one way on, 2.. whose code is shared by three."""
    codes = [[0, i, j] for i in range(3) for j in range(2)] + [[1, 2, 1]] + [[2, 0, 0]] * 3
    return Case(np.array(codes), 3, np.random.default_rng(seed), choose, unseen)


@pytest.mark.parametrize("choose", [False, True])
def test_a_beam_of_one_follows_the_best_child(choose):
    case = whole_case(choose)
    for a in documents_of(np.random.default_rng(1), 20):
        node = level = 0
        while case.label[case.first[node]] < 0:
            children, steps = case.steps(a, node, level)
            node, level = children[np.argmax(steps)], level + 1
        expected = case.label[case.first[node] : case.last[node]]
        assert set(case.search(a[None], 1, 10).labels[0]) - {-1} == set(expected)


@pytest.mark.parametrize("choose", [False, True])
def test_a_label_alone_at_the_end_of_a_chain_has_the_chance_of_its_last_choice(choose):
    case = whole_case(choose)
    a = documents_of(np.random.default_rng(2), 1)
    _, steps = case.steps(a[0], 0, 0)
    scores = by_label(case.search(a, 8, 10), 10)[0]
    assert scores[6] == pytest.approx(steps[1], rel=1e-5)
    shares = 1 / (1 + np.exp(-case.fixed[-3:]))
    assert scores[7:] == pytest.approx(steps[2] * shares, rel=1e-5)


@pytest.mark.parametrize("choose", [False, True])
def test_what_a_prior_rules_out_is_neither_found_nor_drawn(choose):
    for node in (2, 3, 5, 9):  # 1.., 2.., 0 1 ., 0 0 0
        case = whole_case(choose, unseen=[node])
        hidden = {2: {6}, 3: {7, 8, 9}, 5: {2, 3}, 9: {0}}[node]
        documents = documents_of(np.random.default_rng(3), 5)
        for top in (case.search(documents, 32, 10), case.draw(documents, 300, 10)):
            assert not hidden & set(top.labels.ravel()), node
            assert 10 - len(hidden) - 2 <= len(set(top.labels[0]) - {-1}) <= 10 - len(hidden)
            assert not np.isnan(top.scores).any()


def test_a_last_child_without_a_chance_is_not_drawn_by_rounding():
    """Chances may sum up to a little less than 1: here to much less, so that nearly every draw goes past all."""
    case = Case(np.array([[0], [1], [2], [3]]), 4, np.random.default_rng(0), True)
    case.gate[0], case.fixed[1:5] = -1, [-40.0, -40.0, -40.0, -np.inf]
    top = case.draw(np.zeros((1, HIDDEN), np.float32), 50, 4)
    assert 3 not in top.labels
    assert top.labels[0, 0] == 2
    assert top.scores[0, 0] > 0.9


@pytest.mark.parametrize("choose", [False, True])
@pytest.mark.parametrize("seed", [0, 7])
def test_draws_come_to_the_exact_chances(choose, seed):
    case, samples = whole_case(choose, seed), 4000
    documents = documents_of(np.random.default_rng(4), 2)
    found = by_label(case.draw(documents, samples, 10, seed), 10)
    for row, a in enumerate(documents):
        chances = case.chances(a)
        error = np.sqrt(chances * (1 - chances) / samples)
        assert (np.abs(found[row] - chances) < 4.5 * error + 1e-9).all()
        if choose:
            assert chances.sum() == pytest.approx(1)
            assert found[row].sum() == pytest.approx(1)


def test_labels_are_drawn_each_by_itself_where_several_are_right():
    """The joint chances of a single draw: what the seeds give, as samples of one."""
    case = Case(np.array([[0], [1]]), 2, np.random.default_rng(1), False)
    a = documents_of(np.random.default_rng(5), 1)
    drawn = np.array([by_label(case.draw(a, 1, 2, seed), 2)[0] for seed in range(4000)])
    chances = case.chances(a[0])
    both = chances.prod()
    assert set(drawn.ravel()) == {0.0, 1.0}
    assert abs(drawn.prod(axis=1).mean() - both) < 4.5 * np.sqrt(both * (1 - both) / 4000)


@pytest.mark.parametrize("choose", [False, True])
def test_draws_go_by_the_seed_and_by_no_other_document(choose):
    case = whole_case(choose)
    documents = documents_of(np.random.default_rng(6), 6)
    whole, again, other = (case.draw(documents, 200, 10, seed) for seed in (3, 3, 4))
    assert np.array_equal(whole.labels, again.labels)
    assert np.array_equal(whole.scores, again.scores)
    assert not np.array_equal(by_label(whole, 10), by_label(other, 10))
    for row in range(6):
        alone = case.draw(documents[row : row + 1], 200, 10, 3)
        assert np.array_equal(alone.labels[0], whole.labels[row])
        assert np.array_equal(alone.scores[0], whole.scores[row])
        single = case.search(documents[row : row + 1], 4, 10)
        batch = case.search(documents, 4, 10)
        assert np.array_equal(single.labels[0], batch.labels[row])
        assert np.array_equal(single.scores[0], batch.scores[row])


def test_draws_are_cut_to_the_best():
    case = whole_case(False)
    documents = documents_of(np.random.default_rng(7), 4)
    whole, cut = case.draw(documents, 50, 10), case.draw(documents, 50, 3)
    assert np.array_equal(cut.labels, whole.labels[:, :3])
    assert np.array_equal(cut.scores, whole.scores[:, :3])
    for labels, scores in zip(whole.labels, whole.scores, strict=True):
        pairs = [(-score, label) for score, label in zip(scores, labels, strict=True) if label >= 0]
        assert pairs == sorted(pairs), "of equals the smaller id first"


@pytest.mark.parametrize("choose", [False, True])
def test_a_node_with_more_children_than_there_was_room_for(choose):
    case = Case(np.arange(1100)[:, None], 1100, np.random.default_rng(8), choose)
    a = documents_of(np.random.default_rng(9), 1)
    chances = case.chances(a[0])
    top = case.search(a, 2, 5)
    assert np.allclose(top.scores[0], np.sort(chances)[::-1][:5], rtol=1e-4)
    found = by_label(case.draw(a, 20, 1100), 1100)[0]
    assert found.sum() == pytest.approx(1 if choose else chances.sum(), rel=0.1)


def test_the_scores_of_digits_are_those_of_the_formula():
    case = whole_case(False)
    a = documents_of(np.random.default_rng(10), 1)[0]
    for node, level in ((0, 0), (1, 1), (4, 2), (2, 1)):
        first, last = case.first[node], case.last[node]
        out, scratch = np.empty(last - first, np.float32), np.empty(HIDDEN, np.float32)
        digit_scores(
            a, node, case.outputs[level], case.gates, case.gate, case.digit, case.prior, case.fixed, first, last,
            scratch, out,
        )  # fmt: skip
        with np.errstate(divide="ignore"):
            _, steps = case.steps(a, node, level)
        assert np.allclose(1 / (1 + np.exp(-out)), steps, atol=1e-6)


@pytest.mark.parametrize("scores", [[0.0], [1.0, 2.0, -3.0], [80.0, -80.0], [-np.inf, 0.5, 0.5], [500.0, 499.0]])
def test_log_odds_are_those_of_a_softmax(scores):
    out = np.array(scores, np.float32)
    chances = np.exp(np.array(scores) - np.max(scores))
    chances /= chances.sum()
    to_log_odds(out)
    assert not np.isnan(out).any()
    with np.errstate(over="ignore"):
        assert np.allclose(1 / (1 + np.exp(-out.astype(np.float64))), chances, rtol=1e-5, atol=1e-30)


@settings(max_examples=60)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 8), st.integers(0, 2**31))
def test_the_mean_of_lists_is_that_of_rows_with_zeros(trees, listed, k, seed):
    rng = np.random.default_rng(seed)
    n, n_labels = 3, 7
    found, scores = np.full((trees, n, listed), -1, np.int32), np.full((trees, n, listed), -np.inf, np.float32)
    table = np.zeros((trees, n, n_labels))
    for tree in range(trees):
        for row in range(n):
            size = rng.integers(0, min(listed, n_labels) + 1)
            found[tree, row, :size] = rng.permutation(n_labels)[:size]
            scores[tree, row, :size] = np.sort(rng.random(size))[::-1]
            table[tree, row, found[tree, row, :size]] = scores[tree, row, :size]
    out = TopK.empty(n, k)
    mean_of_lists(found, scores, out.labels, out.scores)
    mean = table.mean(axis=0)
    for row in range(n):
        expected = np.sort(mean[row][mean[row] > 0])[::-1][:k]
        labels = out.labels[row][out.labels[row] >= 0]
        assert len(labels) == len(expected)
        assert np.allclose(out.scores[row, : len(labels)], expected, rtol=1e-5)
        assert np.allclose(mean[row, labels], expected, rtol=1e-5)


def test_a_label_that_counts_for_nothing_in_a_list_stays_a_number():
    found, scores = np.array([[[4, 2]]], np.int32), np.array([[[0.5, 0.0]]], np.float32)
    out = TopK.empty(1, 3)
    mean_of_lists(found, scores, out.labels, out.scores)
    assert out.labels.tolist() == [[4, 2, -1]]
    assert out.scores[0].tolist() == [0.5, 0.0, -np.inf]


# ---- numbers by a key


def slow_uniform(key):
    mixed = key * 0x9E3779B97F4A7C15 % 2**64
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
    return ((mixed ^ mixed >> 31) >> 11) / 2**53


def test_numbers_by_a_key_equal_those_of_plain_whole_numbers():
    for key in (0, 1, 2, 12345, 2**40 + 7, 2**63, 2**64 - 1):
        assert uniform(np.uint64(key)) == slow_uniform(key)


def test_numbers_by_keys_that_follow_are_spread_evenly_and_know_nothing_of_each_other():
    found = np.array([uniform(np.uint64(key)) for key in range(20_000)])
    assert (found >= 0).all()
    assert (found < 1).all()
    assert len(set(found)) == 20_000
    counts = np.histogram(found, 20, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 44, "chi-square of 19 degrees: one in a thousand"
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 4 / np.sqrt(20_000)
