import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest

from labelspace import store
from labelspace.data.synthetic import planted
from labelspace.errors import ModelError
from labelspace.features.views import Views
from labelspace.models.base import Model
from labelspace.models.blend import model as blend_model
from labelspace.models.blend.checkpoints import FinishedSteps
from labelspace.models.blend.model import Blend
from labelspace.training.checkpoints import Checkpoint
from labelspace.types import LabelSpace, TopK
from tests.checks import digest

pytestmark = pytest.mark.slow  # many small trainings

SETTINGS = {"members": "neighbors,label_tree,lexical", "n_folds": 2, "boosting_rounds": 4}
STEPS = 2 * 3 + 3 + 1


@pytest.fixture(scope="module")
def documents():
    drawn = planted(n=70, d=60, l=10, texts=True, seed=3)
    names = LabelSpace([f"label w{i}" for i in range(10)], [[f"w{2 * i}"] for i in range(10)])
    return replace(drawn, labels=names)


def views(documents):
    return Views({"words": documents.X, "text": documents.texts})


def fit(documents, folder=None, progress=None, validation=None, **params):
    held = None if validation is None else (views(validation), validation.Y)
    return Blend(**{**SETTINGS, **params}).fit(
        views(documents), documents.Y, labels=documents.labels, checkpoint=folder, progress=progress, validation=held
    )


class StoppedError(Exception):
    """As a kill would be."""


def stop_at(number):
    """A progress that stops the training at the beginning of its n-th step; the last one is the end."""
    seen = {}

    def progress(step, done, total):
        seen.setdefault(step if done < total else "the end")
        if len(seen) == number:
            raise StoppedError

    return progress


def kept(folder):
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def saved(model, folder):
    model.save(folder)
    return digest(folder), json.loads((folder / "model.json").read_text())["model"]


@pytest.mark.parametrize("number", range(2, STEPS + 2))
def test_killed_at_any_step_it_resumes_to_the_same_model(documents, tmp_path, number, straight):
    with pytest.raises(StoppedError):
        fit(documents, tmp_path / "kept", stop_at(number))
    assert len(kept(tmp_path / "kept")) == 1 + min(number - 1, STEPS - 1)
    resumed = fit(documents, tmp_path / "kept")
    assert saved(resumed, tmp_path / "resumed") == straight
    assert os.listdir(tmp_path / "kept") == [], "what is no longer needed is removed"


@pytest.fixture(scope="module")
def straight(documents, tmp_path_factory):
    return saved(fit(documents), tmp_path_factory.mktemp("models") / "straight")


def test_killed_at_every_step_in_turn_no_member_is_trained_twice(documents, tmp_path, straight, monkeypatch):
    trained, fit_checked = [], Model.fit_checked

    def counted(self, *args):
        fitted = fit_checked(self, *args)
        trained.append(self.name)
        return fitted

    monkeypatch.setattr(Model, "fit_checked", counted)
    for _ in range(STEPS - 1):
        with pytest.raises(StoppedError):
            fit(documents, tmp_path / "kept", stop_at(2))
    assert saved(fit(documents, tmp_path / "kept"), tmp_path / "resumed") == straight
    assert trained == ["neighbors", "label_tree", "lexical"] * 3 + ["blend"]


def test_killed_while_a_member_is_trained(documents, tmp_path, straight, monkeypatch):
    fit_checked = Model.fit_checked

    def fails(self, *args):
        if self.name == "lexical":
            raise StoppedError
        return fit_checked(self, *args)

    with monkeypatch.context() as patched:
        patched.setattr(Model, "fit_checked", fails)
        with pytest.raises(StoppedError):
            fit(documents, tmp_path / "kept")
    names = ["blend-fold-1-member-1.safetensors", "blend-fold-1-member-2.safetensors", "blend.safetensors"]
    assert kept(tmp_path / "kept") == names
    assert saved(fit(documents, tmp_path / "kept"), tmp_path / "resumed") == straight


def test_with_validation_documents_it_resumes_too(documents, tmp_path):
    train, held = documents.rows(range(60)), documents.rows(range(60, 70))
    straight = saved(fit(train, validation=held), tmp_path / "straight")
    with pytest.raises(StoppedError):
        fit(train, tmp_path / "kept", stop_at(3), held)
    assert kept(tmp_path / "kept") == ["blend-member-1", "blend-member-2", "blend.safetensors"]
    with pytest.raises(ModelError, match="is of others; delete it, or give another folder"):
        fit(train, tmp_path / "kept")
    assert saved(fit(train, tmp_path / "kept", validation=held), tmp_path / "resumed") == straight


def test_a_member_that_can_resume_has_a_folder_of_its_own(documents, tmp_path):
    settings = {"members": "glas", "n_folds": 1}
    straight = saved(fit(documents, **settings), tmp_path / "straight")
    seen = []

    def stop(step, done, total):
        seen.append(step)
        if seen.count("all documents: glas") > 40:
            raise StoppedError

    with pytest.raises(StoppedError):
        fit(documents, tmp_path / "kept", stop, **settings)
    names = ["blend-fold-1-member-1.safetensors", "blend-member-1-training", "blend.safetensors"]
    assert kept(tmp_path / "kept") == names, "that of the fold is removed"
    assert kept(tmp_path / "kept" / "blend-member-1-training") == ["checkpoint.safetensors"]
    assert saved(fit(documents, tmp_path / "kept", **settings), tmp_path / "resumed") == straight
    assert os.listdir(tmp_path / "kept") == []


