"""Write and load the shards of a model: ``MODEL.shards/VERSION-N/`` has a folder for each, and ``shards.json``.

Shards are written once for each version of the model, and loaded by path: a shard is memory-mapped by its process.
The folder ``door`` has the part of the front end, ``shard-0`` and so on have the shards. They are no models: only the
server loads them.
"""

import json
import os
import re
import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple

from labelspace import store
from labelspace.cluster.serving.sharded_labels import CLASSIFIERS, VECTORS, IndexShard, LinearShard
from labelspace.cluster.serving.sharded_tree import TREES, TreeShard
from labelspace.cluster.serving.sharding import Shards, Splitting
from labelspace.errors import ModelError, ParameterError
from labelspace.estimator import Stateful
from labelspace.models.base import Model
from labelspace.models.registry import method

Shard = TreeShard | IndexShard | LinearShard


METHODS = {"label_tree": TREES, "glas": VECTORS, "leml": VECTORS, "one_vs_rest": CLASSIFIERS, "pdsparse": CLASSIFIERS}
SHARDS = {kind.name: kind for kind in (TreeShard, IndexShard, LinearShard)}


def splitting_of(model: Model) -> Splitting:
    """Return how a model is split into shards; raise ParameterError if it cannot be split."""
    if model.name not in METHODS:
        rule = f"a model that is split into shards must be of {', '.join(METHODS)}"
        raise ParameterError(f"{rule}, but is of {model.name}; train one of these, or use --replicas")
    return METHODS[model.name]


def shard_class(name: str) -> type[Shard]:
    """Return the class of a saved shard.

    >>> shard_class("nodes").__name__
    'TreeShard'
    """
    if name not in SHARDS:
        raise ModelError(f"a saved shard must be one of {', '.join(SHARDS)}, but is {name!r}; split the model again")
    return SHARDS[name]


MANIFEST, FRONT_END, PART = "shards.json", "door", "shard"
FORMAT = 1
LOOK_SECONDS = 0.2  # between two looks whether another process has written the shards


class SavedPart(NamedTuple):
    """A folder, and the checksum that it must have."""

    folder: str
    checksum: int


class ShardFolder(NamedTuple):
    """The saved parts of a split model."""

    front_end: SavedPart
    shards: tuple[SavedPart, ...]

    @property
    def largest_bytes(self) -> int:
        """The size of the largest shard."""
        return max(store.folder_bytes(shard.folder) for shard in self.shards)

    def connected(self, shards: Shards) -> Model:
        """Load the front end, and connect it with its shards; return a model that answers as the whole one."""
        front_end = load_part(self.front_end, method)
        model: Model = splitting_of(front_end).connected(front_end, shards)
        return model


def saved_model(folder: str | Path) -> SavedPart:
    """Return the folder and the checksum of a model as it is on disk now."""
    path = os.path.realpath(folder)
    return SavedPart(path, store.read_unreplaced(path, lambda: int(store.read_manifest(path)["checksum"])))


def shards_of(saved: SavedPart, n: int) -> ShardFolder | None:
    """Return the n shards of a model, or None if they have not been written."""
    folder = _folder_of(saved, n)
    if not (folder / MANIFEST).is_file():
        return None
    try:
        listed = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if listed != store.sealed(listed) or listed["format"] != FORMAT or listed["parts"].keys() != set(_names(n)):
            raise ValueError("it was damaged or edited, or has a different version")
        parts = [SavedPart(str(folder / name), int(listed["parts"][name])) for name in _names(n)]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        remedy = "remove the folder, it is made anew"
        raise ModelError(f"{folder / MANIFEST} must list shards, but cannot be read so ({error}); {remedy}") from error
    return ShardFolder(parts[0], tuple(parts[1:]))


def write_shards(saved: SavedPart, model: Model, n: int) -> ShardFolder:
    """Split a model, and write its n shards unless they are there; shards of older versions are removed."""
    folder = _folder_of(saved, n)
    folder.mkdir(parents=True, exist_ok=True)
    while (found := shards_of(saved, n)) is None:
        with store.locked(folder.with_name(f".{folder.name}.lock")) as free:
            if free:
                _write(folder, model, n)
                _remove_older(folder)
        if not free:  # another process writes them
            time.sleep(LOOK_SECONDS)
    return found


def load_part(part: SavedPart, kind: Any = shard_class) -> Any:  # noqa: ANN401 - a function from names to classes
    """Load a shard, or the front end's part; raise ModelError if its folder has a different version."""
    manifest = store.read_manifest(part.folder)
    if manifest["checksum"] != part.checksum:
        raise ModelError(f"{part.folder} must be of the served model, but has a different version; copy it again")
    return store.load_part(part.folder, manifest, PART, kind)


def _write(folder: Path, model: Model, n: int) -> None:
    splitting = splitting_of(model)
    checksums = {FRONT_END: _save(folder / FRONT_END, splitting.front_end(model, n))}
    for name, shard in zip(_names(n)[1:], splitting.split(model, n), strict=True):
        checksums[name] = _save(folder / name, shard)
    listed = store.sealed({"format": FORMAT, "method": model.name, "parts": checksums})
    with store.replacing_file(folder / MANIFEST) as path:
        path.write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


def _save(folder: Path, part: Stateful | Shard) -> int:
    store.save(folder, {}, {PART: part}, None)
    return int(store.read_manifest(folder)["checksum"])


def _folder_of(saved: SavedPart, n: int) -> Path:
    return Path(f"{saved.folder}.shards") / f"{saved.checksum:08x}-{n}"


def _names(n: int) -> list[str]:
    return [FRONT_END, *(f"shard-{number}" for number in range(n))]


def _remove_older(folder: Path) -> None:
    """Remove shards of other versions except the last one: a server may still answer from it."""
    version = folder.name.split("-")[0]
    ours = (path for path in folder.parent.iterdir() if re.fullmatch(r"[0-9a-f]{8}-\d+", path.name))
    others = (path for path in ours if not path.name.startswith(version))
    for path in sorted(others, key=lambda path: path.stat().st_mtime_ns)[:-1]:
        shutil.rmtree(path, ignore_errors=True)
