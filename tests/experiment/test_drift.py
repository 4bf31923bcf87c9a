"""Documents like those of the training raise no alarm; other words, other labels and wrong probabilities do."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace import Tagger
from labelspace.data.records import Record
from labelspace.errors import DataError
from labelspace.experiment.drift import Drift, DriftCounts, changed_labels, find_drift, reference_of, training_reference
from labelspace.experiment.labeled_batches import LabeledDocuments
from labelspace.features.tfidf import Tfidf
from labelspace.features.unknown_words import UnknownWords
from labelspace.metrics import expected_calibration_error
from labelspace.tagger.held_out import HeldOutDocuments
from labelspace.types import Dataset, TopK

N_TOPICS = 8


def topic_documents(n, seed, weights=None):
    """Documents of a topic each, with words of it, and words that few documents have."""
    rng = np.random.default_rng(seed)
    topics = rng.choice(N_TOPICS, n, p=weights)
    texts = []
    for topic in topics.tolist():
        words = [f"topic{topic}word{at}" for at in rng.zipf(1.6, 8) % 300]
        rare = [f"rare{at}" for at in rng.zipf(1.5, 3) % 10_000]
        texts.append(" ".join(words + rare))
    return texts, [[f"topic {topic}"] for topic in topics.tolist()]


def labeled(tagger, texts, labels=None):
    labels = labels or [[] for _ in texts]
    rows = zip(texts, labels, strict=True)
    records = [Record(str(at), text, labels=tuple(names)) for at, (text, names) in enumerate(rows)]
    return LabeledDocuments(tagger, records, "documents")


@pytest.fixture(scope="module")
def tagger():
    texts, labels = topic_documents(1200, 0)
    return Tagger(members="neighbors,label_tree:words").fit(texts, labels)


def test_documents_like_those_of_the_training_raise_no_alarm(tagger):
    for seed in range(1, 6):
        found = find_drift(labeled(tagger, *topic_documents(300, seed)))
        assert (found.advice, found.changed_labels.n_tested) == ("nothing", N_TOPICS)
        assert found.counts.unknown_words.value == pytest.approx(found.reference.unknown_words.value, rel=0.35)
    found = find_drift(labeled(tagger, *topic_documents(300, 6)), labeled(tagger, *topic_documents(300, 7)))
    assert found.advice == "nothing"
    assert found.reference.of_suggestions


def test_other_words(tagger):
    texts, labels = topic_documents(300, 1)
    changed = [
        " ".join(f"new{word}" if at % 3 == 0 else word for at, word in enumerate(text.split())) for text in texts
    ]
    found = find_drift(labeled(tagger, changed, labels))
    assert found.has_unknown_words
    assert found.advice == "learn"
    assert not find_drift(labeled(tagger, changed[:40])).has_unknown_words  # too few to tell
    assert find_drift(labeled(tagger, changed[:40])).advice == "few"


def test_labels_that_are_more_frequent_now(tagger):
    weights = np.full(N_TOPICS, 0.6 / (N_TOPICS - 1))
    weights[3] = 0.4
    found = find_drift(labeled(tagger, *topic_documents(300, 1, weights)))
    assert found.advice == "labels"
    assert [tagger.labels_.names[label] for label in found.changed_labels.labels] == ["topic 3"]
    shown = found.as_json(tagger.labels_.names)
    [label] = shown["labels"]["changed"]
    assert label["before"] < 20 < 30 < label["suggested"]
    assert shown["verdict"].startswith("look at these labels")


def test_a_retired_label_and_a_merged_one_have_not_changed(tagger):
    texts, labels = topic_documents(600, 0)
    edited = Tagger(members="neighbors,label_tree:words").fit(texts, labels)
    edited.retire_label("topic 0")
    edited.merge_labels("topic 1", "topic 2")
    others = [topic_documents(600, 1)]
    texts = [text for text, names in zip(*others[0], strict=True) if names != ["topic 0"]]
    found = find_drift(labeled(edited, texts))
    assert found.changed_labels.labels.size == 0
    n = [round(edited.labels_.counts[edited.labels_.index[f"topic {at}"]]) for at in (1, 2)]
    counts = training_reference(edited).counts
    assert [counts[edited.labels_.index[f"topic {at}"]] for at in range(3)] == [0, 0, sum(n)]


def test_wrong_probabilities(tagger):
    texts, labels = topic_documents(300, 1)
    wrong = [labels[(at * 7 + 1) % len(labels)] for at in range(len(labels))]
    found = find_drift(labeled(tagger, texts, wrong))
    assert found.is_miscalibrated
    assert found.advice == "learn"
    unlabeled = find_drift(labeled(tagger, texts))
    assert unlabeled.counts.calibration is None
    assert unlabeled.as_json(tagger.labels_.names)["calibration"]["ECE@5"] is None


def test_held_out_documents_tell_how_sure_the_model_should_be(tagger):
    texts, labels = topic_documents(200, 8)
    kept = Tagger(tagger.model)
    kept.__dict__.update(tagger.__dict__)
    kept.held_out_ = HeldOutDocuments.of(tagger.to_dataset(texts, labels))
    expected = reference_of(kept)
    assert expected.top_probability is not None
    counts = DriftCounts(N_TOPICS)
    counts.add(TopK.from_scores(np.full((100, N_TOPICS), 0.85 * expected.top_probability.value), 5))
    assert Drift(counts, expected, calibrated=True).advice == "learn"
    assert not Drift(counts, training_reference(kept), calibrated=True).is_less_sure
    assert find_drift(labeled(kept, *topic_documents(200, 9))).advice == "nothing"


def test_batches_add_up_to_the_figures_of_all_documents():
    rng = np.random.default_rng(0)
    top = TopK.from_scores(rng.random((90, 12)) ** 3, 8)
    Y = sp.csr_matrix((rng.random((90, 12)) < 0.2).astype(np.float32))
    counts = DriftCounts(12)
    for rows in np.array_split(np.arange(90), 4):
        part = TopK(top.labels[rows], top.scores[rows])
        counts.add(part)
        counts.add_labeled(part, Y[rows])
    assert counts.calibration.value == pytest.approx(expected_calibration_error(Y, top, 5))
    assert counts.top_probability.value == pytest.approx(top.scores[:, 0].mean())
    error = top.scores[:, 0].astype(np.float64).std() / np.sqrt(90)
    assert counts.top_probability.error == pytest.approx(error, rel=1e-4)
    expected = top.to_csr(12, with_scores=True).toarray()
    assert counts.expected == pytest.approx(expected.sum(axis=0), rel=1e-5)
    assert counts.suggested.tolist() == (expected >= 0.5).sum(axis=0).tolist()


def test_the_share_of_unknown_words_and_its_error():
    counts = DriftCounts(1)
    unknown, words = np.array([0, 2, 1, 4]), np.array([5, 6, 3, 8])
    counts.add_words(UnknownWords(unknown[:2], words[:2]))
    counts.add_words(UnknownWords(unknown[2:], words[2:]))
    share = unknown.sum() / words.sum()
    error = np.sqrt(((unknown - share * words) ** 2).sum()) / words.sum()
    assert counts.unknown_words == pytest.approx((share, error))
    assert DriftCounts(1).unknown_words is None


def test_the_test_of_two_proportions_is_rarely_wrong():
    rng = np.random.default_rng(0)
    rates = np.geomspace(0.0002, 0.2, 300)
    wrong = 0
    for _ in range(50):
        before, now = rng.binomial(5000, rates), rng.binomial(400, rates)
        wrong += len(changed_labels(now, 400, before, 5000).labels) > 0
    assert wrong <= 2
    none = changed_labels(np.zeros(3), 100, np.zeros(3), 1000)
    assert (none.labels.size, none.n_tested) == (0, 0)
    assert changed_labels(np.array([0.0]), 1000, np.array([100]), 1000).labels.tolist() == [0]
    assert changed_labels(np.array([0.0]), 1000, np.array([100]), 1000, may_fall=False).labels.tolist() == []
    assert changed_labels(np.array([99.0]), 1000, np.array([10]), 1000, may_fall=False).labels.tolist() == [0]


def test_unknown_words_are_counted_once_per_document():
    features = Tfidf(ngrams=2, min_df=1).fit(["red apple", "green apple"])
    found = features.unknown_words(["a Red red pear, pear and apple", "", "kiwi"])
    assert (found.unknown.tolist(), found.words.tolist()) == ([2, 0, 1], [4, 0, 1])
    assert Tfidf(analyzer="char", min_df=1).fit(["red"]).unknown_words(["red"]) is None
    assert features.expected_unknown is None  # too few words
    assert Tfidf(max_features=150).fit([f"w{i} w{i + 1}" for i in range(300)]).expected_unknown is None


def test_models_without_probabilities_or_words(data):
    train, test = data
    tagger = Tagger("neighbors").fit_dataset(Dataset(train.Y, train.labels, texts=train.texts))
    found = find_drift(labeled(tagger, test.texts))
    shown = found.as_json(tagger.labels_.names)
    assert shown["top_probability"] == {"mean": None, "expected": None, "changed": False}
    assert (shown["unknown_words"]["mean"] is None, shown["labels"]["n_tested"]) == (False, 0)
    ready_made = Tagger("neighbors").fit_dataset(Dataset(train.Y, train.labels, X=train.X))
    records = [Record("0", None, "3:0.5 7:1")] * 60
    found = find_drift(LabeledDocuments(ready_made, records, "features"))
    assert found.as_json(ready_made.labels_.names)["unknown_words"]["mean"] is None


def test_too_few_documents_for_a_reference(tagger):
    texts, labels = topic_documents(60, 1)
    with pytest.raises(DataError, match="reference documents must be at least 50, but documents has 10; give more"):
        find_drift(labeled(tagger, texts, labels), labeled(tagger, texts[:10]))
    with pytest.raises(DataError, match="must hold at least one document"):
        find_drift(labeled(tagger, []))
