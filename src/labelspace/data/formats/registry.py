"""The formats of data files, by name: how each is known, read and written."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from labelspace.data.archives import without_compression
from labelspace.data.formats import csvfile, jsonl, parquet, xmc
from labelspace.data.read_options import ReadOptions
from labelspace.data.records import Record, Rows
from labelspace.errors import ParameterError
from labelspace.types import Dataset, LabelSpace

OpenRows = Callable[[str | Path, ReadOptions], AbstractContextManager[Rows]]
Records = Callable[[str | Path, ReadOptions], Iterator[Record]]
Read = Callable[[str | Path, LabelSpace | None, ReadOptions], Dataset]
Write = Callable[[str | Path, Dataset], None]


@dataclass(frozen=True)
class Format:
    """A format; one of ``rows``, ``records`` and ``read`` reads it."""

    name: str  # for --format
    title: str
    endings: tuple[str, ...] = ()
    rows: OpenRows | None = None  # rows with named columns
    records: Records | None = None  # documents, one by one
    read: Read | None = None  # the documents as a whole
    write: Write | None = None
    recognizes: Callable[[Sequence[str]], bool] | None = None  # its first lines, where endings leave it open
    file_names: re.Pattern[str] | None = None  # of files that are of this format, whatever their ending
    is_text: bool = True  # whether it has an encoding
    needs_features: bool = False  # whether it holds no texts


FORMATS = {
    fmt.name: fmt
    for fmt in (
        Format(
            "xmc",
            "XMC repository format",
            (".txt",),
            read=xmc.read,
            write=xmc.write_xmc,
            is_text=False,
            needs_features=True,
        ),
        Format("jsonl", "JSON lines", (".jsonl", ".ndjson"), rows=jsonl.rows, write=jsonl.write_jsonl),
        Format("csv", "CSV", (".csv",), rows=csvfile.rows, write=csvfile.write_csv),
        Format("tsv", "TSV", (".tsv", ".tab"), rows=csvfile.rows, write=csvfile.write_tsv),
        Format("parquet", "Parquet", (".parquet",), rows=parquet.rows, write=parquet.write_parquet, is_text=False),
    )
}
ENDINGS = tuple(dict.fromkeys(ending for fmt in FORMATS.values() for ending in fmt.endings))


def file_format(path: str | Path) -> str:
    """The ending of a file name that says its format, without that of a compression; '' where none does.

    >>> file_format("a.csv.gz"), file_format("notes.doc")
    ('.csv', '')
    """
    name = without_compression(Path(path).name.lower())
    return next((ending for ending in ENDINGS if name.endswith(ending)), "")


def formats_of(path: str | Path) -> list[Format]:
    """The formats that a file may have by its name; the one that is taken where its content tells nothing is last."""
    name = without_compression(Path(path).name.lower())
    exact = [fmt for fmt in FORMATS.values() if fmt.file_names is not None and fmt.file_names.fullmatch(name)]
    by_ending = [fmt for fmt in FORMATS.values() if any(name.endswith(ending) for ending in fmt.endings)]
    return exact or sorted(by_ending, key=lambda fmt: fmt.recognizes is None)


def format_named(name: str) -> Format:
    """The format of this name; an unknown one is an error."""
    if name not in FORMATS:
        close = get_close_matches(name, FORMATS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ParameterError(f"--format must be one of {', '.join(FORMATS)}, but is {name!r}; {hint}name one of these")
    return FORMATS[name]
