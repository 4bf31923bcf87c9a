"""The commands data stats and data convert."""

from pathlib import Path
from typing import Annotated

import typer

from labelspace.cli.arguments import DataPath, InputColumns, Json, OutputColumns
from labelspace.cli.console import console, print_json, print_line


def stats(data: DataPath, inputs: InputColumns = None, outputs: OutputColumns = None, as_json: Json = False) -> None:
    """Show the number of documents, labels and features of DATA."""
    from labelspace.data.columns import parse_columns
    from labelspace.data.source import open_source
    from labelspace.report.tables import dataset_stats, stats_table

    source = open_source(data, parse_columns(inputs, outputs))
    train_set = source.train()
    parts = {"train": train_set, "dev": source.dev(train_set.labels), "test": source.test(train_set.labels)}
    counted = {"parts": {name: dataset_stats(part) for name, part in parts.items() if part is not None}}
    if as_json:
        print_json({"data": str(data), **counted})
        return
    console().print(stats_table(str(data), counted))


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A data file, or a folder with train.*, dev.*, test.*.")],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="A data file, whose extension is the format, or a folder.")
    ],
    to: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="Format, for folders only: txt, jsonl, csv.gz, ...")
    ] = None,
    inputs: InputColumns = None,
    outputs: OutputColumns = None,
) -> None:
    """Convert data between .txt (Extreme Classification Repository), .jsonl, .csv and .parquet, each also with .gz.

    .txt has no texts: they are converted to tf-idf features. labels.jsonl and
    hierarchy.tsv are written to the same folder, if there are any. With
    --inputs and --outputs, rows of a table become texts and labels.
    """
    from labelspace.data import conversion
    from labelspace.data.columns import parse_columns
    from labelspace.features import Tfidf

    for path, written in conversion.convert(source, target, Tfidf(), to, parse_columns(inputs, outputs)).items():
        print_line(f"{path}: {len(written):,} documents, {len(written.labels):,} labels")
