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
FeaturesOption = Annotated[
    str | None,
    typer.Option(
        "--features", help="tfidf, hashing or embeddings, in place of the method's own choice; for texts only."
    ),
]
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
    typer.Option("--consistent", help="Include every label's ancestors in the hierarchy, ranked above it."),
]
TopKOption = Annotated[int, typer.Option("--k", min=1, help="Labels per document.")]
Ks = Annotated[str, typer.Option("--k", metavar="1,3,5", help="Ranks to measure at.")]


def source_name(data: Path) -> str:
    """A data path as a word for file names."""
    return data.resolve().name.split(".")[0] or "data"
