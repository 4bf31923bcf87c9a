"""Taggers on the Hugging Face Hub, which is replaced by a folder."""

import inspect
import os
import shutil
import sys
from fnmatch import fnmatch
from types import SimpleNamespace

import pytest

from labelspace import Tagger
from labelspace.errors import MissingExtraError, ModelError, NotFittedError
from tests.learning_model import learns  # noqa: F401 - a fixture
from tests.tagger.test_lineage import NAMES, TEXTS


def matches(name, patterns):
    return any(fnmatch(name, pattern) for pattern in patterns)


class FakeHub:
    """The functions of ``huggingface_hub`` that are used, with their names of parameters; one folder per repository."""

    def __init__(self, folder):
        self.folder, self.calls = folder, []

    def create_repo(self, repo_id, *, private=None, exist_ok=False):
        self.calls.append((repo_id, private))
        (self.folder / repo_id).mkdir(parents=True, exist_ok=exist_ok)

    def upload_folder(self, *, repo_id, folder_path, commit_message=None, delete_patterns=None):
        for path in (self.folder / repo_id).iterdir():
            if matches(path.name, delete_patterns):
                path.unlink()
        shutil.copytree(folder_path, self.folder / repo_id, dirs_exist_ok=True)
        self.calls.append(commit_message)
        return SimpleNamespace(commit_url=f"https://hub/{repo_id}/commit/1")

    def snapshot_download(self, repo_id, *, revision=None, local_files_only=False, allow_patterns=None):
        self.calls.append((repo_id, revision, local_files_only))
        if not (self.folder / repo_id).is_dir():
            raise OSError("404\nnot found")
        snapshot = self.folder / "cache" / str(revision)
        snapshot.mkdir(parents=True)
        for path in (self.folder / repo_id).iterdir():
            if matches(path.name, allow_patterns):
                os.symlink(path, snapshot / path.name)  # as the hub's cache has them
        return str(snapshot)


@pytest.fixture
def fake(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    made = FakeHub(tmp_path / "hub")
    for name in ("create_repo", "upload_folder", "snapshot_download"):
        monkeypatch.setattr(hub, name, getattr(made, name))
    return made


def test_a_tagger_comes_back_from_the_hub_without_what_loading_does_not_read(fake, learns):  # noqa: F811
    repository = fake.folder / "me" / "recipes"
    repository.mkdir(parents=True)
    for name in ("old.safetensors", "run.py", ".gitattributes"):
        (repository / name).write_text("x")
    tagger = Tagger("counting").fit(TEXTS, NAMES)
    url = tagger.push_to_hub("me/recipes", license="mit", private=True, message="First")
    assert url == "https://hub/me/recipes/commit/1"
    names = {path.name for path in repository.iterdir()}
    assert {"README.md", "model.json", "run.py", ".gitattributes"} <= names
    assert "old.safetensors" not in names
    loaded = Tagger.from_pretrained("me/recipes", revision="v1", local_files_only=True)
    assert loaded.tag("red apple") == tagger.tag("red apple")
    assert loaded.license_ == "mit"
    assert fake.calls == [("me/recipes", True), "First", ("me/recipes", "v1", True)]
    cached = {path.name for path in (fake.folder / "cache" / "v1").iterdir()}
    assert not cached & {"run.py", "README.md", ".gitattributes"}


def test_what_fails_on_the_hub_is_said_in_one_line(fake, learns, monkeypatch):  # noqa: F811
    with pytest.raises(ModelError, match=r"the model me/none must be downloaded, .* failed \(OSError: 404 not found\)"):
        Tagger.from_pretrained("me/none")
    with pytest.raises(NotFittedError):
        Tagger("counting").push_to_hub("me/recipes")
    (fake.folder / "me").mkdir(parents=True)
    (fake.folder / "me" / "file").write_text("")
    with pytest.raises(ModelError, match="must be uploaded to me/file, but that failed .*; log in by `hf auth login`"):
        Tagger("counting").fit(TEXTS, NAMES).push_to_hub("me/file")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"labelspace\[hub\]"):
        Tagger.from_pretrained("me/recipes")


def test_the_functions_of_the_hub_take_what_they_are_given():
    hub = pytest.importorskip("huggingface_hub")
    for name in ("create_repo", "upload_folder", "snapshot_download"):
        ours = inspect.signature(getattr(FakeHub, name)).parameters.keys() - {"self"}
        assert ours <= inspect.signature(getattr(hub, name)).parameters.keys()
