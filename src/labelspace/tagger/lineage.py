"""The lineage of a model: its versions, and how each was made.

A trained model has no lineage: it is version 1, and its files do not tell when they were written. What changes it later
adds an entry. Entries are plain values of ``model.json``, which are checked when they are read.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from labelspace.errors import ModelError, ParameterError
from labelspace.estimator.parameter_constraints import MAX_INTEGER, Constraint, list_of, one_of, optional, text
from labelspace.estimator.state_constraints import must
from labelspace.tagger.learning import learn
from labelspace.types import Csr, Dataset

if TYPE_CHECKING:
    from labelspace.tagger.tagger import Tagger

# Keys of ``model.json``.
LINEAGE = "lineage"
ORIGIN = "data"  # that it was trained on
LICENSE = "license"
MadeBy = Literal["train", "learn", "labels", "rollback"]
MAX_ENTRIES = 1000  # the oldest are dropped: a stream makes many versions, and each is read whenever a model is loaded
NAMED_LABELS = 10  # new labels of a version that are named; all are counted
EPOCH = (
    "SOURCE_DATE_EPOCH"  # in the environment: the time that is written in place of the clock's, so that bytes repeat
)
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class Figure(NamedTuple):
    """A metric in percent, with its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class HeldOutFigures:
    """The nDCG@5 of a version and of the one before it, on the same documents that neither learned from."""

    source: str  # what the documents are called
    n: int  # documents with labels
    old: Figure | None
    new: Figure

    @classmethod
    def from_json(cls, saved: Any) -> HeldOutFigures | None:  # noqa: ANN401 - of a file
        """Return the figures that ``asdict`` made plain values, checked; None for none."""
        if saved is None:
            return None
        _check(saved, _HELD_OUT, "figures of a version")
        old = None if saved["old"] is None else Figure(*saved["old"])
        return cls(saved["source"], saved["n"], old, Figure(*saved["new"]))


