"""What a check is and what it finds; the documents of a source as the checks see them, one split after the other."""

import tomllib
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from labelspace.data.checks.same_documents import Neighbors, near_duplicates, same_documents
from labelspace.data.formats.registry import file_format
from labelspace.data.label_mapping import widened
from labelspace.data.source import Source, iter_records
from labelspace.types import PATH_SEPARATOR, Bools, Columns, Csr, Dataset, LabelSpace, Longs

_FILE = resources.files(__package__).joinpath("checks.toml")
TEXTS: dict[str, dict[str, Any]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
"""What each check says, by its name."""
TRAIN, DEV, TEST = "train", "dev", "test"
HIGH, MEDIUM, LOW = "high", "medium", "low"
SEVERITIES = (HIGH, MEDIUM, LOW)
# Share below which the severity is the next lower one: one leaked document of a thousand changes no figure. A larger
# share hides real findings, a smaller one alarms about single documents.
RARE = {HIGH: 0.01, MEDIUM: 0.001, LOW: 0.0}
N_EXAMPLES = 3
Cases = Sequence[Any] | npt.NDArray[Any]
MAX_SHOWN = 70  # characters of a text


@dataclass(frozen=True)
class Example:
    """One case: its description, and the places in the files, if known."""

    what: str
    where: tuple[str, ...] = ()  # file:line


@dataclass(frozen=True)
class Found:
    """What a check has found: how many, out of how many, and a few examples."""

    count: int
    total: int
    examples: tuple[Example, ...] = ()
    note: str = ""  # what else there is to say


@dataclass(frozen=True)
class Check:
    """A check of the data; ``find`` makes it."""

    name: str
    severity: str
    title: str  # of what was found, after "1 of 10 "; {held_out} and {learned_from} stand for splits
    why: str
    remedy: str
    find: "Callable[[Documents], Found | None] | None" = None  # None where a model must be trained
    fixed: bool = False  # whether ``clean`` fixes it

    def finding(self, found: Found, splits: Collection[str] = (TRAIN, DEV, TEST)) -> "Finding":
        """Return what to report of data that have these splits."""
        held_out = " and ".join(name for name in (DEV, TEST) if name in splits)
        learned_from = " and ".join(name for name in (TRAIN, DEV) if name in splits)
        named = replace(self, title=self.title.format(held_out=held_out, learned_from=learned_from))
        rare = found.count < RARE[self.severity] * found.total
        return Finding(named, found, SEVERITIES[SEVERITIES.index(self.severity) + rare])


@dataclass(frozen=True)
class Finding:
    """A check that has found something, and how severe it is in these data."""

    check: Check
    found: Found
    severity: str

    def to_json(self, command: str) -> dict[str, Any]:
        """Return the finding as plain values; ``command`` is the command that fixes what can be fixed."""
        check, found = self.check, self.found
        return {
            "check": check.name,
            "severity": self.severity,
            "count": found.count,
            "of": found.total,
            "title": check.title,
            "examples": [{"what": example.what, "where": list(example.where)} for example in found.examples],
            "note": found.note,
            "why": check.why,
            "remedy": f"{check.remedy}: {command} --only {check.name}" if check.fixed else check.remedy,
            "fixed_by_fix": check.fixed,
        }


def shown(text: str, length: int = MAX_SHOWN) -> str:
    r"""Return the start of a text on one line.

    >>> shown("two\nlines"), shown("much too long", 8)
    ('two lines', 'much to…')
    """
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1] + "…"


def shown_name(name: str, length: int = MAX_SHOWN) -> str:
    """Return a label name on one line; of a long path, its last steps.

    >>> shown_name("food > bread > rye", 15)
    '… > bread > rye'
    """
    if PATH_SEPARATOR not in name or len(name) <= length:
        return shown(name, length)
    steps = name[-length:].partition(PATH_SEPARATOR)[2] or name.rpartition(PATH_SEPARATOR)[2]
    return shown(f"…{PATH_SEPARATOR}{steps}", length)


SHOWN_LABELS = 4  # names in an example: more do not fit on a line of a terminal


