"""The commands vocab import and vocab update."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from labelspace.cli.arguments import Json, Keep, ModelPath
from labelspace.cli.console import print_json, print_line
from labelspace.cli.notes import note

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from labelspace.data.vocabularies import Update
    from labelspace.tagger.vocabulary_update import VocabularyUpdate

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


def update(
    model: ModelPath,
    file: Annotated[Path, Argument(metavar="FILE", help="The new edition, in a format of `vocab import`.")],
    language: Annotated[
        str | None, Option(metavar="en", help="Language of the names. Default: that of the model's labels.")
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
    keep: Keep = None,
    as_json: Json = False,
) -> None:
    """Bring a new edition of its vocabulary into a model, without training: the version before is kept.

    Labels are matched by URI. New ones are answered by their names at once, if
    the method reads names. Deprecated ones are merged into what replaces them
    (dct:isReplacedBy), or retired. Those that FILE does not have stay.
    """
    from labelspace import store
    from labelspace.data.read_options import ReadOptions
    from labelspace.data.vocabularies import read_vocabulary, vocabulary_format
    from labelspace.tagger.lineage import Origin
    from labelspace.tagger.vocabulary_update import update_saved

    store.read_manifest(model)
    kind = vocabulary_format(file, format)
    vocabulary = read_vocabulary(file, kind, language, ReadOptions(encoding=encoding, delimiter=delimiter))
    n_kept = store.KEPT if keep is None else keep
    origin = Origin.of(file)
    made = update_saved(model, vocabulary, language, origin=origin, n_kept=n_kept, dry_run=dry_run)
    found = made.update
    n_in_use = int(found.after.in_use.sum())
    if as_json:
        counts = {kind: len(labels) for kind, labels in found.changes.items()}
        shown = {kind: found.examples(kind, examples) for kind in found.changes}
        about = {"model": str(model), "file": str(file), "format": kind, "language": found.language or None}
        notes = {each.key: each.count for each in found.notes}
        print_json({**about, "version": made.number, "n_in_use": n_in_use, **counts, "notes": notes, "examples": shown})
        return
    named = f"names in {found.language}" if found.language else "names without a language"
    chosen = "" if language else " (change it with --language)"
    print_line(f"{file}: {len(vocabulary):,} concepts ({kind}), {named}{chosen}")
    for each in found.notes:
        note(str(each))
    for line in model_change_lines(found, examples):
        print_line(line)
    saved = f"{model} is version {made.number}" if made.number is not None else f"nothing is written to {model}"
    print_line(f"{n_in_use:,} labels in use; {saved}{': --dry-run' if dry_run else ''}")


def model_change_lines(found: VocabularyUpdate, examples: int) -> list[str]:
    """Say what happens to the labels of a model, in a line per kind of change."""
    from labelspace.tagger.vocabulary_update import MEANINGS

    lines = []
    for kind, labels in found.changes.items():
        shown = found.examples(kind, examples)
        more = f": {', '.join(shown)}{', ...' if len(shown) < len(labels) else ''}" if shown else ""
        lines += [f"{len(labels):,} {MEANINGS[kind]}{more}"] if labels else []
    return [*lines, "the labels are the same as before"] if found.is_empty else lines


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
