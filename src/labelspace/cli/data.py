"""The commands data stats, data check, data convert and data synthetic."""

import shlex
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from labelspace.cli.arguments import DataPath, Json, Reading, as_words
from labelspace.cli.console import console, print_json, print_line, progress
from labelspace.cli.notes import note, note_label_files, on_label_files, open_noted
from labelspace.cli.recipes import Seed


def stats(data: DataPath, as_json: Json = False, *, reading: Reading) -> None:
    """Show the number of documents, labels and features of DATA."""
    from labelspace.report.tables import dataset_stats, stats_table

    source = open_noted(data, reading, as_json)
    counted = {"parts": {name: dataset_stats(part) for name, part in source.splits().items()}}
    if as_json:
        print_json({"data": str(data), **counted})
        return
    console().print(stats_table(str(data), counted))


def check(
    data: DataPath,
    deep: Annotated[
        bool, Option(help="Find also labels that are probably wrong or missing; trains two fast models.")
    ] = False,
    fix: Annotated[Path | None, Option(metavar="OUT", help="Write a cleaned copy to this new file or folder.")] = None,
    only: Annotated[
        list[str] | None, Option(metavar="CHECK", help="Make, and fix, only this check. Repeatable.")
    ] = None,
    skip: Annotated[list[str] | None, Option(metavar="CHECK", help="Leave a check out. Repeatable.")] = None,
    examples: Annotated[int, Option(min=0, help="Examples of each finding.")] = 3,
    seed: Seed = 0,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Check DATA before it is learned from: duplicates, leaks, labels, encodings, hierarchy.

    Each finding has examples, the reason why it matters and the remedy, worst
    first. --fix corrects what is certain in a copy; DATA itself is never changed.
    The exit code is 0 also where something is found.
    """
    from labelspace.data.checks import CHECKS, Documents, Report, run_checks, worst_first
    from labelspace.data.cleaning import check_new, clean, write_cleaned
    from labelspace.data.source import open_source
    from labelspace.errors import DataError
    from labelspace.report.data_check import changes_json, changes_lines, check_json, check_report

    names = chosen_checks(only or [], skip or [], deep)
    if fix is not None:
        check_new(fix)
    source = open_source(data, options=reading)
    if fix is not None and source.labels_only:
        raise DataError(f"--fix needs documents, but {source.train_path} has labels only; give a folder with train.*")
    documents = Documents.read(source, examples)
    report = run_checks(documents, [name for name in names if name in CHECKS])
    if deep:
        from labelspace.experiment.label_errors import find_label_errors

        with progress(quiet=as_json) as tell:
            more = find_label_errors(documents, names, seed, tell)
        findings = worst_first([*report.findings, *more.findings])
        report = Report(findings, [*report.passed, *more.passed], {**report.skipped, **more.skipped})
    command = f"labelspace data check {shlex.join([str(data), *as_words(reading)])} --fix OUT"
    result = check_json(str(data), documents, report, command)
    if not as_json:
        note_label_files(source.train_path, reading.columns)
        console().print(check_report(str(data), documents, report, command))
    if fix is not None:
        cleaned = clean(documents, names)
        written = write_cleaned(cleaned, data, fix)
        result["fix"] = changes_json(cleaned, written)
        for line in () if as_json else ("", *changes_lines(cleaned, written)):
            print_line(line)
        if reading.columns is not None and not as_json:
            note(f"{fix} has texts and labels in place of the columns: train on it without --inputs and --outputs")
    if as_json:
        print_json(result)


def chosen_checks(only: list[str], skip: list[str], deep: bool) -> list[str]:
    """Return the checks that the options name; checks that train a model need --deep."""
    from labelspace.data.checks import CHECKS, DEEP_CHECKS, selected
    from labelspace.errors import ParameterError

    names = selected(only, skip, [*CHECKS, *DEEP_CHECKS])
    missing = [name for name in only if name in DEEP_CHECKS and not deep]
    if missing:
        raise ParameterError(f"{missing[0]} needs --deep, but that is not given; add it")
    return names


def convert(
    source: Annotated[Path, Argument(metavar="IN", help="A data file, or a folder with train.*, dev.*, test.*.")],
    target: Annotated[Path, Argument(metavar="OUT", help="A data file, whose extension is the format, or a folder.")],
    to: Annotated[
        str | None, Option(metavar="FORMAT", help="Format, for folders only: txt, jsonl, csv.gz, ...")
    ] = None,
    *,
    reading: Reading,
) -> None:
    """Convert data between .txt (Extreme Classification Repository), .jsonl, .csv and .parquet, each also with .gz.

    .txt has no texts: they are converted to tf-idf features. Names, synonyms
    and hierarchy of the labels, if OUT itself cannot hold them, are
    written next to it: to labels.jsonl and hierarchy.tsv of a folder, to
    a.labels.jsonl and a.hierarchy.tsv of a file a.jsonl, which no other file
    reads. With --inputs and --outputs, rows of a table become texts and labels.
    """
    from labelspace.data import conversion
    from labelspace.data.label_files import label_files
    from labelspace.data.source import open_source
    from labelspace.features import Tfidf

    existed = target.is_file()
    read = on_label_files(open_source(source, options=reading).train_path, reading.columns)
    converted = conversion.convert(source, target, Tfidf(), to, reading)
    for line in read:
        note(line)
    for path, written in converted.items():
        replaced = " (replaced)" if existed else ""
        print_line(f"{path}{replaced}: {len(written):,} documents, {len(written.labels):,} labels")
    for file in dict.fromkeys(file for path in converted for file in label_files(path)):
        print_line(f"{file}: {'label names' if file.suffix == '.jsonl' else 'hierarchy'}")


def synthetic(
    name: Annotated[str, Argument(metavar="NAME", help="The data set, such as Amazon-670K.")],
    folder: Annotated[Path, Argument(metavar="FOLDER", help="A new folder, for train.txt and test.txt.")],
    fraction: Annotated[float, Option(metavar="F", help="Share of the documents and labels, such as 0.05.")] = 1.0,
    seed: Seed = 0,
) -> None:
    """Write synthetic data of the size of a public data set, to measure time and memory with.

    Wiki10-31K, AmazonCat-13K, Delicious-200K, WikiLSHTC-325K, Wikipedia-500K,
    Amazon-670K, Amazon-3M: documents, labels, features and their means are
    those of the real data, and labels can be learned from the features. Accuracy
    on such data says nothing about accuracy on the real data.
    """
    from labelspace.data.synthetic import write_shaped

    with progress() as tell:
        written = write_shaped(name, folder, fraction, seed, tell)
    for path, (n, n_features, n_labels) in written.items():
        print_line(f"{path}: {n:,} documents, {n_features:,} features, {n_labels:,} labels")
