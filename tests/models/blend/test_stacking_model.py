import numpy as np
import scipy.sparse as sp

from labelspace.models.blend.stacking_model import SHORTLIST, Candidates, count_pairs, fit_passes, second_pass
from labelspace.models.blend.stacking_table import StackingTable
from labelspace.types import no_progress

N, WIDTH, N_LABELS = 400, 5, 40


def documents(seed):
    """Labels 0..19 come with 20..39. A member is sure of the first of a pair, and says nothing of the second."""
    rng = np.random.default_rng(seed)
    truth, labels, scores = np.zeros((N, N_LABELS), np.float32), [], []
    for row in range(N):
        label = rng.integers(20)
        truth[row, [label, label + 20]] = 1
        candidates = np.concatenate([[label, label + 20], 20 + rng.choice(np.delete(np.arange(20), label), 18, False)])
        candidates = np.sort(candidates)
        labels.append(candidates)
        scores.append((candidates == label) * 0.9 + rng.random(20) * 0.05)
    columns = np.random.default_rng(seed).random((20 * N, WIDTH)).astype(np.float32)
    columns[:, 0] = np.concatenate(scores)
    table = StackingTable(np.concatenate(labels).astype(np.int32), columns, np.arange(0, 20 * N + 1, 20))
    return table, sp.csr_matrix(truth)


def test_labels_that_go_together_are_found_by_the_second_pass():
    (table, truth), (new, new_truth) = documents(0), documents(1)
    pairs = count_pairs(truth)
    forests = fit_passes([Candidates(table, table.targets(truth), pairs)], WIDTH, 30, 0, no_progress)
    first = forests[0].probabilities(new.columns)
    second = second_pass(new, first, forests[1], pairs)
    right = new.targets(new_truth) > 0
    partner = right & (new.labels >= 20)
    wrong = ~right
    assert np.mean(first[partner].mean() > first[wrong]) < 0.9  # the members cannot tell them apart
    by_document = second.reshape(N, 20)
    listed = np.argsort(-by_document, axis=1)[:, :2]
    found = np.take_along_axis(partner.reshape(N, 20), listed, axis=1).any(axis=1)
    shortlisted = np.take_along_axis(partner.reshape(N, 20), np.argsort(-first.reshape(N, 20))[:, :SHORTLIST], axis=1)
    assert found[shortlisted.any(axis=1)].mean() > 0.9


def test_labels_outside_the_shortlist_stay_below_it_in_their_order():
    (table, truth), pairs = documents(0), count_pairs(documents(0)[1])
    forests = fit_passes([Candidates(table, table.targets(truth), pairs)], WIDTH, 10, 0, no_progress)
    first = forests[0].probabilities(table.columns)
    second = second_pass(table, first, forests[1], pairs).reshape(N, 20)
    order = np.argsort(-first.reshape(N, 20), axis=1, kind="stable")
    inside, outside = (np.take_along_axis(second, part, axis=1) for part in np.split(order, [SHORTLIST], axis=1))
    assert (inside.min(axis=1) > outside.max(axis=1)).all()
    assert (np.diff(outside, axis=1) <= 0).all()


def test_without_documents_there_are_no_trees():
    forests = fit_passes([], WIDTH, 10, 0, no_progress)
    assert [len(forest.roots) for forest in forests[:2]] == [0, 0]
    assert forests.unseen == []