@dataclass(frozen=True)
class Version:
    """One version of a model, and how it was made."""

    number: int  # from 1
    made_by: MadeBy
    time: str | None = None  # UTC; None for a training, whose files are equal whenever it is made
    n_documents: int = 0  # learned in all
    n_new_documents: int = 0
    n_labels: int = 0
    n_new_labels: int = 0
    new_labels: tuple[str, ...] = ()  # the first ones
    data: str | None = None  # the name of the file
    sha256: str | None = None  # of the file
    left_out: tuple[str, ...] = ()  # the parts of the model that cannot learn, and stayed as they were
    held_out: HeldOutFigures | None = None
    forced: bool = False  # whether the figure on the held-out documents fell, and this was insisted on
    restored: int | None = None  # the version that a rollback went back to

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``model.json``."""
        return asdict(self)

    @classmethod
    def from_json(cls, saved: Any) -> Version:  # noqa: ANN401 - of a file
        """Return the version of an entry of ``model.json``, checked; fields that are missing have their default.

        >>> Version.from_json({"number": 2, "made_by": "learn", "new_labels": ["toast"]}).new_labels
        ('toast',)
        """
        must(isinstance(saved, dict) and {"number", "made_by"} <= saved.keys(), "a number and how it was made")
        values = {each.name: each.default for each in fields(cls)} | saved
        held_out = values.pop("held_out")
        _check(values, _VERSION, "entries of its lineage")
        for key in ("new_labels", "left_out"):
            values[key] = tuple(values[key])
        return cls(**values, held_out=HeldOutFigures.from_json(held_out))


def _is_figure(value: object) -> bool:
    """Return whether a value is a percentage and the interval around it."""
    numbers = value if isinstance(value, (list, tuple)) else []
    return len(numbers) == 3 and all(type(number) in (int, float) and 0 <= number <= 100 for number in numbers)


def _matching(pattern: str, words: str) -> Constraint:
    return Constraint(words, lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None)


def _names() -> Constraint:
    names = list_of(text())
    return Constraint(names.text, lambda value: names.holds(list(value) if isinstance(value, tuple) else value))


def _whole(at_least: int) -> Constraint:
    words = f"an integer of at least {at_least} and below 2^31"
    return Constraint(words, lambda value: type(value) is int and at_least <= value < MAX_INTEGER)


LICENSE_NAME = optional(_matching("[A-Za-z0-9][A-Za-z0-9.+-]{0,63}", "an identifier such as apache-2.0 or cc-by-4.0"))
_FIGURE = Constraint("a percentage and its interval", _is_figure)
_COUNT = _whole(0)
_HELD_OUT = {"source": text(), "n": _whole(1), "old": optional(_FIGURE), "new": _FIGURE}
_VERSION = {
    "number": _whole(1),
    "made_by": one_of("train", "learn", "labels", "rollback"),
    "time": optional(_matching(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "a time such as 2025-01-31T12:00:00Z")),
    "n_documents": _COUNT,
    "n_new_documents": _COUNT,
    "n_labels": _COUNT,
    "n_new_labels": _COUNT,
    "new_labels": _names(),
    "data": optional(text()),
    "sha256": optional(_matching("[0-9a-f]{64}", "64 hexadecimal digits")),
    "left_out": _names(),
    "forced": Constraint("true or false", lambda value: isinstance(value, bool)),
    "restored": optional(_whole(1)),
}


def _check(saved: Any, wanted: dict[str, Constraint], what: str) -> None:  # noqa: ANN401 - of a file
    """Check the fields of an entry one by one."""
    must(isinstance(saved, dict) and saved.keys() == wanted.keys(), f"the fields {', '.join(wanted)} in the {what}")
    for key, constraint in wanted.items():
        value = saved[key]
        must(constraint.holds(value), f"{constraint.text} as {key} of the {what}")


def read_lineage(saved: Any) -> tuple[Version, ...]:  # noqa: ANN401 - of a file
    """Return the lineage of a ``model.json``, checked: its numbers rise."""
    must(isinstance(saved, list) and len(saved) <= MAX_ENTRIES, f"a lineage of at most {MAX_ENTRIES} entries")
    entries = tuple(map(Version.from_json, saved))
    numbers = [entry.number for entry in entries]
    must(numbers == sorted(set(numbers)), "a lineage whose numbers rise")
    return entries


def write_lineage(lineage: Sequence[Version]) -> list[dict[str, Any]]:
    """Return the entries of ``model.json``: the last ones, if there are many."""
    return [entry.to_json() for entry in lineage[-MAX_ENTRIES:]]


def first_version(tagger: Tagger, number: int = 1) -> Version:
    """Return the version of a model that was trained, and has no lineage."""
    return Version(number, "train", n_documents=tagger.labels_.n_documents, n_labels=len(tagger.labels_))


def next_number(lineage: Sequence[Version], kept: Sequence[int] = ()) -> int:
    """Return the number after all versions."""
    number = max([lineage[-1].number, *kept]) + 1
    if number >= MAX_INTEGER:
        rule = f"the versions of a model are numbered below {MAX_INTEGER}, but the last one has {number - 1}"
        raise ModelError(f"{rule}; train it again")
    return number


def now() -> str:
    """Return the time in UTC, or that of the environment variable SOURCE_DATE_EPOCH."""
    given = os.environ.get(EPOCH)
    if given is None:
        return datetime.now(UTC).strftime(_TIME)
    try:
        return datetime.fromtimestamp(int(given), UTC).strftime(_TIME)
    except (ValueError, OverflowError, OSError):
        rule = f"{EPOCH} must be the seconds since 1970 as an integer, but is {given[:40]!r}"
        raise ParameterError(f"{rule}; correct it, or leave it out") from None


def check_license(name: str | None) -> None:
    """Raise ParameterError unless this is the identifier of a license, or None."""
    if not LICENSE_NAME.holds(name):
        raise ParameterError(f"license must be {LICENSE_NAME.text}, but is {name!r}; correct it", options=["license"])


def saved_license(manifest: Mapping[str, Any]) -> str | None:
    """Return the license of a ``model.json``, checked; None if it states none."""
    name: str | None = manifest.get(LICENSE)
    must(LICENSE_NAME.holds(name), f"{LICENSE_NAME.text} as its license")
    return name


def saved_origin(manifest: Mapping[str, Any]) -> Origin:
    """Return what the model of a ``model.json`` was trained on, checked."""
    return Origin.from_json(manifest[ORIGIN]) if ORIGIN in manifest else UNKNOWN


class Origin(NamedTuple):
    """What documents were read from."""

    data: str | None = None
    sha256: str | None = None

    @classmethod
    def of(cls, path: Path, folder: Path | None = None) -> Origin:
        """Return the name of a file and its hash; a folder, a pipe or a file in an archive has no hash.

        The name begins with that of the ``folder``, if the file is part of a data folder.
        """
        shown = path.name if folder is None else f"{folder.resolve().name}/{path.name}"
        name = shown.encode(errors="replace").decode()  # a name may be no Unicode
        if not path.is_file():
            return cls(name)
        with path.open("rb") as file:
            return cls(name, hashlib.file_digest(file, "sha256").hexdigest())

    @classmethod
    def from_json(cls, saved: Any) -> Origin:  # noqa: ANN401 - of a file
        """Return the origin that ``_asdict`` made plain values, checked."""
        _check(saved, {key: _VERSION[key] for key in cls._fields}, "data that a model was trained on")
        return cls(**saved)


UNKNOWN = Origin()


def learned_version(
    tagger: Tagger,
    number: int,
    n_new_documents: int,
    n_labels_before: int,
    left_out: Sequence[str],
    origin: Origin = UNKNOWN,
    held_out: HeldOutFigures | None = None,
    forced: bool = False,
) -> Version:
    """Return the version of a model that has just learned from further documents."""
    labels = tagger.labels_
    return Version(
        number,
        "learn",
        time=now(),
        n_documents=labels.n_documents,
        n_new_documents=n_new_documents,
        n_labels=len(labels),
        n_new_labels=len(labels) - n_labels_before,
        new_labels=tuple(labels.names[n_labels_before : n_labels_before + NAMED_LABELS]),
        data=origin.data,
        sha256=origin.sha256,
        left_out=tuple(left_out),
        held_out=held_out,
        forced=forced,
    )


@contextmanager
def labels_version(tagger: Tagger) -> Iterator[None]:
    """Add a version to the lineage of a tagger whose labels are edited; edits that an edit consists of add none."""
    lineage, before = tagger.lineage_ or (first_version(tagger),), tagger.labels_
    number = next_number(lineage)
    yield
    n_new_documents = tagger.labels_.n_documents - before.n_documents
    made = learned_version(tagger, number, n_new_documents, len(before), ())
    tagger.lineage_ = (*lineage, replace(made, made_by="labels"))


def learn_version(tagger: Tagger, documents: Dataset, rejected: Csr) -> None:
    """Let a tagger learn from documents, and add a version to its lineage."""
    lineage = tagger.lineage_ or (first_version(tagger),)
    n_labels = len(tagger.labels_)
    left_out = learn(tagger, documents, rejected)
    made = learned_version(tagger, next_number(lineage), len(documents), n_labels, left_out)
    tagger.lineage_ = (*lineage, made)
