"""The commands labels list, add, retire, rename, merge, split and edit."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from typer import Argument, Option

from labelspace.cli.arguments import Json, Keep, ModelPath, OptionGroup, Reading
from labelspace.cli.console import print_json, print_line
from labelspace.cli.notes import note
from labelspace.errors import ParameterError

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from labelspace.tagger import Tagger
    from labelspace.tagger.label_edits import Action, LabelEdit
    from labelspace.types import LabelSpace

SHOWN = 20  # edits of a file that are printed one by one
Name = Annotated[str | None, Argument(metavar="[NAME]", help="A label, by its name or URI.")]
FromFile = Annotated[
    Path | None,
    Option(
        "--from",
        metavar="FILE",
        help="Many edits at once, all or none: CSV, TSV or JSON lines with a column 'label', and 'alt' (| between "
        "several in CSV), 'description', 'new' or 'into' as the command has them.",
    ),
]


class Saving(NamedTuple):
    """How an edited model is saved."""

    dry_run: Annotated[bool, Option(help="Make the edits, say what they change, and write nothing.")] = False
    keep: Keep = None
    as_json: Json = False


SavingOptions = Annotated[Saving, Option(parser=OptionGroup.of(Saving))]


def list_labels(
    model: ModelPath,
    search: Annotated[
        str | None, Option(metavar="TEXT", help="Only labels with this in a name, the URI or the description.")
    ] = None,
    sort: Annotated[
        Literal["name", "documents"] | None, Option(help="Default: as in the model, new labels last.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the labels of a model: training documents, name, synonyms, and what became of retired and merged ones.

    With --json, each has its URI and description too.
    """
    from labelspace import store
    from labelspace.types import LabelSpace

    manifest = store.read_manifest(model)
    labels = store.read_labels(model, manifest)
    if labels is None:
        labels = LabelSpace.numbered(int(manifest["model"]["state"]["n_labels_"]["value"]))
    rows = [row for row in label_rows(labels) if search is None or has_text(row, search)]
    if sort is not None:
        rows.sort(key=by_name if sort == "name" else by_documents)
    n_in_use = int(labels.in_use.sum())
    if as_json:
        print_json({"model": str(model), "n_labels": len(labels), "n_in_use": n_in_use, "labels": rows})
        return
    for row in rows:
        print_line(label_line(row))
    if search is not None or n_in_use < len(labels):
        found = "" if search is None else f"{len(rows):,} found; "
        note(f"{found}{n_in_use:,} of {len(labels):,} labels are in use")


def label_rows(labels: "LabelSpace") -> Iterator[dict[str, Any]]:
    """Yield each label as plain values; its documents are counted with those of labels merged into it."""
    from labelspace.labels.edits import state_of

    counts = labels.answered_counts.tolist()
    are_in_use = labels.in_use.tolist()
    for label, (name, alt, description) in enumerate(labels.described()):
        now = label if labels.current is None else int(labels.current[label])
        yield {
            "id": label,
            "label": name,
            "documents": counts[label],
            "alt": list(alt),
            "uri": labels.concept(label).uri,
            "description": description,
            "state": "in use" if are_in_use[label] else state_of(labels, label).split()[0],
            "into": labels.names[now] if now not in (label, -1) else None,
        }


def has_text(row: dict[str, Any], text: str) -> bool:
    """Return whether a label's name, URI, description or a synonym has a text, regardless of case."""
    texts = [row["label"], row["uri"] or "", row["description"] or "", *row["alt"]]
    return any(text.casefold() in each.casefold() for each in texts)


def by_name(row: dict[str, Any]) -> str:
    """Return the key of the alphabetical order."""
    return str(row["label"]).casefold()


def by_documents(row: dict[str, Any]) -> tuple[int, str]:
    """Return the key of the order by documents, most first, and then by name."""
    return -row["documents"], by_name(row)


def label_line(row: dict[str, Any]) -> str:
    """Return the line of a label."""
    state = {"in use": "", "merged": f"  -> {row['into']}", "retired": "  (retired)"}[row["state"]]
    alt = f"  ({', '.join(row['alt'])})" if row["alt"] else ""
    return f"{row['documents']:>9,}  {row['label']}{state}{alt}"


def add(
    model: ModelPath,
    name: Name = None,
    examples: Annotated[
        Path | None, Option(metavar="FILE", help="Documents that have the label; they may have others too.")
    ] = None,
    alt: Annotated[list[str] | None, Option(metavar="SYNONYM", help="A further name. Repeatable.")] = None,
    description: Annotated[str | None, Option(metavar="TEXT", help="What the label is for; '' removes it.")] = None,
    from_file: FromFile = None,
    *,
    saving: SavingOptions,
    reading: Reading,
) -> None:
    """Add a label, by its name and synonyms, by documents, or both; or bring a retired or merged one back.

    A known label gets further synonyms and documents, or another description.
    Methods that read names (blend, lexical) answer a new label at once.
    """
    from labelspace.tagger.label_edits import LabelEdit

    def wanted(tagger: "Tagger") -> list[LabelEdit]:
        documents = None
        if examples is not None:
            from labelspace.experiment.label_examples import read_examples

            documents = read_examples(tagger, examples, reading).inputs
        return [LabelEdit("add", name or "", alt=tuple(alt or ()), description=description, examples=documents)]

    if from_file is not None and (examples is not None or alt or description is not None):
        rule = "--examples, --alt and --description are for one label, but --from has several"
        raise ParameterError(f"{rule}; leave one out")
    make_edits(model, "add", [name], wanted, from_file, saving, data=examples)


