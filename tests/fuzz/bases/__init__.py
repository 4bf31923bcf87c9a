"""What the mutators begin with, of each kind: small folders that are right."""

from pathlib import Path

from tests.fuzz.bases import checkpoints, data, encoders, models

BY_KIND = {"models": models, "data": data, "checkpoints": checkpoints, "encoders": encoders}


def make_bases(kind: str, folder: Path, only: str | None = None) -> list[str]:
    """Make the folders of one kind, all or those whose name is or starts with ``only``; returns their names."""
    names = []
    for name, make in BY_KIND[kind].makers():
        if only in (None, name, name.partition("-")[0]):
            names.append(name)
            if not (folder / name).exists():
                make(folder / name)
    return names
