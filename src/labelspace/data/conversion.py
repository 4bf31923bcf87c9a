"""Convert data to another format: a file, or all splits of a folder, which then share labels and features.

The labels of a folder are written to its ``labels.jsonl`` and ``hierarchy.tsv``. Those of a file are written to its own
label files (``a.labels.jsonl``), if the file without them would be read with different labels.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from labelspace.data.archives import is_folder
from labelspace.data.formats.base import AnyFormat, RecordFormat
from labelspace.data.formats.registry import FORMATS, file_format
from labelspace.data.label_files import KINDS, LABELS, are_labels, own_file, read_labels, shared_file, write_label_files
from labelspace.data.label_mapping import matched_labels
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import is_numbered
from labelspace.data.source import open_source, read_dataset, writable_format, write_dataset
from labelspace.errors import DataError, ParameterError
from labelspace.types import Csr, Dataset, LabelSpace


class Vectorizer(Protocol):
    """A class that makes features of texts, such as ``features.Tfidf``."""

    def fit(self, texts: Sequence[str]) -> Self:
        """Fit on texts."""

    def transform(self, texts: Sequence[str]) -> Csr:
        """Return the features of texts."""


def convert(
    source: Path, target: Path, vectorizer: Vectorizer, to: str | None = None, options: ReadOptions | None = None
) -> dict[Path, Dataset]:
    """Convert a file to a file, or a folder to a folder of format ``to`` ("jsonl", "csv.gz", ...).

    The ``vectorizer``, fitted on train, makes features of texts if the target format has no texts (.txt). With columns
    among the ``options`` the source is a table, whose rows become texts and labels. For a file, ``to`` names the format
    if its ending leaves that open. Return the data sets by path.
    """
    options = options or ReadOptions()
    if not is_folder(source):
        return _convert_file(source, target, vectorizer, to, options)
    if to is None:
        rule = "a folder must be converted to a named format"
        raise ParameterError(f"{rule}, but none is given for {source}; write to='jsonl.gz'", options=["to="])
    to = to.removeprefix(".")
    fmt = FORMATS.get(to) or writable_format(f"x.{to}")
    ending = f".{to}" if to not in FORMATS or file_format(f"x.{to}") else "".join(fmt.endings[:1])
    parts = open_source(source, options=options).splits()
    train = parts["train"]
    if fmt.split_names is not None:  # the files of all splits share one list of labels
        parts = _with_one_label_space(parts)
    fitted = vectorizer.fit(train.texts or []) if fmt.needs_features and train.X is None else None
    written = {}
    for name, part in parts.items():
        path = target / (f"{name}{ending}" if fmt.split_names is None else fmt.split_names[name])
        written[path] = part if fitted is None else _with_features(part, fitted)
    for path, part in written.items():
        _write(part, source / path.name, path, fmt)
    if fmt.file_names is None or train.labels.synonyms is not None or train.labels.hierarchy is not None:
        _write_shared_labels(target, written.values())
    return written


def _convert_file(
    source: Path, target: Path, vectorizer: Vectorizer, to: str | None, options: ReadOptions
) -> dict[Path, Dataset]:
    fmt = writable_format(target, to)
    shared = shared_file(target, LABELS)  # read with those, so that the splits of one folder share label ids
    documents = read_dataset(source, None if shared is None else read_labels(shared), options=options)
    if fmt.needs_features and documents.X is None:
        documents = _with_features(documents, vectorizer.fit(documents.texts or []))
    own = own_file(target, LABELS)
    needed = shared is not None or not _says_its_labels(documents, fmt)
    if needed or own.exists():
        _check_alone(source, target)
    _write(documents, source, target, fmt)
    if needed:
        write_label_files(documents.labels, lambda kind: own_file(target, kind))
    return {target: documents}


def _check_alone(source: Path, target: Path) -> None:
    """Raise DataError if another file would read these label files too: one with this name in another format."""
    own = own_file(target, LABELS)
    for other in sorted(target.parent.iterdir()) if target.parent.is_dir() else ():
        shares = own_file(other, LABELS) == own and file_format(other) and not are_labels(other)
        if shares and other.name != target.name and not other.samefile(source):
            problem = f"{other.name} reads it too"
            raise DataError(f"{own} must be read with {target.name} only, but {problem}; convert to another name")


def _write(documents: Dataset, source: Path, target: Path, fmt: AnyFormat) -> None:
    """Write a data file in place of an older one and its own label files, unless they are the source's too."""
    write_dataset(documents, target, fmt.name)
    for kind in KINDS:
        if own_file(source, kind).resolve() != own_file(target, kind).resolve():
            own_file(target, kind).unlink(missing_ok=True)


def _says_its_labels(documents: Dataset, fmt: AnyFormat) -> bool:
    """Return whether the file is read with this label space without label files: sorted names, or numbers."""
    labels = documents.labels
    counts = np.bincount(documents.Y.indices, minlength=len(labels))
    if labels.synonyms is not None or labels.concepts is not None:
        return False
    if is_numbered(labels) and not isinstance(fmt, RecordFormat):  # else a number is a name like any other
        return labels.hierarchy is None and (fmt.name == "xmc" or bool(counts[-1:].all()))
    if fmt.needs_features:
        return False
    alone = LabelSpace(sorted(name for name, count in zip(labels.names, counts, strict=True) if count))
    alone = alone.with_paths() if alone.are_paths else alone
    edges = [None if space.hierarchy is None else space.hierarchy.edges.tolist() for space in (alone, labels)]
    return list(alone.names) == list(labels.names) and edges[0] == edges[1]


def _all_labels(splits: Iterable[Dataset]) -> LabelSpace:
    """Return the labels of all splits; those of the first keep their ids."""
    first, *others = (part.labels for part in splits)
    for more in others:
        first = first.extended(more.names)
    return first


def _with_one_label_space(parts: Mapping[str, Dataset]) -> dict[str, Dataset]:
    """Return the splits with the labels of all in each: those of a later split begin with those of train."""
    labels = _all_labels(parts.values())
    matched = {name: matched_labels(part.Y, part.labels, labels)[0] for name, part in parts.items()}
    return {name: replace(part, Y=matched[name], labels=labels) for name, part in parts.items()}


def _write_shared_labels(folder: Path, splits: Iterable[Dataset]) -> None:
    """Write the labels of the splits of a folder."""
    labels = _all_labels(splits)
    only_numbers = is_numbered(labels) and labels.synonyms is None and labels.concepts is None
    write_label_files(labels, folder.joinpath, with_names=not only_numbers)


def write_folder(folder: Path, splits: Mapping[str, Dataset]) -> None:
    """Write splits by their file names (``train.jsonl``) to a new folder, with their labels."""
    for name, part in splits.items():
        write_dataset(part, folder / name)
    _write_shared_labels(folder, splits.values())


def write_file(path: Path, documents: Dataset) -> dict[Path, Dataset]:
    """Write documents to a new file, with label files of its own if the file needs them."""
    write_dataset(documents, path)
    if not _says_its_labels(documents, writable_format(path)):
        write_label_files(documents.labels, lambda kind: own_file(path, kind))
    return {path: documents}


def _with_features(documents: Dataset, vectorizer: Vectorizer) -> Dataset:
    if documents.texts is None:
        raise DataError("every split must have texts, as train does, but one has none; convert it separately")
    return replace(documents, X=vectorizer.transform(documents.texts))
