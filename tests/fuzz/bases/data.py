"""Data folders of every format, with label names and a hierarchy, or without; plain and gzipped."""

import gzip
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from labelspace.data.label_files import write_hierarchy, write_labels
from labelspace.data.source import writable_format, write_dataset
from labelspace.types import Columns, LabelSpace
from tests.fuzz.bases.models import documents

FORMATS = ("jsonl", "csv", "txt", *(["parquet"] if find_spec("pyarrow") else []))
MORE = {
    "fasttext": "train.ft", "libsvm": "train.svm", "libmultilabel": "train.txt", "bioasq": "train.json",
    "json": "train.json", "tsv": "train.tsv", "matrices": "train.X.npz", "pecos": "X.trn.npz",
    "xmc_pairs": "trn_X_Xf.txt",
}  # fmt: skip
MESSY = "sku;Title;Tags\n" + "".join(f'S{i};"w{i}, w{2 * i}";t{i % 3}, t{i % 4}\n' for i in range(12))
ANNIF = "".join(
    f'{{"text": "w{i}", "subjects": [{{"uri": "http://example.org/{i % 3}", "label": "t{i % 3}"}}]}}\n'
    for i in range(12)
)
COLUMNS = Columns(("title", "price"), (("brand",), ("L0", "L1")))
TABLE = "title,price,brand,L0,L1\n" + "".join(f"w{i} w{2 * i},{i}.5,b{i % 3},c{i % 2},d{i % 4}\n" for i in range(12))


def makers() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """The name of each folder, which starts with its format, and who makes it."""
    for ending in FORMATS:
        for packed in ("", ".gz"):
            yield f"{ending}-{packed}", lambda folder, name=f"train.{ending}{packed}": _standard(folder, name)
    for ending in set(FORMATS) - {"txt"}:
        yield f"{ending}-features", lambda folder, name=f"train.{ending}": _standard(folder, name, texts=False)
    for name, file in MORE.items():
        yield f"{name}-", lambda folder, name=name, file=file: _other(folder, name, file)
    yield "csv-messy", lambda folder: _write(folder, "train.csv", MESSY)
    yield "jsonl-annif", lambda folder: _write(folder, "train.jsonl", ANNIF)
    yield "csv-table", lambda folder: _write(folder, "train.csv", TABLE)
    yield "csv-table.gz", lambda folder: _write(folder, "train.csv.gz", TABLE)
    yield "jsonl-paths", _paths
    yield "labels-only", lambda folder: _labels(folder)
    yield "text-", lambda folder: _write(folder, "texts.txt", "\n".join(documents().texts[:12]))
    yield "text-.gz", lambda folder: _write(folder, "texts.txt.gz", "\n".join(documents().texts[:12]))
    yield "text-unknown", lambda folder: _write(folder, "texts", '{"text": "w1 w2", "id": 3}\n{"text": "w3"}\n')


def _standard(folder: Path, name: str, texts: bool = True) -> None:
    some = documents().rows(range(12))
    _labels(folder)
    write_dataset(replace(some, X=None) if texts and ".txt" not in name else replace(some, texts=None), folder / name)


def _other(folder: Path, name: str, file: str) -> None:
    """A format that may have a folder of its own, and names without spaces."""
    folder.mkdir(parents=True, exist_ok=True)
    some = documents().rows(range(12))
    has_texts = not writable_format(folder / file, name).needs_features
    write_dataset(replace(some, X=None) if has_texts else replace(some, texts=None), folder / file, name)


def _labels(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    labels = documents().labels
    write_labels(folder / "labels.jsonl", labels)
    write_hierarchy(folder / "hierarchy.tsv", labels)


def _paths(folder: Path) -> None:
    """Names that are paths, and no label files."""
    folder.mkdir(parents=True)
    some = documents().rows(range(12))
    names = [" > ".join(["top", f"mid {i % 3}", f"leaf {i}"][: 1 + i % 3] + [str(i)]) for i in range(12)]
    write_dataset(replace(some, X=None, labels=LabelSpace(names)), folder / "train.jsonl")


def _write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = text.encode()
    (folder / name).write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)
