"""What a mutator works on: the files of a case by name, a donor's files, and a random generator."""

import json
from dataclasses import dataclass
from random import Random

from tests.fuzz.mutators.array_file import ArrayFile

Files = dict[str, bytes | None]
"""Content by name; None stands for a folder of that name."""


@dataclass
class Subject:
    """A case in the making."""

    files: Files
    donor: Files
    rng: Random

    def some_file(self, ending: str = "") -> str | None:
        """A file with this ending, or None."""
        names = sorted(name for name, content in self.files.items() if name.endswith(ending) and content is not None)
        return self.rng.choice(names) if names else None

    def some_arrays(self) -> tuple[str, ArrayFile] | None:
        """A file of arrays that has some and can be read; None where there is none."""
        read = {name: ArrayFile.read(content) for name, content in self.files.items() if name.endswith(".safetensors")}
        usable = sorted(name for name, file in read.items() if file is not None and file.arrays)
        if not usable:
            return None
        # Most of what matters is in the model's own arrays.
        name = (
            "model.safetensors"
            if "model.safetensors" in usable and self.rng.random() < 0.5
            else self.rng.choice(usable)
        )
        return name, read[name]

    def manifest(self) -> dict | None:
        """The manifest, where it can be read."""
        try:
            manifest = json.loads(self.files["model.json"])
        except (KeyError, TypeError, ValueError, RecursionError):
            return None
        return manifest if isinstance(manifest, dict) else None

    def put_manifest(self, manifest: dict) -> None:
        """Replace the manifest."""
        self.files["model.json"] = json.dumps(manifest, indent=1, ensure_ascii=False).encode(errors="replace")
