"""Drift among the metrics: figures of the last documents, whose texts are not kept."""

import re

import numpy as np
import pytest

from labelspace.data.records import Record
from labelspace.experiment.drift import find_drift
from labelspace.experiment.labeled_batches import LabeledDocuments
from labelspace.server.drift_window import WORDS_EVERY, DriftWindow
from labelspace.tagger import Tagger
from tests.server.conftest import documents

URL = "/v1/models/foods"


def gauge(client, name):
    found = re.search(rf'^labelspace_drift_{name}{{model="foods"}} (\S+)$', client.get("/metrics").text, re.MULTILINE)
    return None if found is None else float(found[1])


def suggest(client, texts, **options):
    for start in range(0, len(texts), 32):
        body = {"documents": [{"text": text} for text in texts[start : start + 32]], **options}
        assert client.post(f"{URL}/suggest-batch", json=body).status_code == 200


def filled(tagger, texts, size=1000):
    """A window with texts that were tagged one by one."""
    window = DriftWindow(tagger, size)
    for text in texts:
        top = tagger.predict_topk([text], 5, calibrated=True)
        known = top.labels[0] >= 0
        window.add([text], [(top.labels[0][known].tolist(), top.scores[0][known].tolist())])
    return window


def test_figures_are_those_of_the_library(tagger):
    texts = [row["text"] for row in documents()]
    found = filled(tagger, texts).drift().counts
    records = [Record(str(at), text) for at, text in enumerate(texts)]
    expected = find_drift(LabeledDocuments(tagger, records, "texts")).counts
    assert found.n == len(set(texts))
    assert found.top_probability.value == pytest.approx(expected.top_probability.value, abs=0.02)
    some = [Record("", text) for text in texts[::WORDS_EVERY]]
    of_some = find_drift(LabeledDocuments(tagger, some, "texts")).counts
    assert found.unknown_words == pytest.approx(of_some.unknown_words)


def test_memory_is_bounded_and_no_text_is_kept(tagger):
    window = filled(tagger, [f"rye bread {at}" for at in range(60)], size=20)
    assert window.drift().counts.n == 20
    assert "bread" not in repr(vars(window)["_suggestions"])
    window.add_reviewed("rye bread 59", [0])
    window.add_reviewed("rye bread 0", [0])  # no longer known
    assert window.drift().counts.n_labeled == 1


def test_documents_and_feedback_count(client):
    assert gauge(client, "documents") is None
    texts = [row["text"] for row in documents()]
    suggest(client, texts)
    assert gauge(client, "documents") == len(set(texts))
    assert gauge(client, "verdict") in (1, 2, 3)
    assert 0 < gauge(client, "top_probability") <= 1
    assert 0 <= gauge(client, "unknown_words_ratio") <= 1
    assert gauge(client, "calibration_error") is None
    entries = [{"text": text, "accepted": ["drink > tea"]} for text in texts[:3]]
    assert client.post(f"{URL}/feedback", json=[*entries, {"text": texts[4], "rejected": ["drink > tea"]}]).is_success
    assert gauge(client, "reviewed_documents") == 3
    assert 0 <= gauge(client, "calibration_error") <= 1


def test_documents_with_options_or_few_labels_do_not_count(client):
    suggest(client, ["green tea"], k=1)
    suggest(client, ["green tea"], include=["drink > tea"])
    assert gauge(client, "documents") is None


def test_a_new_version_begins_anew(client, model_folder):
    suggest(client, ["green tea", "rye bread"])
    assert gauge(client, "documents") == 2
    rows = documents()[::3]
    members = Tagger(members="neighbors,lexical")
    members.fit([row["text"] for row in rows], [row["labels"] for row in rows]).save(model_folder)
    assert client.post(f"{URL}/reload").json()["changed"] is True
    suggest(client, ["green tea"])
    assert gauge(client, "documents") == 1


def test_a_model_without_probabilities(shared_client):
    body = {"documents": [{"text": "alpha one"}]}
    assert shared_client.post("/v1/models/odd/suggest-batch", json=body).is_success
    shown = shared_client.get("/metrics").text
    assert 'labelspace_drift_documents{model="odd"}' in shown
    assert 'labelspace_drift_top_probability{model="odd"}' not in shown


def test_the_window_of_a_model_that_reads_no_words():
    texts = [f"{a} {b}" for a in ("bread", "fish") for b in ("hot", "cold", "old", "new")]
    tagger = Tagger("lexical").fit(texts, [[text.split()[0]] for text in texts])
    window = DriftWindow(tagger)
    window.add(["hot bread"], [([0], [])])
    counts = window.drift().counts
    assert (counts.n, counts.unknown_words) == (1, None)
    assert np.isfinite(window.drift().counts.top_probability.value)
