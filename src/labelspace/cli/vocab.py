"""The command vocab import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from labelspace.cli.arguments import Json
from labelspace.cli.console import print_json, print_line
from labelspace.cli.notes import note

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from labelspace.data.vocabularies import Update

KINDS = ("new", "renamed", "changed", "gone", "returned")


def import_file(
    file: Annotated[
        Path,
        Argument(metavar="FILE", help="SKOS as .ttl, .rdf, .jsonld or .nt; a table as .csv or .tsv; a list as .txt."),
    ],
    out: Annotated[
        Path | None, Option(metavar="FOLDER", help="Folder of the labels. Default: next to FILE, with its name.")
    ] = None,
    language: Annotated[
        str | None, Option(metavar="en", help="Language of the names. Default: the folder's, else the main one.")
    ] = None,
    format: Annotated[
        str | None, Option(help="turtle, rdfxml, jsonld, ntriples, csv, tsv or list. Default: by the file's ending.")
    ] = None,
    encoding: Annotated[
        str | None, Option(help="Text encoding of tables, lists and N-Triples. Default: utf-8.")
    ] = None,
    delimiter: Annotated[str | None, Option(help="Mark between the cells of a CSV file. Default: detected.")] = None,
    dry_run: Annotated[bool, Option(help="Say what would change, and write nothing.")] = False,
    examples: Annotated[int, Option(min=0, help="Examples of each change.")] = 3,
    as_json: Json = False,
) -> None:
    """Import a vocabulary as labels.jsonl and hierarchy.tsv, which training data next to them use.

    Documents may name their labels by URI or by name. Where FOLDER has labels
    already, these are updated: they keep their ids, new ones are appended, and
    those that FILE does not have any more stay, and are listed in gone.txt.
    FILE may be compressed (.gz, .zst, .zip).
    """
    from labelspace.data.read_options import ReadOptions
    from labelspace.data.vocabularies import LabelsBefore, plan_update, read_vocabulary, vocabulary_format

    kind = vocabulary_format(file, format)
    folder = default_folder(file) if out is None else out
    before = LabelsBefore.of(folder)
    vocabulary = read_vocabulary(file, kind, language, ReadOptions(encoding=encoding, delimiter=delimiter))
    update = plan_update(vocabulary, before, language)
    written = [] if dry_run else update.write(folder)
    if as_json:
        print_json({"file": str(file), "format": kind, "folder": str(folder), **update_json(update, examples)})
        return
    named = f"names in {update.language}" if update.language else "names without a language"
    chosen = "" if language else " (change it with --language)"
    print_line(f"{file}: {len(vocabulary):,} concepts ({kind}), {named}{chosen}")
    for each in update.notes:
        note(str(each))
    for line in change_lines(update, examples):
        print_line(line)
    for line in written_lines(update, written) if written else [f"nothing is written to {folder}: --dry-run"]:
        print_line(line)


def default_folder(file: Path) -> Path:
    """Return the folder of a vocabulary: next to its file or archive, and named like that without endings.

    >>> default_folder(Path("data/yso-1.2.nt.gz")).as_posix()
    'data/yso-1.2'
    """
    from labelspace.data.archives import without_compression, zip_archive
    from labelspace.data.vocabularies import ENDINGS
    from labelspace.errors import ParameterError

    path = (zip_archive(file) or (file,))[0]
    name = Path(without_compression(path.name))
    folder = path.parent / (name.stem if name.suffix.lower() in ENDINGS else name)
    if folder.is_file() or str(file) == "-":
        raise ParameterError(f"--out must name the folder of the labels, since {folder} is none; add --out FOLDER")
    return folder


def change_lines(update: Update, examples: int) -> list[str]:
    """Say what happened to earlier labels, in a line per kind of change; no lines if there were no labels."""
    if not len(update.before):
        return []
    lines = []
    for kind in (kind for kind in KINDS if update.changes[kind]):
        count, shown = len(update.changes[kind]), shown_changes(update, kind, examples)
        now = f" ({update.n_newly_gone:,} now)" if kind == "gone" else ""
        more = f": {', '.join(shown)}{', ...' if len(shown) < count else ''}" if shown else ""
        lines.append(f"{count:,} {kind}{now}{more}")
    return lines or ["the labels are the same as before"]


def shown_changes(update: Update, kind: str, examples: int) -> list[str]:
    """Return the names of the first labels with a change; renamed labels have both names."""
    before, after = update.before.names, update.after.names
    labels = update.changes[kind][:examples]
    if kind == "renamed":
        return [f"{before[label]} -> {after[label]}" for label in labels]
    return [after[label] for label in labels]


def written_lines(update: Update, written: list[Path]) -> list[str]:
    """Say what the written files contain, and what to do about labels that were renamed or are gone."""
    labels, hierarchy = update.after, update.after.hierarchy
    contents = {"labels.jsonl": f"{len(labels):,} labels"}
    if hierarchy is not None:
        depth = int(hierarchy.levels.max()) + 1
        contents["hierarchy.tsv"] = f"{hierarchy.parents.nnz:,} links to broader labels, {depth} levels"
    gone = len(update.changes["gone"])
    contents["gone.txt"] = f"{gone:,} labels that stay for documents that have them; predict --exclude leaves them out"
    lines = [f"{path}: {contents[path.name]}" for path in written]
    if update.changes["renamed"]:
        lines.append("documents that name renamed labels by the old name must be changed; those with URIs stay right")
    return lines


def update_json(update: Update, examples: int) -> dict[str, Any]:
    """Return the update as plain values, for programs."""
    hierarchy = update.after.hierarchy
    return {
        "language": update.language or None,
        "labels": len(update.after),
        "edges": 0 if hierarchy is None else int(hierarchy.parents.nnz),
        **{kind: len(update.changes[kind]) for kind in KINDS},
        "newly_gone": update.n_newly_gone,
        "notes": {each.key: each.count for each in update.notes},
        "examples": {kind: shown_changes(update, kind, examples) for kind in KINDS},
    }
