"""The commands data stats and data convert."""

from pathlib import Path
from typing import Annotated

import typer

from labelspace.cli.arguments import DataPath, InputColumns, Json, OutputColumns
from labelspace.cli.console import console, print_json, print_line
from labelspace.cli.notes import note, note_label_files, on_label_files


def stats(data: DataPath, inputs: InputColumns = None, outputs: OutputColumns = None, as_json: Json = False) -> None:
    """Show the number of documents, labels and features of DATA."""
    from labelspace.data.columns import parse_columns
    from labelspace.data.source import open_source
    from labelspace.report.tables import dataset_stats, stats_table

    source = open_source(data, parse_columns(inputs, outputs))
    if not as_json:
        note_label_files(source.train_path, source.columns)
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

    .txt has no texts: they are converted to tf-idf features. Names, synonyms
    and hierarchy of the labels, where OUT alone would not tell them, are
    written beside it: to labels.jsonl and hierarchy.tsv of a folder, to
    a.labels.jsonl and a.hierarchy.tsv of a file a.jsonl, which no other file
    reads. With --inputs and --outputs, rows of a table become texts and labels.
    """
    from labelspace.data import conversion
    from labelspace.data.columns import parse_columns
    from labelspace.data.labels import label_files
    from labelspace.data.source import open_source
    from labelspace.features import Tfidf

    columns, existed = parse_columns(inputs, outputs), target.is_file()
    read = on_label_files(open_source(source, columns).train_path, columns)
    converted = conversion.convert(source, target, Tfidf(), to, columns)
    for line in read:
        note(line)
    for path, written in converted.items():
        replaced = " (replaced)" if existed else ""
        print_line(f"{path}{replaced}: {len(written):,} documents, {len(written.labels):,} labels")
    for file in dict.fromkeys(file for path in converted for file in label_files(path)):
        print_line(f"{file}: {'label names' if file.suffix == '.jsonl' else 'hierarchy'}")
