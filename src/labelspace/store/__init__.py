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

__all__ = [
    "LABELS",
    "Arrays",
    "LoadedBundle",
    "ModelBundle",
    "check_writable",
    "folder_bytes",
    "load_part",
    "locked",
    "pack",
    "read_arrays",
    "read_labels",
    "read_manifest",
    "read_unreplaced",
    "refusing_damage",
    "replacing_file",
    "save",
    "sealed",
    "unpack",
    "write",
    "write_names",
]
