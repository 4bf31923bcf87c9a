"""Versions of a model folder: they are kept, listed, restored, and survive a kill at every step."""

import json
import os
import shutil

import pytest

import labelspace
from labelspace import Tagger, store
from labelspace.errors import ModelError
from labelspace.store import atomic
from labelspace.tagger.lineage import Version
from labelspace.tagger.versions import history, open_versioned, rollback
from tests.checks import digest
from tests.learning_model import learns  # noqa: F401 - a fixture
from tests.store.faults import ended, in_child, kills
from tests.tagger.test_lineage import NAMES, TEXTS, changed


@pytest.fixture
def model(learns, monkeypatch, tmp_path):  # noqa: F811
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    monkeypatch.setattr(atomic, "PAUSE", 0)
    folder = tmp_path / "place" / "model"
    Tagger("counting").fit(TEXTS, NAMES).save(folder)
    return folder


def learn(folder, label, n_kept=5):
    """Learn one document with a new label, in a new version."""
    with open_versioned(folder) as opened:
        tagger = Tagger.load(folder)
        tagger.lineage_ = opened.lineage
        tagger.learn(["a text"], [[label]])
        opened.add(tagger, tagger.lineage_[-1], n_kept)


def labels(folder):
    return list(labelspace.load(folder, verify=True).labels_.names)[3:]


def numbers(folder):
    """The numbers of the versions that are kept, and that of the current one."""
    listed = history(folder)
    [current] = [each.version.number for each in listed if each.is_current]
    return [each.version.number for each in listed if each.is_kept], current


def test_a_trained_model_is_its_first_version(model):
    [only] = history(model)
    assert only == (Version(1, "train", n_documents=4, n_labels=3), True, False)
    assert os.listdir(model.parent) == ["model"]


def test_each_learning_keeps_the_version_before(model):
    trained = digest(model)
    for label in "abc":
        learn(model, label)
    assert numbers(model) == ([1, 2, 3], 4)
    assert sorted(os.listdir(model.parent)) == ["model", "model.versions"]
    assert digest(model.with_name("model.versions") / "1") == trained
    assert labels(model.with_name("model.versions") / "3") == ["a", "b"]
    assert [each.version.new_labels for each in history(model)] == [(), ("a",), ("b",), ("c",)]
    linked = model.with_name("model.versions") / "3" / "labels.jsonl"
    assert linked.stat().st_nlink == 1, "the current model has files of its own"


def test_only_the_last_ones_are_kept_but_all_are_listed(model):
    for label in "abcd":
        learn(model, label, n_kept=2)
    assert numbers(model) == ([3, 4], 5)
    assert len(history(model)) == 5
    learn(model, "e", n_kept=0)
    assert numbers(model) == ([], 6)


def test_without_hard_links_files_are_copied(model, monkeypatch):
    def link(*paths):
        raise OSError(1, "not permitted")

    monkeypatch.setattr(os, "link", link)
    learn(model, "a")
    rollback(model)
    assert numbers(model) == ([1, 2], 3)


def test_a_rollback_goes_back_and_can_be_rolled_back(model):
    trained = digest(model)
    learn(model, "a")
    made = rollback(model)
    assert (made.number, made.made_by, made.restored, made.n_labels) == (3, "rollback", 1, 3)
    assert digest(model) == trained
    assert numbers(model) == ([1, 2], 3)
    assert rollback(model).restored == 2
    assert labels(model) == ["a"]
    assert rollback(model, to=1).number == 5
    assert [each.version.made_by for each in history(model)] == ["train", "learn", *["rollback"] * 3]
    learn(model, "b")
    assert labels(model) == ["b"]
    assert numbers(model) == ([1, 2, 3, 4, 5], 6)


