"""Data from one format to another: a file, or all splits of a folder at once so that they share labels and features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from labelspace.data.labels import HIERARCHY, LABELS, labels_beside, write_hierarchy, write_labels
from labelspace.data.listing import is_numbered
from labelspace.data.source import file_format, open_source, read_dataset, write_dataset
from labelspace.errors import DataError, ParameterError
from labelspace.types import Columns, Csr, Dataset

FEATURES_ONLY = ".txt"


class Vectorizer(Protocol):
    """What makes features of texts, such as ``features.Tfidf``."""

    def fit(self, texts: Sequence[str]) -> Self:
        """Learn from texts."""

    def transform(self, texts: Sequence[str]) -> Csr:
        """The features of texts."""


def convert(
    source: str | Path,
    target: str | Path,
    vectorizer: Vectorizer,
    to: str | None = None,
    columns: Columns | None = None,
) -> dict[Path, Dataset]:
    """Convert a file to a file, or a folder to a folder of format ``to`` ("jsonl", "csv.gz", ...); what was written.

    Texts become features by the ``vectorizer`` where the target format has no texts (.txt); it is fitted on train.
    With ``columns`` the source is a table, whose rows become texts and labels.
    """
    source, target = Path(source), Path(target)
    if not source.is_dir():
        if to is not None:
            raise ParameterError(f"--to is for folders, but {source} is a file; name the target's format by its ending")
        return _convert_file(source, target, vectorizer, columns)
    if to is None:
        raise ParameterError(
            f"a folder needs --to FORMAT, but it is missing for {source}; add for example --to jsonl.gz"
        )
    return _convert_folder(source, target, vectorizer, to.removeprefix("."), columns)


def _convert_file(source: Path, target: Path, vectorizer: Vectorizer, columns: Columns | None) -> dict[Path, Dataset]:
    known = labels_beside(target)
    # Read with the target's labels, so that the splits of one folder keep one numbering.
    documents = read_dataset(source, known, columns)
    if file_format(target) == FEATURES_ONLY and documents.X is None:
        documents = _featured(documents, vectorizer.fit(documents.texts or []))
    write_dataset(documents, target)
    _write_label_files(documents, target.parent)
    return {target: documents}


def _convert_folder(
    source: Path, target: Path, vectorizer: Vectorizer, to: str, columns: Columns | None
) -> dict[Path, Dataset]:
    splits = open_source(source, columns)
    train = splits.train()
    parts = {"train": train, "dev": splits.dev(train.labels), "test": splits.test(train.labels)}
    features = None
    if file_format(f"x.{to}") == FEATURES_ONLY and train.X is None:
        features = vectorizer.fit(train.texts or [])
    written = {}
    widest = train.labels
    for name, part in parts.items():
        if part is None:
            continue
        path = target / f"{name}.{to}"
        widest = widest.extended(part.labels.names)
        written[path] = part if features is None else _featured(part, features)
        write_dataset(written[path], path)
    _write_label_files(replace(train, Y=_widened(train, len(widest)), labels=widest), target)
    return written


def _widened(documents: Dataset, n_labels: int) -> object:
    Y = documents.Y.copy()
    Y.resize((len(documents), n_labels))
    return Y


def _featured(documents: Dataset, features: Vectorizer) -> Dataset:
    if documents.texts is None:
        raise DataError("every split must have texts, as train does, but one has none; convert it apart")
    return replace(documents, X=features.transform(documents.texts))


def _write_label_files(documents: Dataset, folder: Path) -> None:
    if not is_numbered(documents.labels):
        write_labels(folder / LABELS, documents.labels)
    if documents.labels.hierarchy is not None:
        write_hierarchy(folder / HIERARCHY, documents.labels)
