"""Describe the predictions of a folder in its manifest.json, with which a restart continues or is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from labelspace.cluster.prediction.output_folder import WRITING, OutputFolder
from labelspace.cluster.prediction.storage import InputFile
from labelspace.cluster.prediction.tasks import NamedBlock
from labelspace.errors import DataError

NAME = "manifest.json"
PART = re.compile(r"part-\d{5,}\.[a-z.]+")
REMEDY = "give another --out, or start anew with --force"


@dataclass(frozen=True)
class Manifest:
    """The settings and the input of predictions."""

    settings: Mapping[str, Any]
    inputs: Sequence[InputFile]
    block_bytes: int

    def as_json(self, blocks: Sequence[NamedBlock]) -> dict[str, Any]:
        """Return the content of the file."""
        files = [
            {"output": name, "input": block.file.path, "first_row": block.first_row, "documents": block.n_rows}
            for name, block in blocks
        ]
        about = {"settings": dict(self.settings), "inputs": [asdict(file) for file in self.inputs]}
        plain: dict[str, Any] = json.loads(json.dumps({**about, "block_bytes": self.block_bytes, "blocks": files}))
        return plain


def earlier_manifest(output: OutputFolder, force: bool) -> dict[str, Any] | None:
    """Return the manifest of a folder, or None if it is empty or with ``force``; refuse a folder of other files."""
    names = {name for name in output.names() if WRITING not in name}
    if force or not names:
        return None
    if NAME not in names:
        raise DataError(f"--out must be an empty folder or one with a {NAME}, but {output.url} has files; {REMEDY}")
    try:
        found = json.loads(output.text(NAME))
        if isinstance(found, dict) and type(found.get("block_bytes")) is int and found["block_bytes"] > 0:
            return found
    except (ValueError, RecursionError):
        pass
    raise DataError(f"{output.url}/{NAME} must be one of predictions, but cannot be read as one; {REMEDY}")


def refuse_other(output: OutputFolder, earlier: Mapping[str, Any], now: Mapping[str, Any], keys: Iterable[str]) -> None:
    """Raise DataError if the earlier predictions have other settings, inputs or blocks."""
    for key in keys:
        if earlier.get(key) != now[key]:
            changed = _changed(earlier.get(key), now[key])
            raise DataError(f"{output.url} must have predictions of the same {key}, but {changed}; {REMEDY}")


def _changed(earlier: Any, now: Any) -> str:  # noqa: ANN401 - any JSON
    """Describe the first difference.

    >>> _changed({"k": 5}, {"k": 10}), _changed([{"path": "a.csv", "size": 7}], [{"path": "b.csv", "size": 7}])
    ('k was 5 and is 10', 'a.csv is not among them now')
    """
    if isinstance(earlier, dict) and isinstance(now, dict):
        for key in [*now, *earlier]:
            if earlier.get(key) != now.get(key):
                return f"{key} was {_shown(earlier.get(key))} and is {_shown(now.get(key))}"
    if isinstance(earlier, list) and isinstance(now, list):
        before, after = _by_path(earlier), _by_path(now)
        for path in [*before, *after]:
            if before.get(path) != after.get(path):
                return _changed_file(path, path in before, path in after)
    return "they differ"


def _by_path(files: list[Any]) -> dict[str, Any]:
    return {str(file.get("path", file.get("output"))): file for file in files if isinstance(file, dict)}


def _changed_file(path: str, was: bool, is_now: bool) -> str:
    if was and is_now:
        return f"{path} has changed"
    return f"{path} is not among them now" if was else f"{path} is new"


def _shown(value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:57] + "..."
