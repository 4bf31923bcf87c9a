"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataPath = Annotated[
    Path, typer.Argument(metavar="DATA", help="A folder with train.* (and test.*, dev.*), or one file.")
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder written by `labelspace train`.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of everything drawn at random.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A parameter of the method, or of the features: features.KEY=VALUE."
    ),
]
InputColumns = Annotated[
    str | None,
    typer.Option("--inputs", metavar="A,B", help="DATA is a table: the columns to read, e.g. title,price."),
]
OutputColumns = Annotated[
    str | None,
    typer.Option(
        "--outputs",
        metavar="C,D",
        help="The columns to find, e.g. brand,L0_category,L1_category; other chains of levels as 'department>aisle'.",
    ),
]
Consistent = Annotated[
    bool,
    typer.Option("--consistent", help="No label before those above it in the hierarchy of the labels, nor without."),
]
Places = Annotated[int, typer.Option("--k", min=1, help="Labels a document.")]
Ks = Annotated[str, typer.Option("--k", metavar="1,3,5", help="Places at which to measure.")]


def source_name(data: Path) -> str:
    """A data path as a word for file names."""
    return data.resolve().name.split(".")[0] or "data"
