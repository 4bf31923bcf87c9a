"""Rejected labels: what they change, and for which documents."""

import numpy as np
import pytest

from labelspace import Tagger, load
from labelspace.models.blend.explanations import REJECTED

WORDS = [f"word{at}" for at in range(40)]


@pytest.fixture(scope="module")
def tagger():
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for topic in range(8):
        for _ in range(25):
            own = rng.choice(WORDS[5 * topic : 5 * topic + 5], 3).tolist()
            texts.append(" ".join([*own, *rng.choice(WORDS, 2).tolist()]))
            labels.append([f"topic {topic}"] if rng.random() < 0.6 else [f"topic {topic}", "general"])
    return Tagger(members="neighbors,label_tree").fit(texts, labels)


def probability(tagger, text, label):
    return dict(tagger.tag(text, k=9)).get(label, 0.0)


ALIKE = [f"word0 word1 word{at}" for at in range(2, 12)]
SIMILAR, UNLIKE = "word0 word1 word3 word14", "word20 word21 word22"


def rejecting(tagger, folder):
    tagger.save(folder)
    return load(folder).learn(ALIKE, rejected=[["topic 0"]] * len(ALIKE))


def test_similar_documents_lose_the_label_and_others_keep_theirs(tagger, tmp_path):
    learned = rejecting(tagger, tmp_path / "m")
    before = probability(tagger, SIMILAR, "topic 0")
    assert probability(learned, SIMILAR, "topic 0") < 0.1 * before
    assert probability(learned, UNLIKE, "topic 4") == pytest.approx(probability(tagger, UNLIKE, "topic 4"), abs=0.05)


def test_acceptances_undo_rejections(tagger, tmp_path):
    learned = rejecting(tagger, tmp_path / "m")
    low = probability(learned, SIMILAR, "topic 0")
    learned.learn(ALIKE * 2, [["topic 0"]] * (2 * len(ALIKE)))
    assert probability(learned, SIMILAR, "topic 0") > max(20 * low, 0.05)


def test_an_explanation_names_the_rejections(tagger, tmp_path):
    learned = rejecting(tagger, tmp_path / "m")
    why = learned.explain(SIMILAR, ["topic 0"])[0]
    shares = {member.name: member.share for member in why.members}
    assert shares[REJECTED] < -1
    assert why.probability == pytest.approx(probability(learned, SIMILAR, "topic 0"), rel=1e-3)


def test_rejections_are_saved_and_words_that_come_later_do_not_move_them(tagger, tmp_path):
    learned = rejecting(tagger, tmp_path / "m")
    low = probability(learned, SIMILAR, "topic 0")
    learned.learn(["completely unheard of"], [["topic 1"]])
    learned.save(tmp_path / "n")
    assert probability(load(tmp_path / "n"), SIMILAR, "topic 0") == pytest.approx(low, abs=0.01)


def test_a_model_without_rejections_has_none(tagger):
    assert tagger.model.rejections_ is None
    assert tagger.model.recalibration_ is None
