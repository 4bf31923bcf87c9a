"""The formats of data files, by name."""

import re
from difflib import get_close_matches
from pathlib import Path

from labelspace.data.archives import without_compression
from labelspace.data.formats import (
    annif,
    bioasq,
    csvfile,
    fasttext,
    json_documents,
    libmultilabel,
    libsvm,
    matrices,
    parquet,
    pecos,
    text_folder,
    xmc,
    xmc_pairs,
)
from labelspace.data.formats.base import AnyFormat
from labelspace.errors import ParameterError

_FORMATS: tuple[AnyFormat, ...] = (
    xmc.FORMAT,
    json_documents.JSONL,
    csvfile.CSV,
    csvfile.TSV,
    parquet.FORMAT,
    fasttext.FORMAT,
    libsvm.FORMAT,
    libmultilabel.FORMAT,
    annif.FORMAT,
    bioasq.FORMAT,
    json_documents.JSON,
    matrices.FORMAT,
    pecos.FORMAT,
    xmc_pairs.FORMAT,
    text_folder.FORMAT,
)
FORMATS = {fmt.name: fmt for fmt in _FORMATS}
ENDINGS = tuple(dict.fromkeys(ending for fmt in FORMATS.values() for ending in fmt.endings))


def file_format(path: str | Path) -> str:
    """Return the ending of a file name that says its format, without that of a compression; '' if none does.

    >>> file_format("a.csv.gz"), file_format("notes.doc")
    ('.csv', '')
    """
    name = without_compression(Path(path).name.lower())
    return next((ending for ending in ENDINGS if name.endswith(ending)), "")


def formats_of(path: str | Path) -> list[AnyFormat]:
    """Return the formats that a file may have by its name; last, the one that is taken if its content tells nothing."""
    name = without_compression(Path(path).name.lower())
    exact = [fmt for fmt in FORMATS.values() if fmt.file_names and re.fullmatch(fmt.file_names, name, re.IGNORECASE)]
    by_ending = [fmt for fmt in FORMATS.values() if any(name.endswith(ending) for ending in fmt.endings)]
    # A file that only one format has is of it; where several share an ending, the one that recognizes nothing is last.
    only = [fmt for fmt in by_ending if fmt.recognizes is None or len(by_ending) == 1]
    return exact or [*(fmt for fmt in by_ending if fmt not in only), *only]


def format_named(name: str) -> AnyFormat:
    """Return the format of this name; raise ParameterError for an unknown one."""
    if name not in FORMATS:
        close = get_close_matches(name, FORMATS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        rule = f"format must be one of {', '.join(FORMATS)}"
        raise ParameterError(f"{rule}, but is {name!r}; {hint}name one of these", options=["format"])
    return FORMATS[name]
