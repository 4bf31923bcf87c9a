"""Taggers on the Hugging Face Hub: a repository there is a model folder, with its model card as README.md."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from labelspace.errors import ModelError, require

if TYPE_CHECKING:
    from labelspace.tagger.tagger import Tagger

MODEL_FILES = ["model.json", "labels.jsonl", "*.safetensors", "*.faiss"]  # what loading reads


def push(tagger: Tagger, repository: str, license: str | None, private: bool | None, message: str) -> str:
    """Upload a tagger in one commit, which removes what it does not have of an older model; return the commit's URL."""
    hub = require("huggingface_hub", "hub", "push_to_hub")
    with TemporaryDirectory(prefix="labelspace-") as scratch:
        folder = Path(scratch) / "model"
        tagger.save(folder, license=license)
        with _explaining(f"the model must be uploaded to {repository}", "log in by `hf auth login`, or try again"):
            hub.create_repo(repository, private=private, exist_ok=True)
            # The hub keeps files that match a pattern and are uploaded.
            options = {"folder_path": folder, "commit_message": message, "delete_patterns": MODEL_FILES}
            return str(hub.upload_folder(repo_id=repository, **options).commit_url)


def pull(repository: str, revision: str | None, local_files_only: bool) -> Path:
    """Return the folder in the hub's cache with the model of a repository; download only what loading reads."""
    hub = require("huggingface_hub", "hub", "from_pretrained")
    where = "in the cache of the hub" if local_files_only else "downloaded, or in the cache of the hub"
    with _explaining(f"the model {repository} must be {where}", "check its name and revision, or try again"):
        options = {"revision": revision, "local_files_only": local_files_only, "allow_patterns": MODEL_FILES}
        return Path(hub.snapshot_download(repository, **options))


@contextmanager
def _explaining(rule: str, remedy: str) -> Iterator[None]:
    """Turn any error of the network, the hub or the disk into a ModelError of one line."""
    try:
        yield
    except Exception as error:
        raise ModelError(f"{rule}, but that failed ({type(error).__name__}: {error}); {remedy}") from error