@pytest.fixture(scope="module")
def stopped(documents, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(StoppedError):
        fit(documents, folder, stop_at(STEPS - 1))
    return folder


@pytest.fixture
def interrupted(stopped, tmp_path):
    """A folder with all folds and two members trained on all documents."""
    return shutil.copytree(stopped, tmp_path / "kept")


@pytest.mark.parametrize(
    "other",
    [{"members": "neighbors,label_tree"}, {"random_state": 1}, {"n_folds": 3}, "X", "Y", "texts", "labels", "version"],
)
def test_the_checkpoint_of_another_training_is_refused_and_left(documents, interrupted, other, monkeypatch):
    params = other if isinstance(other, dict) else {}
    if other == "X":
        documents = replace(documents, X=documents.X * 2)
    elif other == "Y":
        documents = replace(documents, Y=documents.Y[::-1])
    elif other == "texts":
        documents = replace(documents, texts=[*documents.texts[:-1], "another"])
    elif other == "labels":
        documents = replace(documents, labels=replace(documents.labels, synonyms=[["other"]] * 10))
    elif other == "version":
        monkeypatch.setattr(blend_model, "__version__", "0.0.0")
    before = kept(interrupted)
    with pytest.raises(ModelError, match=r"^a checkpoint must be of the same data and parameters, but .*blend\.safe"):
        fit(documents, interrupted, **params)
    assert kept(interrupted) == before


def test_without_the_file_that_says_which_training_it_is_all_starts_anew(documents, interrupted, tmp_path):
    (interrupted / "blend.safetensors").unlink()
    (interrupted / "blend-member-list.txt").write_text("not ours")
    with pytest.raises(StoppedError):
        fit(documents, interrupted, stop_at(1), random_state=5)
    assert kept(interrupted) == ["blend-member-list.txt", "blend.safetensors"]


def test_a_second_training_in_the_same_folder_is_refused(documents, tmp_path):
    with FinishedSteps(tmp_path, {}).in_use(), pytest.raises(ModelError, match="used by one training at a time"):
        fit(documents, tmp_path)


def fingerprint(folder):
    return json.loads(store.read_manifest(folder / "blend-member-1")["fingerprint"])


@pytest.mark.parametrize(
    ("labels", "scores", "seconds", "message"),
    [
        (10, 0.5, 1.0, "its labels are not of the 10"),
        (-2, 0.5, 1.0, "its labels are not of the 10"),
        (2**31 - 1, 0.5, 1.0, "its labels are not of the 10"),
        (1, np.nan, 1.0, "are out of range"),
        (1, -np.inf, 1.0, "are out of range"),
        (1, 0.5, float("nan"), "are out of range"),
        (1, 0.5, -1, "are out of range"),
        (1, 0.5, 10**400, "are out of range"),
        (1, 0.5, "1", "its values are not those"),
    ],
)
def test_predictions_of_a_stranger_are_checked(documents, interrupted, labels, scores, seconds, message):
    top = TopK.empty(35, 10)
    top.labels[:], top.scores[:] = 1, 0.5
    top.labels[3, 2], top.scores[3, 2] = labels, scores
    checkpoint = Checkpoint(interrupted, fingerprint(interrupted), "blend-fold-1-member-2")
    checkpoint.write({"labels": top.labels, "scores": top.scores}, {"seconds": seconds})
    with pytest.raises(ModelError, match=f"member-2.safetensors must be .*{message}.*; delete it to start again") as e:
        fit(documents, interrupted)
    assert "\n" not in str(e.value)


def test_a_member_of_a_stranger_is_checked(documents, interrupted):
    folder = interrupted / "blend-member-1"
    about = {"method": "neighbors", "fingerprint": store.read_manifest(folder)["fingerprint"]}
    others = [
        Blend(members="neighbors", boosting_rounds=2).fit(documents.X, documents.Y),
        Blend(**SETTINGS).fit(views(documents), documents.Y, labels=documents.labels).members_[1],
        blend_model.method("neighbors")().fit(documents.X[:, :50], documents.Y),
        blend_model.method("neighbors")().fit(documents.X, documents.Y[:, :9]),
        blend_model.method("neighbors")(n_neighbors=3).fit(documents.X, documents.Y),
    ]
    for other in others:
        store.save(folder, about, {"model": other}, None)
        with pytest.raises(ModelError, match="must be of the same data and parameters, but .*blend-member-1 is of"):
            fit(documents, interrupted)
    store.save(folder, {**about, "fingerprint": "another"}, {"model": others[-1]}, None)
    with pytest.raises(ModelError, match="must be of the same data and parameters"):
        fit(documents, interrupted)


@pytest.mark.parametrize("damage", ["cut", "empty", "no manifest", "a file"])
def test_a_damaged_member_is_refused_in_one_line(documents, interrupted, damage):
    folder = interrupted / "blend-member-1"
    file = folder / ("model.json" if damage in ("no manifest", "a file") else "model.safetensors")
    content = file.read_bytes()
    file.unlink()
    if damage in ("cut", "empty"):
        file.write_bytes(content[:-9] if damage == "cut" else b"")
    elif damage == "a file":
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        folder.write_bytes(b"x")
    with pytest.raises(ModelError, match=r"blend-member-1 must be a checkpoint of this version.*; delete it to") as e:
        fit(documents, interrupted)
    assert "\n" not in str(e.value)