def test_what_cannot_be_rolled_back(model):
    with pytest.raises(ModelError, match="needs an earlier version of .*, but none is kept"):
        rollback(model)
    learn(model, "a")
    with pytest.raises(ModelError, match="but 7 is not; kept are: 1"):
        rollback(model, to=7)
    with pytest.raises(ModelError, match="but version 2 is the current one; kept are: 1"):
        rollback(model, to=2)
    (model.with_name("model.versions") / "1" / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelError, match="truncated"):
        rollback(model)
    with pytest.raises(ModelError, match="does not exist"):
        rollback(model.with_name("none"))
    assert sorted(os.listdir(model.parent)) == ["model", "model.versions"]
    assert labels(model) == ["a"]


def test_a_model_trained_in_its_place_goes_on_with_the_numbers(model):
    learn(model, "a")
    learn(model, "b")
    Tagger("counting").fit(TEXTS[:3], NAMES[:3]).save(model)
    assert numbers(model) == ([1, 2], 3)
    learn(model, "c")
    assert numbers(model) == ([1, 2, 3], 4)
    assert [each.version.made_by for each in history(model)] == ["train", "learn", "train", "learn"]
    Tagger("counting").fit(TEXTS, NAMES).save(model)
    assert numbers(model) == ([2, 3], 1), "the first one again, to the byte"


def test_versions_of_another_model_are_not_touched(model):
    learn(model, "a")
    learn(model, "b")
    shutil.rmtree(model)
    Tagger("counting").fit(TEXTS[:3], NAMES[:3]).learn(["a text"], [["other"]]).save(model)
    with pytest.raises(ModelError, match="2 must be version 2 of .*, but is of another model; move"):
        learn(model, "c")
    assert labels(model.with_name("model.versions") / "2") == ["a"]


def test_through_a_link_the_folder_itself_has_the_versions(model, tmp_path):
    (tmp_path / "link").symlink_to(model)
    learn(tmp_path / "link", "a")
    assert numbers(tmp_path / "link") == ([1], 2)
    assert (tmp_path / "link").is_symlink()
    assert model.with_name("model.versions").is_dir()


class TestTwoWriters:
    def test_the_second_one_is_told(self, model):
        with open_versioned(model), pytest.raises(ModelError, match="only one process may change"):
            learn(model, "a")
        learn(model, "a")
        assert sorted(os.listdir(model.parent)) == ["model", "model.versions"]

    def test_what_a_training_wrote_meanwhile_is_not_replaced(self, model):
        with open_versioned(model) as opened:
            tagger = Tagger.load(model).learn(["a text"], [["a"]])
            Tagger("counting").fit(TEXTS, [["other"]] * 4).save(model)
            with pytest.raises(ModelError, match="another process wrote it"):
                opened.add(tagger, tagger.lineage_[-1])
        assert list(labelspace.load(model).labels_.names) == ["other"]


@pytest.mark.parametrize(
    ("hostile", "rule"),
    [
        (lambda where: where.joinpath("99999999999999999999999").mkdir(), "numbered from 1 to 2147483647"),
        (lambda where: where.joinpath("2147483648").mkdir(), "numbered from 1 to"),
        (lambda where: where.joinpath("0").mkdir(), "numbered from 1 to"),
        (lambda where: where.joinpath("007").mkdir(), "numbered from 1 to"),
        (lambda where: where.joinpath("9" * 200).mkdir(), "numbered from 1 to"),
        (lambda where: where.joinpath("7").write_text("x"), "must be a folder"),
        (lambda where: where.joinpath("7").symlink_to(where.parent), "must be a folder"),
        (lambda where: where.joinpath("7").mkdir(), "holds none"),
        (lambda where: changed(where / "1", lineage=[{"number": -1, "made_by": "learn"}]), "as number"),
        (lambda where: changed(where / "1", lineage=5), "a lineage of"),
        (lambda where: (shutil.rmtree(where), where.symlink_to("/etc")), "but is a link or a file"),
        (lambda where: (shutil.rmtree(where), where.write_text("x")), "but is a link or a file"),
    ],
)
def test_a_versions_folder_of_a_stranger_is_refused_in_one_line(model, hostile, rule):
    learn(model, "a")
    hostile(model.with_name("model.versions"))
    before = digest(model)
    with pytest.raises(ModelError) as raised:
        history(model)
    assert rule in str(raised.value)
    assert "\n" not in str(raised.value)
    with pytest.raises(ModelError):
        rollback(model, to=7 if (model.with_name("model.versions") / "7").exists() else 1)
    assert digest(model) == before


