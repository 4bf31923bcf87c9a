"""Learning that goes on from the current model: what is learned once, what is refused, what a rollback undoes."""

import json

import pytest

from labelspace import store
from labelspace.data.source import open_source
from labelspace.errors import DataError, ModelError
from labelspace.server.database import Feedback, open_database
from labelspace.server.learning import LabelRequest, LearnOptions, edit_model, go_back, learn_more, retrain
from labelspace.server.learning.feedback_documents import learning_documents
from labelspace.server.learning.learned_batches import learned_batches
from labelspace.tagger import Tagger
from labelspace.tagger.lineage import Version
from labelspace.tagger.versions import history
from labelspace.types import LabelSpace, no_progress

WORDS = {"fish": "salmon tuna trout cod", "bread": "rye wheat loaf crust", "tea": "green cup leaves lemon"}
M = "m"


def rows(numbers, words=WORDS):
    """Texts about labels, each of two words of its label and a number."""
    return [
        (f"{a} with {b} {at}", [label])
        for at in numbers
        for label, several in words.items()
        for a, b in zip(several.split(), several.split()[1:], strict=False)
    ]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Data, and a model of them; not to be changed."""
    place = tmp_path_factory.mktemp("base")
    for name, numbers in (("train", range(4)), ("test", range(10, 14))):
        lines = (json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in rows(numbers))
        (place / f"{name}.jsonl").write_text("".join(lines))
    Tagger("neighbors").fit_dataset(open_source(place).train()).save(place / "model")
    return place


@pytest.fixture
def folder(base, tmp_path):
    Tagger.load(base / "model").save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def database(tmp_path):
    opened = open_database(f"{tmp_path / 'feedback.db'}")
    yield opened
    opened.close()


def cocoa(n, first=0):
    return [Feedback(text=f"hot cocoa with milk {at}", added=["cocoa"]) for at in range(first, first + n)]


def learn(folder, database, data=None, **options):
    return learn_more(folder, None if data is None else str(data), database, M, no_progress, LearnOptions(**options))


def learned(database):
    return [entry.learned for entry in database.feedback(M)]


def n_documents(folder):
    return Tagger.load(folder).labels_.n_documents


def best(folder, text):
    return Tagger.load(folder).tag(text, k=1)[0][0]


def test_new_feedback_is_learned_once(folder, database, base):
    database.add_feedback(M, cocoa(3))
    result = learn(folder, database, base)
    assert (result["mode"], result["swapped"], result["version"]) == ("incremental", True, 2)
    assert (result["n_feedback"], result["n_new_documents"], result["new_labels"]) == (3, 3, ["cocoa"])
    assert result["held_out"] == {"n": len(rows(range(10, 14))), "from": "test.jsonl"}
    assert result["difference"][1] <= result["difference"][0] <= result["difference"][2]
    assert best(folder, "cocoa and milk") == "cocoa"
    assert (learned(database), database.count_new_feedback(M)) == ([True] * 3, 0)
    again = learn(folder, database, base)
    assert (again["swapped"], again["refused"], again["reason"]) == (False, False, "there is no new feedback")
    database.add_feedback(M, cocoa(2, first=3))
    assert learn(folder, database, base)["n_feedback"] == 2
    assert n_documents(folder) == len(rows(range(4))) + 5
    assert [each.version.number for each in history(folder) if each.is_kept] == [1, 2]


def test_what_is_rejected_is_not_suggested_again(folder, database):
    texts = [f"salmon with crust {at}" for at in range(6)]
    database.add_feedback(M, [Feedback(text=text, rejected=["fish"]) for text in texts])
    before = dict(Tagger.load(folder).tag("salmon with crust", k=3))
    assert learn(folder, database)["swapped"]
    after = dict(Tagger.load(folder).tag("salmon with crust", k=3))
    assert after.get("fish", 0) <= before["fish"]


def test_a_version_that_is_worse_is_refused_unless_insisted_on(folder, database, base):
    turned = {"fish": "bread", "bread": "tea", "tea": "fish"}
    for at in range(20, 32):  # neighbors of the test documents, with the labels of others
        entries = [Feedback(text=text, rejected=[had], added=[turned[had]]) for text, (had,) in rows([at])]
        database.add_feedback(M, entries)
    before = (folder / "model.json").read_bytes()
    result = learn(folder, database, base)
    assert (result["swapped"], result["refused"], result["version"]) == (False, True, None)
    assert "more than chance; the current model is kept" in result["reason"]
    assert (folder / "model.json").read_bytes() == before
    assert not any(learned(database))
    forced = learn(folder, database, base, force=True)
    assert (forced["swapped"], forced["forced"], all(learned(database))) == (True, True, True)
    assert history(folder)[-1].version.forced


def test_texts_with_feedback_do_not_judge(folder, database, base):
    test = rows(range(10, 14))
    database.add_feedback(M, [Feedback(text=test[0][0], accepted=test[0][1])])
    assert learn(folder, database, base)["held_out"] == {"n": len(test) - 1, "from": "test.jsonl"}


def test_without_held_out_documents_nothing_is_compared_until_there_is_a_sample(folder, database):
    database.add_feedback(M, cocoa(2))
    result = learn(folder, database)
    assert (result["held_out"], result["current"]) == (None, {})
    assert "start the server with --data" in result["reason"]
    database.add_feedback(M, [Feedback(text=text, accepted=names) for text, names in rows(range(40, 50))])
    result = learn(folder, database)
    assert result["held_out"]["from"] == "the held-out sample"
    sample = Tagger.load(folder).held_out_
    assert len(sample) == result["held_out"]["n"] == result["n_unused_documents"] > 0


def test_entries_of_one_text_are_one_document_and_later_ones_count_more():
    labels = LabelSpace(["fish", "bread"])
    old = Feedback(text="a", accepted=["fish"])
    new = [
        Feedback(text="a", added=["cocoa"]),
        Feedback(text="b", accepted=["fish"]),
        Feedback(text="b", rejected=["fish"]),
    ]
    found = learning_documents(new, [old, *new], labels)
    assert (found.documents.texts, found.documents.labels.names) == (["a", "b"], ["fish", "bread", "cocoa"])
    assert found.documents.Y.toarray().tolist() == [[1, 0, 1], [0, 0, 0]]
    assert found.rejected.toarray().tolist() == [[0, 0, 0], [1, 0, 0]]


def test_feedback_on_labels_that_were_edited_since(folder, database):
    database.add_feedback(
        M,
        [
            Feedback(text="a tasty carp", accepted=["fish"]),
            Feedback(text="a toast", accepted=["bread"]),
            Feedback(text="a mug", rejected=["tea"]),
        ],
    )
    for edit in (
        LabelRequest("change", "fish", name="seafood"),
        LabelRequest("add", "food"),
        LabelRequest("merge", "bread", into="food"),
        LabelRequest("retire", "tea"),
    ):
        assert edit_model(folder, database, M, no_progress, edit, 5)["swapped"]
    assert database.count_new_feedback(M) == 3
    result = learn(folder, database)
    assert (result["n_new_documents"], result["n_unused_documents"], result["n_new_labels"]) == (2, 1, 0)
    assert (best(folder, "carp"), best(folder, "toast")) == ("seafood", "food")
    assert sorted(Tagger.load(folder).labels_.names) == ["bread", "food", "seafood", "tea"]


# Versions.


def test_after_a_rollback_what_was_learned_later_is_new_again(folder, database):
    database.add_feedback(M, cocoa(1))
    learn(folder, database)
    database.add_feedback(M, cocoa(1, first=1))
    learn(folder, database)
    assert go_back(folder, database, M, 2, 5).number == 4
    assert learned(database) == [True, False]
    go_back(folder, database, M, 3, 5)
    assert learned(database) == [True, True]
    go_back(folder, database, M, 1, 5)
    assert learned(database) == [False, False]
    assert learn(folder, database)["n_feedback"] == 2
    assert n_documents(folder) == len(rows(range(4))) + 2
    with pytest.raises(ModelError, match="a rollback needs a version .* that is kept, but 99 is not"):
        go_back(folder, database, M, 99, 5)


def test_nothing_is_learned_twice_where_one_goes_back_and_forth(folder, database, monkeypatch):
    """What a version had learned is taken again after a rollback, by a learning that fails; then one returns to it."""
    database.add_feedback(M, cocoa(2))
    learn(folder, database)
    go_back(folder, database, M, 1, 5)
    database.add_feedback(M, cocoa(1, first=2))
    with monkeypatch.context() as patched:
        patched.setattr(Tagger, "save", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learn(folder, database)
    go_back(folder, database, M, 2, 5)
    assert learned(database) == [True, True, False]
    assert learn(folder, database)["n_feedback"] == 1
    assert n_documents(folder) == len(rows(range(4))) + 3


def test_a_model_trained_in_its_place_has_learned_nothing(folder, database, base):
    database.add_feedback(M, cocoa(2))
    learn(folder, database)
    Tagger("neighbors", n_neighbors=3).fit_dataset(open_source(base).train()).save(folder)
    assert learn(folder, database)["n_feedback"] == 2
    assert best(folder, "cocoa and milk") == "cocoa"


def test_a_full_training_learns_all_feedback_and_goes_on_with_the_numbers(folder, database, base):
    database.add_feedback(M, cocoa(2))
    learn(folder, database, base)
    database.add_feedback(M, cocoa(2, first=2))
    result = retrain(folder, open_source(base), database, M, no_progress, LearnOptions(full=True))
    assert (result["mode"], result["swapped"], result["n_feedback"], result["version"]) == ("full", True, 4, 3)
    assert all(learned(database))
    assert best(folder, "cocoa and milk") == "cocoa"
    last = history(folder)[-1].version
    assert (last.made_by, last.n_new_documents, last.held_out.source) == ("train", 2, "test.jsonl")
    assert learn(folder, database, base)["reason"] == "there is no new feedback"
    go_back(folder, database, M, 2, 5)
    assert learned(database) == [True, True, False, False]


def test_a_full_training_keeps_edits_of_labels(folder, database, base):
    database.add_feedback(M, [Feedback(text="a salmon and a mug", accepted=["fish"])])  # its name before
    for edit in (
        LabelRequest("change", "fish", name="seafood"),
        LabelRequest("merge", "bread", into="seafood"),
        LabelRequest("retire", "tea"),
    ):
        edit_model(folder, database, M, no_progress, edit, 5)
    result = retrain(folder, open_source(base), database, M, no_progress, LearnOptions(full=True, force=True))
    assert result["swapped"]
    assert best(folder, "salmon with tuna") == "seafood"
    assert {name for name, _ in Tagger.load(folder).tag("rye wheat green cup", k=5)} == {"seafood"}


def test_a_full_training_that_is_worse_is_refused_unless_insisted_on(folder, database, base):
    turned = {"fish": "bread", "bread": "tea", "tea": "fish"}
    wrong = [Feedback(text=text, rejected=[had], added=[turned[had]]) for text, (had,) in rows(range(4))]
    database.add_feedback(M, wrong)
    source = open_source(base)
    result = retrain(folder, source, database, M, no_progress, LearnOptions(full=True))
    assert (result["refused"], learned(database)[0]) == (True, False)
    result = retrain(folder, source, database, M, no_progress, LearnOptions(full=True, force=True))
    assert (result["swapped"], result["forced"], learned(database)[0]) == (True, True, True)
    assert "this was insisted on" in result["reason"]


@pytest.mark.parametrize(
    ("lineage", "names", "is_complete"),
    [
        ([Version(1, "train")], [], True),
        ([Version(5, "learn", data="feedback", sha256="a")], ["a"], False),  # older entries were dropped
        ([Version(1, "train"), Version(2, "learn", data="new.csv", sha256="b")], [], True),
        ([Version(3, "learn", data="feedback", sha256="a"), Version(4, "rollback", restored=2)], [], False),
        ([Version(3, "learn", data="feedback", sha256="a"), Version(4, "rollback", restored=9)], [], False),
        ([Version(4, "rollback", restored=4)], [], False),
        ([Version(1, "learn", data="feedback", sha256="a"), Version(2, "train")], [], True),
        (
            [Version(1, "learn", data="feedback", sha256="a"), Version(2, "train", data="feedback", sha256="b")],
            ["a", "b"],
            False,
        ),
    ],
)
def test_the_batches_of_a_lineage(lineage, names, is_complete):
    found = learned_batches(lineage)
    assert (sorted(found.names), found.is_complete) == (names, is_complete)


# Edits of labels.


def test_edits_make_versions(folder, database):
    for edit in (
        LabelRequest("add", "cocoa", alt=("hot chocolate",), examples=("cocoa with milk", "hot cocoa")),
        LabelRequest("change", "fish", name="seafood", alt=("fishes",)),
        LabelRequest("merge", "bread", into="seafood"),
        LabelRequest("retire", "tea"),
    ):
        edit_model(folder, database, M, no_progress, edit, 5)
    tagger = Tagger.load(folder)
    assert (best(folder, "hot cocoa"), best(folder, "rye")) == ("cocoa", "seafood")
    assert {"fish", "fishes", "bread"} <= set(tagger.labels_.synonyms[tagger.labels_.find("seafood")])
    assert [each.version.made_by for each in history(folder)] == ["train", *["labels"] * 4]
    assert history(folder)[1].version.new_labels == ("cocoa",)
    edit_model(folder, database, M, no_progress, LabelRequest("add", "tea"), 5)
    assert best(folder, "green cup") == "tea"


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (LabelRequest("add", "fish"), "label names must be unique, but 'fish' is a label already"),
        (LabelRequest("add", " "), "one line"),
        (LabelRequest("change", "fish", name="tea"), "label names must be unique, but 'tea' is a label already"),
        (LabelRequest("change", "cow", name="ox"), "a label must be known, but 'cow' is"),
        (LabelRequest("merge", "fish", into="fish"), "merged into another one, but 'fish' is given twice"),
        (LabelRequest("merge", "fish", into="cow"), "a label must be known, but 'cow' is"),
    ],
)
def test_edits_that_cannot_be_made(folder, database, edit, rule):
    before = (folder / "model.json").read_bytes()
    with pytest.raises(DataError, match=rule):
        edit_model(folder, database, M, no_progress, edit, 5)
    assert (folder / "model.json").read_bytes() == before


def test_one_process_changes_a_model_at_a_time(folder, database):
    with store.changing(folder), pytest.raises(ModelError, match="only one process may change"):
        learn(folder, database)
