"""Convert data to another format: a file, or all splits of a folder, which then share labels and features."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from labelspace.data.dataset_records import is_numbered
from labelspace.data.labels import HIERARCHY, LABELS, labels_beside, write_hierarchy, write_labels
from labelspace.data.source import file_format, open_source, read_dataset, write_dataset
from labelspace.errors import DataError, ParameterError
from labelspace.types import Columns, Csr, Dataset, LabelSpace

FEATURES_ONLY = ".txt"


class Vectorizer(Protocol):
    """A class that makes features of texts, such as ``features.Tfidf``."""

    def fit(self, texts: Sequence[str]) -> Self:
        """Fit on texts."""

    def transform(self, texts: Sequence[str]) -> Csr:
        """The features of texts."""


def convert(
    source: str | Path,
    target: str | Path,
    vectorizer: Vectorizer,
    to: str | None = None,
    columns: Columns | None = None,
) -> dict[Path, Dataset]:
    """Convert a file to a file, or a folder to a folder of format ``to`` ("jsonl", "csv.gz", ...).

    The ``vectorizer``, fitted on train, makes features of texts where the target format has no texts (.txt). With
    ``columns`` the source is a table, whose rows become texts and labels. Returns the data sets by path.
    """
    source, target = Path(source), Path(target)
    if not source.is_dir():
        if to is not None:
            raise ParameterError(f"--to is for folders, but {source} is a file; give the target an extension instead")
        return _convert_file(source, target, vectorizer, columns)
    if to is None:
        raise ParameterError(f"a folder needs --to FORMAT, but none is given for {source}; add e.g. --to jsonl.gz")
    return _convert_folder(source, target, vectorizer, to.removeprefix("."), columns)


def _convert_file(source: Path, target: Path, vectorizer: Vectorizer, columns: Columns | None) -> dict[Path, Dataset]:
    # Read with the target's labels, so that the splits of one folder share label ids.
    documents = read_dataset(source, labels_beside(target), columns)
    if file_format(target) == FEATURES_ONLY and documents.X is None:
        documents = _with_features(documents, vectorizer.fit(documents.texts or []))
    write_dataset(documents, target)
    _write_label_files(documents.labels, target.parent)
    return {target: documents}


def _convert_folder(
    source: Path, target: Path, vectorizer: Vectorizer, to: str, columns: Columns | None
) -> dict[Path, Dataset]:
    splits = open_source(source, columns)
    train = splits.train()
    parts = {"train": train, "dev": splits.dev(train.labels), "test": splits.test(train.labels)}
    fitted = None
    if file_format(f"x.{to}") == FEATURES_ONLY and train.X is None:
        fitted = vectorizer.fit(train.texts or [])
    written = {}
    labels = train.labels
    for name, part in parts.items():
        if part is None:
            continue
        path = target / f"{name}.{to}"
        labels = labels.extended(part.labels.names)
        written[path] = part if fitted is None else _with_features(part, fitted)
        write_dataset(written[path], path)
    _write_label_files(labels, target)
    return written


def _with_features(documents: Dataset, vectorizer: Vectorizer) -> Dataset:
    if documents.texts is None:
        raise DataError("every split must have texts, as train does, but one has none; convert it separately")
    return replace(documents, X=vectorizer.transform(documents.texts))


def _write_label_files(labels: LabelSpace, folder: Path) -> None:
    if not is_numbered(labels):
        write_labels(folder / LABELS, labels)
    if labels.hierarchy is not None:
        write_hierarchy(folder / HIERARCHY, labels)