def retire(
    model: ModelPath,
    names: Annotated[list[str] | None, Argument(metavar="[NAME]...", help="Labels, by their names or URIs.")] = None,
    from_file: FromFile = None,
    *,
    saving: SavingOptions,
) -> None:
    """Stop answering labels; `labels add` brings one back."""
    from labelspace.tagger.label_edits import LabelEdit

    edits = [LabelEdit("retire", name) for name in names or []]
    make_edits(model, "retire", names or [None], lambda tagger: edits, from_file, saving)


def rename(
    model: ModelPath,
    name: Name = None,
    new: Annotated[str | None, Argument(metavar="[NEW]", help="The new name.")] = None,
    from_file: FromFile = None,
    *,
    saving: SavingOptions,
) -> None:
    """Give a label another name; the name before becomes a synonym."""
    from labelspace.tagger.label_edits import LabelEdit

    edits = [LabelEdit("rename", name or "", other=new)]
    make_edits(model, "rename", [name, new], lambda tagger: edits, from_file, saving)


def merge(
    model: ModelPath,
    name: Name = None,
    into: Annotated[str | None, Argument(metavar="[INTO]", help="The label that is answered in its place.")] = None,
    from_file: FromFile = None,
    *,
    saving: SavingOptions,
) -> None:
    """Answer a label as another one, which gets its names as synonyms."""
    from labelspace.tagger.label_edits import LabelEdit

    edits = [LabelEdit("merge", name or "", other=into)]
    make_edits(model, "merge", [name, into], lambda tagger: edits, from_file, saving)


def edit(
    model: ModelPath,
    from_file: Annotated[
        Path,
        Option(
            "--from",
            metavar="FILE",
            help="CSV, TSV or JSON lines with the columns action (add, retire, rename, merge), label, alt, "
            "description, new, into.",
        ),
    ],
    *,
    saving: SavingOptions,
) -> None:
    """Make many edits of several kinds at once, all or none, as one version."""
    make_edits(model, None, [None], lambda tagger: [], from_file, saving)


def split(
    model: ModelPath,
    name: Annotated[str, Argument(metavar="NAME", help="The label, by its name or URI.")],
    examples: Annotated[Path, Option(metavar="FILE", help="Documents that are labeled with the new names.")],
    *,
    saving: SavingOptions,
    reading: Reading,
) -> None:
    """Replace a label by new ones, which are learned from documents; it is retired."""
    from labelspace.experiment.label_examples import examples_by_label
    from labelspace.features.views import n_rows

    def made(tagger: "Tagger") -> list[str]:
        documents = examples_by_label(tagger, examples, reading)
        tagger.split_label(name, documents)
        counted = [f"{new!r} ({n_rows(some):,} documents)" for new, some in documents.items()]
        return [f"split {name!r} into {', '.join(counted[:-1])} and {counted[-1]}"]

    save_edits(model, made, saving, data=examples)


def make_edits(
    model: Path,
    action: "Action | None",
    given: Sequence[str | None],
    wanted: "Callable[[Tagger], list[LabelEdit]]",
    from_file: Path | None,
    saving: Saving,
    data: Path | None = None,
) -> None:
    """Make the edits of the arguments, which must all be given, or those of a file."""
    from labelspace.data.label_edit_files import read_edit_rows
    from labelspace.tagger.label_edits import edit_labels, edits_of_rows

    if from_file is not None and any(each is not None for each in given):
        raise ParameterError(f"either arguments or --from name labels, but both do: {given[0]!r}; leave one out")
    if from_file is None and None in given:
        raise ParameterError(f"labels {action} needs {len(given)} names, or --from FILE; write: {USAGE[action or '']}")
    rows = None if from_file is None else edits_of_rows(read_edit_rows(from_file), action)
    save_edits(model, lambda tagger: edit_labels(tagger, wanted(tagger) if rows is None else rows), saving, data)


USAGE = {
    "add": "labelspace labels add MODEL NAME",
    "retire": "labelspace labels retire MODEL NAME",
    "rename": "labelspace labels rename MODEL NAME NEW",
    "merge": "labelspace labels merge MODEL NAME INTO",
}


def save_edits(model: Path, edit: "Callable[[Tagger], list[str]]", saving: Saving, data: Path | None = None) -> None:
    """Edit a saved model, and print what changed."""
    from labelspace import store
    from labelspace.tagger.label_edits import edit_saved
    from labelspace.tagger.lineage import Origin

    origin = Origin() if data is None else Origin.of(data)
    n_kept = store.KEPT if saving.keep is None else saving.keep
    changes, tagger, made = edit_saved(model, edit, origin=origin, n_kept=n_kept, dry_run=saving.dry_run)
    n_in_use = int(tagger.labels_.in_use.sum())
    if saving.as_json:
        values = made.to_json()
        version = {"version": None if saving.dry_run else values.pop("number")}
        values.pop("number", None)
        print_json({"model": str(model), "changes": changes, **version, "n_in_use": n_in_use, **values})
        return
    if len(changes) > 1:
        for line in changes[:SHOWN]:
            print_line(line)
        if len(changes) > SHOWN:
            print_line(f"and {len(changes) - SHOWN:,} more")
    subject = changes[0] if len(changes) == 1 else f"{len(changes):,} edits"
    print_line(f"{subject}: {n_in_use:,} labels in use; {saved_as(model, made.number, saving.dry_run)}")


def saved_as(model: Path, number: int, dry_run: bool) -> str:
    """Say which version a model is now."""
    return f"nothing is written to {model}: --dry-run" if dry_run else f"{model} is version {number}"
