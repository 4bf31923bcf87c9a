"""Documents that are worth a person's minute: values by hand, unlike documents, random ones, bounded memory."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace import Tagger
from labelspace.data.records import Record
from labelspace.errors import DataError, ParameterError
from labelspace.experiment.labeled_batches import LabeledDocuments
from labelspace.experiment.review import (
    KnownLabels,
    ReviewDocument,
    chance,
    choose_documents,
    disagreement,
    diverse,
    in_doubt,
    interleaved,
    rarity,
)
from labelspace.types import Dataset, LabelSpace, TopK


@pytest.fixture(scope="module")
def tagger(data):
    train = data[0]
    documents = Dataset(train.Y, train.labels, texts=train.texts)
    return Tagger(members="neighbors,label_tree:words", boosting_rounds=10).fit_dataset(documents)


def of_texts(tagger, texts, labels=None):
    labels = labels or [()] * len(texts)
    rows = enumerate(zip(texts, labels, strict=True))
    records = [Record(f"d{at}", text, labels=tuple(names)) for at, (text, names) in rows]
    return LabeledDocuments(tagger, records, "texts")


def document(number, value, order="uncertain"):
    return ReviewDocument(Record(str(number), f"text {number}"), number, order, value, (), (), ())


def test_rare_labels_in_doubt():
    top = TopK.from_scores([[0.5, 0.4, 0.1], [0.9, 0.1, 0.0], [0.0, 0.3, 0.79]], k=2)
    n_documents = np.array([5, 4, 1])
    expected = [0.4 * 0.6, 0.0, 0.3 * 0.7]
    assert rarity(top, in_doubt(top), n_documents) == pytest.approx(expected, abs=1e-6)
    assert rarity(TopK.empty(1, 3), in_doubt(TopK.empty(1, 3)), n_documents).tolist() == [0.0]


def test_disagreement_of_three_members():
    lists = [TopK.from_scores(scores, k=1) for scores in ([[1, 0]], [[1, 0]], [[0, 1]])]
    assert disagreement(lists).tolist() == pytest.approx([1 - 1 / 3])
    assert disagreement(lists[:1]).tolist() == [0.0]
    assert disagreement([TopK.empty(1, 2), TopK.empty(1, 2)]).tolist() == [1.0]


def test_labels_that_are_known_well_are_more_suspicious():
    known = KnownLabels(3)
    top = TopK(np.array([[0]] * 6), np.array([[0.9]] * 6))
    given = sp.csr_matrix(np.array([[1, 0, 0, 0]] * 3 + [[0, 1, 0, 0]] * 2 + [[0, 0, 0, 1]]))
    assert known.count(top, given) == [[], [], [], [1], [1], []]  # the last label is unknown to the model
    mean = 2.7 / 5
    assert known.of([0]) == pytest.approx((2.7 + 2 * mean) / 5)
    assert known.of([1]) == pytest.approx(2 * mean / 4)
    assert known.of([1, 2]) == pytest.approx(mean)  # nothing is known of label 2
    assert known.of([]) == 0.0


def test_unlike_documents_are_taken():
    values = np.array([0.9, 0.85, 0.5, 0.1])
    X = sp.csr_matrix(np.array([[1.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    assert diverse(values, X, 3) == [0, 2, 1]
    assert diverse(values, X, 10) == [0, 2, 1, 3]
    assert diverse(values[:0], X[:0], 3) == []


def test_random_documents_are_spread():
    chosen = [document(at, 1.0) for at in range(6)]
    drawn = [document(at, 1.0, "random") for at in (10, 11)]
    assert [each.number for each in interleaved(chosen, drawn)] == [0, 1, 2, 10, 3, 4, 5, 11]
    assert interleaved([], drawn) == drawn
    assert interleaved(chosen, []) == chosen


def test_random_documents_are_those_of_every_order_and_number(tagger, data):
    texts = data[1].texts
    drawn = {}
    for order in ("uncertain", "disagreement", "random"):
        found = choose_documents(of_texts(tagger, texts), order, 30).documents
        drawn[order] = [each.record.text for each in found if each.order == "random"]
    assert len(drawn["random"]) == 30
    assert drawn["uncertain"] == drawn["disagreement"] == drawn["random"][:3]
    assert drawn["random"] == sorted(texts, key=lambda text: -chance(text, 0))[:30]


def test_the_choice_does_not_depend_on_batches(tagger, data, monkeypatch):
    texts = [*data[1].texts, *data[1].texts[:20]]
    expected = [each.number for each in choose_documents(of_texts(tagger, texts), "disagreement", 20).documents]
    monkeypatch.setattr("labelspace.experiment.labeled_batches.MAX_DOCUMENTS", 7)
    found = choose_documents(of_texts(tagger, texts), "disagreement", 20)
    assert [each.number for each in found.documents] == expected
    assert len(set(expected)) == 20 <= found.n_read
    assert all(number < 200 for number in expected)  # an equal text counts where it is first


def test_memory_does_not_grow_with_the_documents(tagger):
    def peak(n):
        records = (Record(str(at), f"w1 w2 {at} " + "x" * 2000) for at in range(n))
        tracemalloc.start()
        choose_documents(LabeledDocuments(tagger, records, "texts"), "random", 5)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(6000) < 2 * peak(1500)


def test_ready_made_features(data):
    train = data[0]
    tagger = Tagger("neighbors").fit_dataset(Dataset(train.Y, train.labels, X=train.X))
    records = [Record(str(at), None, f"{at % 7}:0.5 {at % 11 + 8}:1") for at in range(40)]
    found = choose_documents(LabeledDocuments(tagger, records, "rows"), "uncertain", 10)
    assert len(found.documents) == 10
    assert not found.calibrated
    row = found.documents[0].as_json(found.calibrated)
    assert "text" not in row
    assert row["features"] == found.documents[0].record.features


def test_labels_of_the_documents(tagger, data):
    names = tagger.labels_.names
    documents = of_texts(tagger, data[1].texts[:3], [(names[3], "new"), (), (7,)])
    [batch] = documents.batches()
    assert [batch.given_names(row) for row in range(3)] == [[names[3], "new"], [], [names[7]]]
    assert (documents.n, documents.n_labeled, documents.seen.share) == (3, 2, 0.0)
    own = LabelSpace([names[5], "unheard"])
    numbered = LabeledDocuments(tagger, [Record("0", "text", labels=(0, 1))], "texts", own)
    [batch] = numbered.batches()
    assert batch.given_names(0) == [names[5], "unheard"]
    with pytest.raises(DataError, match="expected a label id below 40"):
        list(of_texts(tagger, ["text"], [(40,)]).batches())


def test_retired_and_merged_labels(data):
    train = data[0]
    edited = Tagger("neighbors").fit_dataset(Dataset(train.Y, train.labels, texts=train.texts))
    names = edited.labels_.names
    edited.retire_label(names[0])
    edited.merge_labels(names[1], names[2])
    [batch] = of_texts(edited, ["text"], [(names[0], names[1])]).batches()
    assert batch.given_names(0) == [names[2]]


def test_bad_parameters_get_one_line(tagger):
    for arguments, message in (
        ({"n": 0}, "n must be at least 1, but is 0; ask for n=1 or more"),
        ({"k": 0}, "k must be at least 1, but is 0"),
        ({"order": "best"}, "order must be one of uncertain, disagreement, rare, suspicious, random, but is 'best'"),
    ):
        with pytest.raises(ParameterError, match=message):
            choose_documents(of_texts(tagger, ["text"]), **{"order": "random", **arguments})
