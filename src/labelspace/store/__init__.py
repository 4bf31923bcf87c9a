"""Save nested state to a folder and load it: ``model.json``, ``*.safetensors``, ``labels.jsonl``; never pickled."""

from labelspace.store.atomic import locked, read_unreplaced, replacing_file
from labelspace.store.labels import write_names
from labelspace.store.model_folder import (
    LABELS,
    check_writable,
    folder_bytes,
    load_part,
    read_arrays,
    read_labels,
    read_manifest,
    refusing_damage,
    save,
    sealed,
    write,
)
from labelspace.store.state import Arrays, LoadedBundle, ModelBundle, pack, unpack
from labelspace.store.versions import (
    KEPT,
    changing,
    drop_versions,
    keep_version,
    kept_versions,
    restore_version,
    versions_folder,
)

__all__ = [
    "KEPT",
    "LABELS",
    "Arrays",
    "LoadedBundle",
    "ModelBundle",
    "changing",
    "check_writable",
    "drop_versions",
    "folder_bytes",
    "keep_version",
    "kept_versions",
    "load_part",
    "locked",
    "pack",
    "read_arrays",
    "read_labels",
    "read_manifest",
    "read_unreplaced",
    "refusing_damage",
    "replacing_file",
    "restore_version",
    "save",
    "sealed",
    "unpack",
    "versions_folder",
    "write",
    "write_names",
]
