"""Arguments and options of several commands."""

from pathlib import Path
from typing import Annotated

import typer

from labelspace.errors import ParameterError

DataPath = Annotated[Path, typer.Argument(metavar="DATA", help="A folder with train.* (and test.*, dev.*), or a file.")]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder saved by `labelspace train`.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
TopKOption = Annotated[int, typer.Option("--k", min=1, help="Number of labels per document.")]
Ks = Annotated[str, typer.Option("--k", metavar="1,3,5", help="Cutoff ranks of the metrics.")]


def source_name(data: Path) -> str:
    """Return the name of a data path, for file names."""
    return data.resolve().name.split(".")[0] or "data"


def parse_ks(text: str) -> tuple[int, ...]:
    """Return the numbers in text such as '1,3,5', each once."""
    try:
        ks = tuple(dict.fromkeys(int(k) for k in text.split(",")))
    except ValueError:
        ks = ()
    if not ks or min(ks) < 1:
        raise ParameterError(
            f"--k must be integers of at least 1 separated by commas, but is {text!r}; write for example 1,3,5"
        )
    return ks
