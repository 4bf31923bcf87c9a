"""The formats of data files, by name: how each is known, read and written."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from labelspace.data.archives import without_compression
from labelspace.data.formats import (
    annif,
    bioasq,
    csvfile,
    fasttext,
    json_documents,
    jsonl,
    libmultilabel,
    libsvm,
    matrices,
    parquet,
    pecos,
    text_folder,
    xmc,
    xmc_pairs,
)
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
    documents: Records | None = None  # of what is read as a whole: documents to tag, one by one
    write: Write | None = None
    recognizes: Callable[[Sequence[str]], bool] | None = None  # its first lines, where endings leave it open
    file_names: re.Pattern[str] | None = None  # of files that are of this format, whatever their ending
    is_text: bool = True  # whether it has an encoding
    needs_features: bool = False  # whether it holds no texts
    streams: bool = True  # whether it is read piece by piece, so that it may be larger than memory
    beside: Callable[[Path], list[Path]] | None = None  # the other files that say how to read a file
    has_label_names: bool = False  # whether its folders have a file of all names of labels
    split_names: Mapping[str, str] | None = None  # of the file to write of each split, where it is not train.ENDING

    def split_name(self, split: str, ending: str) -> str:
        """The name of the file of a split in a folder."""
        return f"{split}{ending}" if self.split_names is None else self.split_names[split]


_FORMATS = (
    Format(
        "xmc", "XMC repository format", (".txt",), read=xmc.read, documents=xmc.documents, write=xmc.write_xmc,
        is_text=False, needs_features=True,
    ),
    Format("jsonl", "JSON lines", (".jsonl", ".ndjson", ".json"), rows=jsonl.rows, write=jsonl.write_jsonl),
    Format("csv", "CSV", (".csv",), rows=csvfile.rows, write=csvfile.write_csv),
    Format("tsv", "TSV", (".tsv", ".tab"), rows=csvfile.rows, write=csvfile.write_tsv),
    Format("parquet", "Parquet", (".parquet",), rows=parquet.rows, write=parquet.write_parquet, is_text=False),
    Format(
        "fasttext", "fastText (__label__)", (".ft", ".fasttext", ".txt"), records=fasttext.records,
        write=fasttext.write, recognizes=fasttext.recognizes,
    ),
    Format(
        "libsvm", "LIBSVM with several labels", (".svm", ".libsvm", ".svmlight", ".txt"), read=libsvm.read,
        documents=libsvm.documents, write=libsvm.write, recognizes=libsvm.recognizes, needs_features=True,
        beside=libsvm.other_splits,
    ),
    Format(
        "libmultilabel", "LibMultiLabel (labels, tab, text)", (".txt", ".tsv"), records=libmultilabel.records,
        write=libmultilabel.write, recognizes=libmultilabel.recognizes,
    ),
    Format(
        "annif", "Annif's document corpus (text, tab, URIs)", (".tsv",), records=annif.records, write=annif.write,
        recognizes=annif.recognizes,
    ),
    Format(
        "bioasq", "BioASQ", (".json",), records=bioasq.records, write=bioasq.write, recognizes=bioasq.recognizes
    ),
    Format(
        "json", "one JSON list", (".json",), rows=json_documents.rows, write=json_documents.write,
        recognizes=json_documents.recognizes,
    ),
    Format(
        "matrices", "NumPy or SciPy matrices", matrices.ENDINGS, read=matrices.read, documents=matrices.documents,
        write=matrices.write, is_text=False, needs_features=True, streams=False,
    ),
    Format(
        "pecos", "PECOS", read=pecos.read, documents=pecos.documents, write=pecos.write, is_text=False, streams=False,
        file_names=pecos.FILE_NAMES,
        split_names={split: f"X.{short}.npz" for split, short in pecos.SPLITS.items()}, needs_features=True,
        has_label_names=True,
    ),
    Format(
        "xmc_pairs", "XMC repository format, a file per matrix", read=xmc_pairs.read, documents=xmc_pairs.documents,
        write=xmc_pairs.write, is_text=False, file_names=xmc_pairs.FILE_NAMES,
        split_names={split: f"{short}_X_Xf.txt" for split, short in xmc_pairs.SPLITS.items()}, needs_features=True,
        has_label_names=True,
    ),
    Format(
        "text_folder", "a folder of texts", records=text_folder.records, write=text_folder.write, is_text=False,
        split_names={split: split for split in ("train", "dev", "test")},
    ),
)  # fmt: skip
FORMATS = {fmt.name: fmt for fmt in _FORMATS}
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
    # A file that only one format has is of it; where several share an ending, the one that recognizes nothing is last.
    only = [fmt for fmt in by_ending if fmt.recognizes is None or len(by_ending) == 1]
    return exact or [*(fmt for fmt in by_ending if fmt not in only), *only]


def format_named(name: str) -> Format:
    """The format of this name; an unknown one is an error."""
    if name not in FORMATS:
        close = get_close_matches(name, FORMATS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise ParameterError(f"--format must be one of {', '.join(FORMATS)}, but is {name!r}; {hint}name one of these")
    return FORMATS[name]
