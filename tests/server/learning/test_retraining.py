"""Training again with feedback: what it changes in the data, which documents decide, when a model is replaced."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from labelspace.data.source import open_source
from labelspace.data.texts import dataset_from_names
from labelspace.errors import DataError
from labelspace.server.database import Feedback, open_database
from labelspace.server.learning import LearnOptions
from labelspace.server.learning.retraining import (
    MAX_LOSS,
    compared,
    predicted,
    retrain,
    seen_share,
    split,
    trained_like,
    with_feedback,
    without_texts,
)
from labelspace.tagger import Tagger
from labelspace.types import Dataset, LabelSpace, TopK, no_progress

FISH, BREAD, TEA = "grill the fish", "bake the bread", "green tea"
WORDS = {"fish": "salmon tuna trout cod", "bread": "rye wheat loaf crust", "tea": "green cup leaves lemon"}


@pytest.fixture
def documents():
    return dataset_from_names([FISH, BREAD, TEA], [["fish", "food"], ["bread", "food"], ["tea"]])


def labels_of(documents):
    """The names of the labels of each text; of equal texts those of the last."""
    names = documents.labels.names
    rows = [documents.Y[row].indices for row in range(len(documents))]
    return {text: {names[label] for label in row} for text, row in zip(documents.texts, rows, strict=True)}


def feedback(text, **labels):
    return Feedback(text=text, **labels)


# What feedback changes in the documents.


def test_labels_of_known_texts_are_corrected(documents):
    found, use = with_feedback(documents, [feedback(FISH, accepted=["fish"], rejected=["food"], added=["tea"])])
    assert labels_of(found) == {FISH: {"fish", "tea"}, BREAD: {"bread", "food"}, TEA: {"tea"}}
    assert (use.n_feedback, use.n_corrected_documents, use.n_new_documents, use.n_unused_documents) == (1, 1, 0, 0)


def test_feedback_that_agrees_corrects_nothing(documents):
    found, use = with_feedback(documents, [feedback(FISH, accepted=["fish"], rejected=["tea"])])
    assert labels_of(found) == labels_of(documents)
    assert use.n_corrected_documents == 0


def test_all_documents_with_a_text_are_corrected():
    documents = dataset_from_names([FISH, BREAD, FISH], [["fish"], ["bread"], ["fish", "bread"]])
    found, use = with_feedback(documents, [feedback(FISH, rejected=["bread"], added=["food"])])
    rows = [set(found.Y[row].indices) for row in (0, 2)]
    expected = {found.labels.index["fish"], found.labels.index["food"]}
    assert rows == [expected, expected]
    assert use.n_corrected_documents == 2


def test_new_texts_are_appended_with_ids(documents):
    documents = replace(documents, ids=["a", "b", "c"])
    found, use = with_feedback(documents, [feedback("smoke a fish", accepted=["fish"], added=["food"])])
    assert found.texts == [*documents.texts, "smoke a fish"]
    assert found.ids == ["a", "b", "c", "feedback-1"]
    assert labels_of(found)["smoke a fish"] == {"fish", "food"}
    assert (use.n_corrected_documents, use.n_new_documents) == (0, 1)


def test_new_labels_are_appended_and_old_ones_keep_their_ids(documents):
    found, _ = with_feedback(documents, [feedback("hot cocoa", added=["cocoa"]), feedback(TEA, added=["drink"])])
    assert found.labels.names == [*documents.labels.names, "cocoa", "drink"]
    assert labels_of(found)[TEA] == {"tea", "drink"}
    assert labels_of(found)["hot cocoa"] == {"cocoa"}
    assert found.Y.shape == (4, len(found.labels))


def test_a_new_label_has_its_place_in_a_hierarchy_of_paths():
    documents = dataset_from_names([FISH, TEA], [["food > fish"], ["drink > tea"]])
    documents = replace(documents, labels=documents.labels.with_paths())
    found, _ = with_feedback(documents, [feedback("smoked trout", added=["food > fish > trout"])])
    edges = {(found.labels.names[a], found.labels.names[b]) for a, b in found.labels.hierarchy.edges.tolist()}
    assert edges & {("food > fish", "food > fish > trout"), ("food > fish > trout", "food > fish")}


def test_later_feedback_counts_above_earlier(documents):
    both = [feedback(FISH, rejected=["fish"]), feedback(FISH, accepted=["fish"], rejected=["food"])]
    assert labels_of(with_feedback(documents, both)[0])[FISH] == {"fish"}
    assert labels_of(with_feedback(documents, both[::-1])[0])[FISH] == set()
    new = [feedback("hot cocoa", added=["tea"]), feedback("hot cocoa", rejected=["tea"], added=["food"])]
    assert labels_of(with_feedback(documents, new)[0])["hot cocoa"] == {"food"}


def test_new_texts_whose_labels_were_only_rejected_are_left_out(documents):
    given = [feedback("hot cocoa", rejected=["tea", "a label of before"]), feedback(TEA, rejected=["fish"])]
    found, use = with_feedback(documents, given)
    assert found.texts == documents.texts
    assert found.labels.names == documents.labels.names
    assert (use.n_feedback, use.n_new_documents, use.n_unused_documents) == (2, 0, 1)


def test_the_given_documents_are_not_changed(documents):
    before = documents.Y.toarray(), list(documents.texts)
    with_feedback(documents, [feedback(FISH, rejected=["fish"], added=["new"]), feedback("more", added=["tea"])])
    assert (documents.Y.toarray() == before[0]).all()
    assert documents.texts == before[1]


# Which documents are held out.


def write(folder, **splits):
    """A data folder with splits of (text, labels)."""
    folder.mkdir(exist_ok=True)
    for name, rows in splits.items():
        lines = (json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in rows)
        (folder / f"{name}.jsonl").write_text("".join(lines))
    return open_source(folder)


def rows_about(words, numbers=range(4)):
    """Texts about labels, each of two words of its label and a number."""
    return [
        (f"{a} with {b} {at}", [label])
        for at in numbers
        for label, several in words.items()
        for a, b in zip(several.split(), several.split()[1:], strict=False)
    ]


def test_test_documents_are_held_out(tmp_path):
    source = write(tmp_path / "data", train=rows_about(WORDS), test=[("tuna", ["fish"]), ("rye", ["bread", "unseen"])])
    rest, held_out, held_from = split(source.train(), source, set())
    assert (rest.texts, held_out.texts, held_from) == (source.train().texts, ["tuna", "rye"], "test.jsonl")
    assert labels_of(held_out)["rye"] == {"bread", "unseen"}


def test_without_test_documents_a_tenth_is_held_out(tmp_path):
    source = write(tmp_path / "data", train=rows_about(WORDS, range(5)))
    rest, held_out, held_from = split(source.train(), source, set())
    assert (len(rest), len(held_out), held_from) == (41, 4, "a sample of train.jsonl")
    assert sorted([*rest.texts, *held_out.texts]) == sorted(source.train().texts)
    assert split(source.train(), source, set())[1].texts == held_out.texts


def test_documents_that_people_gave_feedback_on_are_not_held_out(tmp_path):
    train, test = rows_about(WORDS, range(5)), [("tuna", ["fish"]), ("rye", ["bread"])]
    source = write(tmp_path / "data", train=train, test=test)
    rest, held_out, _ = split(source.train(), source, {"tuna"})
    assert (len(rest), held_out.texts) == (45, ["rye"])

    source = write(tmp_path / "other", train=train)
    before = split(source.train(), source, set())[1].texts
    rest, held_out, _ = split(source.train(), source, {before[0]})
    assert held_out.texts == before[1:]  # the others stay, so that a model trained before has not seen them
    assert before[0] in rest.texts  # with the labels that it has
    assert labels_of(rest)[before[0]] == labels_of(source.train())[before[0]]


@pytest.mark.parametrize("splits", [{"test": [("tuna", ["fish"])]}, {}])
def test_feedback_on_all_held_out_documents_is_an_error(tmp_path, splits):
    """Said before a model is trained for nothing."""
    source = write(tmp_path / "data", train=rows_about(WORDS), **splits)
    texts = {"tuna", *source.train().texts}
    with pytest.raises(DataError, match="without feedback, but .*train.jsonl has none|test.jsonl has none"):
        split(source.train(), source, texts)


def test_documents_without_some_texts(documents):
    found = without_texts(documents, {TEA, "not there"})
    assert (found.texts, labels_of(found)) == ([FISH, BREAD], {FISH: {"fish", "food"}, BREAD: {"bread", "food"}})


def test_ready_made_features_cannot_be_learned_from(tmp_path):
    (tmp_path / "train.txt").write_text("2 3 2\n0 0:1.0 2:1.0\n1 1:1.0\n")
    source = open_source(tmp_path)
    with pytest.raises(DataError, match="learning needs texts, but .* has ready-made features"):
        split(source.train(), source, set())


@pytest.mark.parametrize(
    ("texts", "share"), [([FISH, BREAD], 1.0), ([FISH, "never seen"], 0.5), (["never seen"], 0.0), ([], 1.0)]
)
def test_the_share_of_documents_that_a_model_has_seen(documents, texts, share):
    tagger = Tagger("neighbors").fit_dataset(documents)
    others = Dataset(sp.csr_matrix((len(texts), 4), dtype=np.float32), documents.labels, texts=texts)
    assert seen_share(tagger, others) == share


def test_a_model_that_does_not_know_its_documents_has_seen_all(documents):
    tagger = Tagger("lexical").fit_labels(documents.labels)
    assert seen_share(tagger, documents) == 1.0


# Which model is better.


class FixedTagger:
    """Answers each text by a list of names; numbers labels in the order in which it got their names."""

    def __init__(self, names, answers):
        self.labels_, self._answers = LabelSpace(names), answers

    def predict_topk(self, texts, k):
        top = TopK.empty(len(texts), k)
        for row, text in enumerate(texts):
            for rank, name in enumerate(self._answers[text]):
                top.labels[row, rank], top.scores[row, rank] = self.labels_.index[name], 1 / (rank + 1)
        return top


@pytest.fixture
def held_out():
    """200 documents with one label each."""
    return dataset_from_names([f"text {i}" for i in range(200)], [["right" if i % 2 else "also"] for i in range(200)])


def with_errors(held_out, n):
    """A model that is wrong on n documents, and right on the others."""
    true = labels_of(held_out)
    answers = {text: ["wrong"] if row < n else [*true[text]] for row, text in enumerate(held_out.texts)}
    return FixedTagger(["right", "wrong", "also"], answers)


@pytest.mark.parametrize("errors", [0, 40, 49, 50, 51])
def test_a_model_that_is_no_worse_takes_the_place(held_out, errors):
    """One more error in 200 is a loss of 0.5 points, which is not significant."""
    found = compared(with_errors(held_out, 50), with_errors(held_out, errors), held_out)
    assert found["swapped"]
    assert f"{(50 - errors) / 2:+.2f} points" in found["reason"]
    assert (found["current"]["nDCG@5"], found["candidate"]["nDCG@5"]) == (75.0, 100 - errors / 2)


def test_a_model_that_is_worse_by_more_than_the_limit_does_not(held_out):
    """3 errors in 200 are 1.5 points: not significant, but too many."""
    found = compared(with_errors(held_out, 0), with_errors(held_out, 3), held_out)
    assert MAX_LOSS < 1.5
    assert (found["swapped"], found["reason"]) == (False, "nDCG@5 of the new model is 1.50 points lower")


def test_a_model_that_is_significantly_worse_does_not():
    """10 more errors in 2,000 are 0.5 points: within the limit, but no chance."""
    texts = [f"text {i}" for i in range(2000)]
    many = dataset_from_names(texts, [["right"] for _ in texts])
    found = compared(with_errors(many, 0), with_errors(many, 10), many)
    assert (found["swapped"], "0.50 points lower" in found["reason"]) == (False, True)


def test_models_may_number_labels_in_other_ways():
    documents = dataset_from_names([FISH, TEA, "smoke"], [["fish", "food"], ["tea"], ["unseen"]])
    answers = {FISH: ["fish", "cocoa"], TEA: ["cocoa", "tea"], "smoke": []}
    for names in (["cocoa", "tea", "fish"], ["fish", "tea", "cocoa", "other"]):
        Y, top = predicted(FixedTagger(names, answers), documents)
        hits = [[label >= 0 and bool(Y[row, label]) for label in top.labels[row]] for row in range(3)]
        assert hits == [[True, False, False, False, False], [False, True, False, False, False], [False] * 5]
        assert Y.sum() == documents.Y.sum()


# Training again, from a folder and a database.


@pytest.fixture
def database(tmp_path):
    opened = open_database(f"{tmp_path / 'feedback.db'}")
    yield opened
    opened.close()


def train(source, folder, **params):
    Tagger(**params).fit_dataset(source.train()).save(folder)
    return folder


def best(folder, text):
    return Tagger.load(folder).tag(text, k=1)[0][0]


def test_feedback_corrects_a_systematic_error(tmp_path, database):
    """All documents about cod were given to bread; people say that they are about fish."""
    wrong = [(f"cod and cold cod {i}", ["bread"]) for i in range(6)]
    source = write(
        tmp_path / "data", train=rows_about(WORDS) + wrong, test=rows_about(WORDS, [9]) + [("cod", ["fish"])]
    )
    folder = train(source, tmp_path / "model", method="neighbors")
    assert best(folder, "a cold cod") == "bread"
    database.add_feedback("m", [feedback(text, rejected=["bread"], added=["fish"]) for text, _ in wrong])
    database.add_feedback("other", [feedback(wrong[0][0], added=["tea"])])
    steps = []
    result = retrain(folder, source, database, "m", lambda step, done, total: steps.append(step), LearnOptions())
    assert (result["swapped"], result["n_feedback"], result["n_corrected_documents"]) == (True, 6, 6)
    assert result["candidate"]["nDCG@5"] > result["current"]["nDCG@5"]
    assert (result["held_out"]["from"], result["compared_with"]) == ("test.jsonl", "the current model")
    assert steps[-1] == "comparing both models"
    assert best(folder, "a cold cod") == "fish"


def test_a_worse_model_is_not_saved(tmp_path, database):
    rows = rows_about(WORDS)
    source = write(tmp_path / "data", train=rows, test=rows_about(WORDS, [9]))
    folder = train(source, tmp_path / "model", method="neighbors")
    before = (folder / "model.json").read_bytes()
    turned = {"fish": "bread", "bread": "tea", "tea": "fish"}
    database.add_feedback("m", [feedback(text, rejected=[had], added=[turned[had]]) for text, (had,) in rows])
    result = retrain(folder, source, database, "m", no_progress, LearnOptions())
    assert (result["swapped"], result["n_corrected_documents"]) == (False, len(rows))
    assert "points lower; the current model is kept" in result["reason"]
    assert (folder / "model.json").read_bytes() == before


def test_a_new_label_is_learned_where_the_current_model_has_seen_all(tmp_path, database):
    """Without test.* the current model is compared by one that has not seen the held-out documents."""
    source = write(tmp_path / "data", train=rows_about(WORDS, range(5)), dev=rows_about(WORDS, [9]))
    folder = train(source, tmp_path / "model", method="neighbors")
    database.add_feedback("m", [feedback(f"hot cocoa with milk {i}", added=["cocoa"]) for i in range(4)])
    result = retrain(folder, source, database, "m", no_progress, LearnOptions())
    assert (result["swapped"], result["n_new_documents"]) == (True, 4)
    assert result["compared_with"] == "the same method without feedback and held-out documents"
    assert result["held_out"] == {"n": 4, "from": "a sample of train.jsonl"}
    assert best(folder, "milk and cocoa") == "cocoa"


def test_documents_learned_from_files_are_not_forgotten_unless_someone_insists(tmp_path, database):
    rows, learned = rows_about(WORDS), [("hot cocoa", ["tea"]), ("hot milk", ["tea"])]
    source = write(tmp_path / "data", train=rows, test=rows_about(WORDS, [9]))
    folder = train(source, tmp_path / "model", method="neighbors")
    tagger = Tagger.load(folder).learn([text for text, _ in learned], [labels for _, labels in learned])
    tagger.save(folder)
    before = (folder / "model.json").read_bytes()
    result = retrain(folder, source, database, "m", no_progress, LearnOptions())
    assert (result["swapped"], result["refused"], result["version"]) == (False, True, None)
    assert "forget documents that the model learned outside the data (2 of unnamed data)" in result["reason"]
    assert (folder / "model.json").read_bytes() == before
    extended = write(tmp_path / "more", train=[*rows, *learned], test=rows_about(WORDS, [9]))
    assert retrain(folder, extended, database, "m", no_progress, LearnOptions())["swapped"]
    tagger.save(folder)
    assert retrain(folder, source, database, "m", no_progress, LearnOptions(force=True))["swapped"]
    assert retrain(folder, source, database, "m", no_progress, LearnOptions())["swapped"]


@pytest.mark.parametrize("keep_texts", [False, True])
def test_a_candidate_is_trained_as_the_current_model_was(documents, tmp_path, keep_texts):
    folder = tmp_path / "model"
    Tagger("neighbors", n_neighbors=2).fit_dataset(documents, keep_texts=keep_texts).save(folder)
    again = trained_like(Tagger.load(folder), documents, None, no_progress)
    assert (again.model.name, again.model.n_neighbors) == ("neighbors", 2)
    assert (again.training_documents_[0][1] is not None) == keep_texts