@pytest.mark.parametrize("name", ["../../secret", "/etc/hostname", "..", "", "model.json", "a\\b", "missing"])
def test_files_outside_of_a_version_are_not_linked(model, name):
    (model.parent.parent / "secret").write_text("x")
    learn(model, "a")
    kept = model.with_name("model.versions") / "1"
    files = json.loads((kept / "model.json").read_text())["files"]
    changed(kept, files={**files, name: {"bytes": 1, "crc32": 1}})
    with pytest.raises(ModelError, match="must lie in it|is missing"):
        rollback(model)
    assert labels(model) == ["a"]


def test_a_link_in_a_version_is_not_followed(model):
    learn(model, "a")
    path = model.with_name("model.versions") / "1" / "model.safetensors"
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")
    with pytest.raises(ModelError, match=r"model.safetensors is a link; copy"):
        rollback(model)


def test_other_names_in_the_versions_folder_are_left_alone(model):
    learn(model, "a")
    (model.with_name("model.versions") / "notes.txt").write_text("x")
    learn(model, "b", n_kept=1)
    assert sorted(os.listdir(model.with_name("model.versions"))) == ["2", "notes.txt"]


def consistent(folder):
    """The labels of the current version; every version that is kept loads, and has the labels of its lineage."""
    listed = history(folder)
    [current] = [each.version for each in listed if each.is_current]
    kept = store.kept_versions(folder)
    for each in listed:
        if each.is_kept:
            loaded = labelspace.load(kept[each.version.number], verify=True)
            assert len(loaded.labels_) == each.version.n_labels
    assert len(labelspace.load(folder, verify=True).labels_) == current.n_labels
    return current.number, [each.version.number for each in listed if each.is_kept]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
class TestKills:
    def test_at_every_step_of_learning(self, model):
        learn(model, "a", n_kept=2)
        learn(model, "b", n_kept=2)
        saved, seen = model.parent.with_name("saved"), []
        shutil.copytree(model.parent, saved)
        for _ in kills(lambda: learn(model, "c", n_kept=2)):
            number, kept = consistent(model)
            assert kept[-2:] == ([1, 2] if number == 3 else [2, 3]), "nothing announced is lost"
            seen.append(number)
            learn(model, "next", n_kept=2)
            after, kept = consistent(model)
            assert (after, kept) == (number + 1, [number - 1, number])
            assert sorted(os.listdir(model.parent)) == ["model", "model.versions"], "leftovers are removed"
            assert sorted(os.listdir(model.with_name("model.versions"))) == [str(each) for each in kept]
            shutil.rmtree(model.parent)
            shutil.copytree(saved, model.parent)
        assert set(seen) == {3, 4}
        assert seen == sorted(seen)
        assert len(seen) > 20

    def test_at_every_step_of_a_rollback(self, model):
        learn(model, "a")
        saved, seen = model.parent.with_name("saved"), []
        shutil.copytree(model.parent, saved)
        for _ in kills(lambda: rollback(model)):
            number, kept = consistent(model)
            assert (number, kept) in [(2, [1]), (3, [1, 2])]
            seen.append(number)
            learn(model, "next")
            assert consistent(model) == (number + 1, [*kept, number])
            shutil.rmtree(model.parent)
            shutil.copytree(saved, model.parent)
        assert seen == sorted(seen)
        assert set(seen) == {2, 3}

    def test_the_lock_of_a_killed_process_does_not_hold(self, model):
        def hold():
            with open_versioned(model):
                os.kill(os.getpid(), 9)

        assert not ended(in_child(hold))
        learn(model, "a")
        assert sorted(os.listdir(model.parent)) == ["model", "model.versions"]