@dataclass(frozen=True)
class Documents:
    """The splits of a source; the labels of each split are a prefix of the labels of the last."""

    parts: Mapping[str, Dataset]  # train first
    paths: Mapping[str, Path] = field(default_factory=dict)
    columns: Columns | None = None
    n_examples: int = N_EXAMPLES  # of each check

    @staticmethod
    def read(source: Source, n_examples: int = N_EXAMPLES) -> "Documents":
        """Read all splits of a source; a source that has only labels gives no documents."""
        if source.labels_only:
            labels = source.labels()
            nothing = Dataset(sp.csr_matrix((0, len(labels)), dtype=np.float32), labels, texts=[])
            return Documents({TRAIN: nothing}, {TRAIN: source.train_path}, n_examples=n_examples)
        parts, paths = {TRAIN: source.train()}, {TRAIN: source.train_path}
        for name, path, read in ((DEV, source.dev_path, source.dev), (TEST, source.test_path, source.test)):
            part = read(list(parts.values())[-1].labels)
            if part is not None and path is not None:
                parts[name], paths[name] = part, path
        return Documents(parts, paths, source.columns, n_examples)

    def changed(self, change: Callable[[Dataset], Dataset]) -> "Documents":
        """Return the documents with each split changed."""
        return replace(self, parts={name: change(part) for name, part in self.parts.items()})

    @property
    def train(self) -> Dataset:
        """The training documents."""
        return self.parts[TRAIN]

    @property
    def labels(self) -> LabelSpace:
        """The labels of all splits."""
        return list(self.parts.values())[-1].labels

    @cached_property
    def counts(self) -> Longs:
        """The number of training documents of each label. Shape (n_labels,)."""
        return np.bincount(self.train.Y.indices, minlength=len(self.labels)).astype(np.int64)

    @cached_property
    def starts(self) -> dict[str, int]:
        """The number of the first document of each split, counted over all documents."""
        return dict(zip(self.parts, np.cumsum([0, *map(len, self.parts.values())]).tolist(), strict=False))

    @cached_property
    def part_of(self) -> Longs:
        """The split of each document: 0 for train, ... Shape (n,)."""
        return np.repeat(np.arange(len(self.parts)), [len(part) for part in self.parts.values()])

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    @cached_property
    def texts(self) -> Sequence[str] | None:
        """The texts of all documents; None if a split has features in their place."""
        texts = [part.texts for part in self.parts.values()]
        return [text for part in texts for text in part or ()] if all(part is not None for part in texts) else None

    @cached_property
    def Y(self) -> Csr:  # noqa: N802 - the field's name
        """The labels of all documents."""
        return sp.vstack([widened(part.Y, len(self.labels)) for part in self.parts.values()], "csr")

    @cached_property
    def empty(self) -> Bools:
        """True for each document without text, or without features. Shape (n,)."""
        return np.concatenate([_is_empty(part) for part in self.parts.values()])

    @cached_property
    def first_same(self) -> Longs:
        """The first document that equals each one; itself if there is none before it. Shape (n,)."""
        X = [part.X for part in self.parts.values() if part.X is not None]
        if self.texts is None and len(X) < len(self.parts):  # texts in one split, features in another
            return np.arange(len(self), dtype=np.int64)
        return same_documents(self.texts, X, self.empty)

    @cached_property
    def neighbors(self) -> Neighbors | None:
        """The near duplicates; None if there are no texts."""
        if self.texts is None:
            return None
        return near_duplicates(self.texts, self.first_same, self.part_of == 0)

    def at(self, number: int) -> str:
        """Return the file and line of a document."""
        name = list(self.parts)[self.part_of[number]]
        row = number - self.starts[name]
        if name not in self.paths:
            return f"{name}[{row}]"
        path = self.paths[name]
        first = {".jsonl": 1, ".txt": 2, ".parquet": 1}.get(file_format(path) or "")
        return f"{path.name}:{self._csv_lines(name)[row] if first is None else row + first}"

    @cached_property
    def _csv_lines(self) -> Callable[[str], "array[int]"]:
        """A function that returns the line of each document of a split, which it reads once."""

        def read(name: str) -> "array[int]":
            records = iter_records(self.paths[name], ready_made=True, columns=self.columns)
            return array("q", (record.line for record in records))

        return cache(read)

    def found(self, cases: Cases, total: int, example: Callable[[Any], Example], note: str = "") -> Found:
        """Return what a check has found: all cases, the first of them as examples."""
        return Found(len(cases), total, tuple(map(example, cases[: self.n_examples])), note)

    def example(self, *numbers: int, what: str | None = None) -> Example:
        """Return documents as an example, by default with the text of the last one."""
        if what is None:
            what = self.label_names(numbers[-1]) if self.texts is None else shown(self.texts[numbers[-1]])
        return Example(what, tuple(map(self.at, numbers)))

    def label_example(self, label: int) -> Example:
        """Return the name of a label as an example."""
        return Example(shown_name(self.labels.names[label]))

    def label_names(self, number: int) -> str:
        """Return the names of the first labels of a document."""
        return self.names_of(self.labels_of(number)) or "no labels"

    def labels_of(self, number: int) -> list[int]:
        """Return the labels of a document."""
        return list(self.Y.indices[self.Y.indptr[number] : self.Y.indptr[number + 1]].tolist())

    def names_of(self, labels: Sequence[int]) -> str:
        """Return the names of some labels; of many, the first."""
        names = [shown_name(self.labels.names[label], 40) for label in labels[:SHOWN_LABELS]]
        return ", ".join(names) + (", …" if len(labels) > SHOWN_LABELS else "")


def _is_empty(part: Dataset) -> Bools:
    if part.texts is not None:
        return np.array([not text or text.isspace() for text in part.texts], bool)
    return np.diff(part.X.indptr) == 0 if part.X is not None else np.zeros(len(part), bool)
