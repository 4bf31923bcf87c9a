"""Arguments and options of several commands."""

from pathlib import Path
from typing import Annotated

import typer

DataPath = Annotated[Path, typer.Argument(metavar="DATA", help="A folder with train.* (and test.*, dev.*), or a file.")]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A folder saved by `labelspace train`.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]
Features = Annotated[
    str | None,
    typer.Option("--features", help="Features of texts: tfidf, hashing or embeddings. Default: chosen by the method."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a parameter of the method, or of the features: features.KEY=VALUE. Repeatable; the last KEY counts.",
    ),
]
Fast = Annotated[bool, typer.Option("--fast", help="Short for --preset fast: a blend at a fraction of the cost.")]
Best = Annotated[bool, typer.Option("--best", help="Short for --preset best: more members and folds.")]
TimeBudget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="2m",
        help="CPU time that training may take, as 90s, 2m or 1h30m; plans the best blend within it.",
    ),
]
MaxModelMb = Annotated[
    float | None,
    typer.Option("--max-model-mb", metavar="MB", help="Megabytes that the model may have on disk; plans for it."),
]
MaxLatencyMs = Annotated[
    float | None,
    typer.Option(
        "--max-latency-ms", metavar="MS", help="Milliseconds that one document may take, in the median; plans for it."
    ),
]
Optimize = Annotated[
    str | None,
    typer.Option(
        "--optimize", metavar="METRIC", help="Rank labels for this metric, such as PSP@5 for rare labels. Only blend."
    ),
]
TopKOption = Annotated[int, typer.Option("--k", min=1, help="Number of labels per document.")]
Ks = Annotated[str, typer.Option("--k", metavar="1,3,5", help="Cutoff ranks of the metrics.")]


def source_name(data: Path) -> str:
    """The name of a data path, for file names."""
    return data.resolve().name.split(".")[0] or "data"
