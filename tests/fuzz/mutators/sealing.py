"""Sizes, checksums and descriptions of arrays, redone after a mutation: only so does it reach the other checks."""

import json
import re
import zlib
from typing import Any

from labelspace.store import sealed
from tests.fuzz.mutators.array_file import ArrayFile
from tests.fuzz.mutators.subject import Subject


def seal_all(subject: Subject) -> str:
    """Seal the model of the folder, and those of folders in it."""
    for manifest in [name for name in subject.files if name.endswith("model.json")]:
        prefix = manifest.removesuffix("model.json")
        inner = {name.removeprefix(prefix): x for name, x in subject.files.items() if name.startswith(prefix)}
        model = Subject(inner, {}, subject.rng)
        seal(model)
        subject.files.update({f"{prefix}{name}": content for name, content in model.files.items()})
    return ""


def seal(subject: Subject) -> str:
    """Redo what ``model.json`` says about the other files; their arrays' descriptions in most cases too."""
    files = subject.files
    manifest = subject.manifest()
    if manifest is None:
        return ""
    if _redo_files(subject, manifest):
        subject.put_manifest(manifest)
    # The checksum is put into the text as it is: it may have a key twice, or a NaN.
    text = (files["model.json"] or b"").decode(errors="replace")
    try:
        checksum = sealed(json.loads(text))["checksum"]
    except (ValueError, RecursionError, TypeError, AttributeError):
        return ""
    files["model.json"] = re.sub(r'"checksum": \d+', f'"checksum": {checksum}', text).encode(errors="replace")
    return ""


def _redo_files(subject: Subject, manifest: dict[str, Any]) -> bool:
    """Whether anything had to be redone."""
    listed, changed = manifest.get("files"), False
    if not isinstance(listed, dict):
        return False
    describe = subject.rng.random() < 0.8
    for name, content in subject.files.items():
        entry = listed.get(name)
        if name == "model.json" or content is None or not isinstance(entry, dict):
            continue
        redone = {**entry, "bytes": len(content), "crc32": zlib.crc32(content)}
        file = ArrayFile.read(content) if name.endswith(".safetensors") and describe else None
        if file is not None and redone != entry:
            redone["arrays"] = {key: f"{array.dtype} {list(array.shape)}" for key, array in file.arrays.items()}
            _describe(manifest.get(name.partition(".")[0]), file, "")
        changed |= redone != entry
        listed[name] = redone
    return changed


def _describe(packed: Any, file: ArrayFile, path: str) -> None:  # noqa: ANN401 - any JSON
    """What a packed state says of its arrays."""
    if not isinstance(packed, dict):
        return
    if "array" in packed and path in file.arrays:
        packed["array"] = f"{file.arrays[path].dtype} {list(file.arrays[path].shape)}"
    for kind in ("state", "fields", "dict", "list"):
        inner = packed.get(kind)
        items = inner.items() if isinstance(inner, dict) else enumerate(inner) if isinstance(inner, list) else ()
        for key, item in items:
            _describe(item, file, f"{path}/{key}" if path else str(key))
