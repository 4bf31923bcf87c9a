"""The versions of a saved model: add one, list them, and go back to one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from labelspace import store
from labelspace.errors import ModelError
from labelspace.tagger.card import model_card
from labelspace.tagger.lineage import LICENSE, LINEAGE, Version, next_number, now, read_lineage, write_lineage
from labelspace.tagger.tagger import Tagger


class ListedVersion(NamedTuple):
    """A version of a saved model."""

    version: Version
    is_current: bool
    is_kept: bool  # whether ``rollback`` can go back to it


@dataclass
class VersionedModel:
    """A saved model that only this process changes; see ``open_versioned``."""

    folder: Path
    manifest: dict[str, Any]
    lineage: tuple[Version, ...]

    @property
    def number(self) -> int:
        """The number of the current version."""
        return self.lineage[-1].number

    def next_number(self) -> int:
        """Return the number of the next version."""
        return next_number(self.lineage, list(store.kept_versions(self.folder)))

    def add(self, tagger: Tagger, version: Version, n_kept: int = store.KEPT) -> None:
        """Make a tagger the current version; the version before it is kept, and the oldest of too many dropped."""
        self._check_unchanged()
        if n_kept:
            store.keep_version(self.folder, self.number)
        self._check_unchanged()
        lineage = (*self.lineage, version)
        tagger.lineage_ = lineage
        tagger.license_ = tagger.license_ or self.manifest.get(LICENSE)  # also of a model that was trained again
        tagger.save(self.folder)
        self._done(lineage, n_kept)

    def restore(self, number: int, n_kept: int = store.KEPT) -> Version:
        """Make a kept version the current one, under a new number."""
        restored = _restored(self, number)
        if n_kept:
            store.keep_version(self.folder, self.number)
        lineage = (*self.lineage, restored)
        store.restore_version(self.folder, number, {LINEAGE: write_lineage(lineage)}, model_card)
        self._done(lineage, n_kept)
        return restored

    def _check_unchanged(self) -> None:
        if store.read_manifest(self.folder).get("checksum") != self.manifest["checksum"]:
            rule = f"{self.folder} must stay as it is while it learns, but another process wrote it"
            raise ModelError(f"{rule}; learn again, so that nothing of it is lost")

    def _done(self, lineage: tuple[Version, ...], n_kept: int) -> None:
        self.manifest = store.read_manifest(self.folder)
        self.lineage = lineage
        store.drop_versions(self.folder, self.number, n_kept)


@contextmanager
def open_versioned(folder: str | Path, is_changed: bool = True) -> Iterator[VersionedModel]:
    """Open a model folder to add versions; raise ModelError if another process does so at the same time.

    Unless ``is_changed``, it is only read, and several processes may do so.
    """
    store.read_manifest(folder)  # before a lock is made next to something else
    with store.changing(folder) if is_changed else nullcontext():
        manifest = store.read_manifest(folder)
        kept = store.kept_versions(folder)
        yield VersionedModel(Path(folder), manifest, _lineage(Path(folder), manifest, kept))


def rollback(folder: str | Path, to: int | None = None, n_kept: int = store.KEPT) -> Version:
    """Go back to a kept version of a saved model, by default the one before; return the new version that it is now.

    The current version is kept, so that a rollback can be rolled back.
    """
    with open_versioned(folder) as model:
        kept = [number for number in store.kept_versions(folder) if number != model.number]
        earlier = [number for number in kept if number < model.number]
        listed = ", ".join(map(str, kept)) or "none"
        if to is None and not earlier:
            rule = f"a rollback needs an earlier version of {folder}, but none is kept"
            raise ModelError(f"{rule}; versions are kept by `labelspace learn`")
        number = earlier[-1] if to is None else to
        if number not in kept:
            problem = f"version {number} is the current one" if number == model.number else f"{number} is not"
            rule = f"a rollback needs a version of {folder} that is kept, but {problem}"
            raise ModelError(f"{rule}; kept are: {listed}")
        Tagger.load(store.kept_versions(folder)[number])  # refuses a damaged one
        return model.restore(number, n_kept)


def history(folder: str | Path) -> list[ListedVersion]:
    """Return the versions of a saved model, oldest first: those of its lineage, and further ones that are kept."""

    def read() -> list[ListedVersion]:
        manifest = store.read_manifest(folder)
        kept = store.kept_versions(folder)
        lineage = _lineage(Path(folder), manifest, kept)
        current = lineage[-1].number
        versions: dict[int, Version] = {}
        for number, path in kept.items():
            versions |= {each.number: each for each in _known_lineage(path, store.read_manifest(path), number)}
        versions |= {each.number: each for each in lineage}
        return [
            ListedVersion(versions[number], number == current, number in kept and number != current)
            for number in sorted(versions)
        ]

    with store.refusing_damage(folder):
        return store.read_unreplaced(folder, read)


def _lineage(folder: Path, manifest: dict[str, Any], kept: dict[int, Path]) -> tuple[Version, ...]:
    """Return the lineage of a model, whose last entry is the model itself.

    A model that was trained in the place of another one continues its numbers, unless it is equal to a kept version:
    then it is that version.
    """
    with store.refusing_damage(folder):
        if manifest.get(LINEAGE):
            return read_lineage(manifest[LINEAGE])
        number = 1
        before: tuple[Version, ...] = ()
        for other, path in kept.items():
            if store.read_manifest(path).get("checksum") == manifest["checksum"]:
                return _known_lineage(path, manifest, other)
        if kept:
            last = max(kept)
            before = _known_lineage(kept[last], store.read_manifest(kept[last]), last)
            number = next_number(before, list(kept))
        return (*before, _trained(folder, manifest, number))


def _known_lineage(folder: Path, manifest: dict[str, Any], number: int) -> tuple[Version, ...]:
    """Return the lineage of a model whose number is known."""
    with store.refusing_damage(folder):
        if manifest.get(LINEAGE):
            return read_lineage(manifest[LINEAGE])
        return (_trained(folder, manifest, number),)


def _trained(folder: Path, manifest: dict[str, Any], number: int) -> Version:
    """Return the version of a model without a lineage."""
    labels = store.read_labels(folder, manifest)
    if labels is None:
        return Version(number, "train", n_labels=int(manifest["model"]["state"]["n_labels_"]["value"]))
    return Version(number, "train", n_documents=labels.n_documents, n_labels=len(labels))


def _restored(model: VersionedModel, number: int) -> Version:
    """Return the version that a rollback to a number makes."""
    path = store.kept_versions(model.folder)[number]
    manifest = store.read_manifest(path)
    found: Sequence[Version] = _known_lineage(path, manifest, number)
    before = found[-1]
    held_out = None if before.held_out is None else replace(before.held_out, old=None)
    return Version(
        model.next_number(),
        "rollback",
        time=now(),
        n_documents=before.n_documents,
        n_labels=before.n_labels,
        held_out=held_out,
        restored=number,
    )
