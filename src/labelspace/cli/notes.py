"""Notes on stderr: what a user should know and would not see in the output."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime
from math import isinf
from typing import TYPE_CHECKING, Any

from labelspace.cli.exit_codes import is_interrupt, print_error

if TYPE_CHECKING:  # heavy imports happen inside the functions, so that --help stays fast
    from collections import Counter
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from labelspace.data.read_options import ReadOptions
    from labelspace.data.source import Source
    from labelspace.experiment import Plan, Recipe
    from labelspace.labels.selection import Selection
    from labelspace.labels.tag_options import TagOptions
    from labelspace.tagger import Tagger
    from labelspace.types import Columns, Dataset

SEEN = 5.0  # percent of evaluated documents from training; honest splits have a few duplicates too
MIN_ONCE, ONCE = 50, 0.9  # labels that occur once, and their share: they may be lists of names


def note(message: str) -> None:
    """Print one line on stderr."""
    print_error(f"note: {message}")


def note_label_files(path: Path, columns: Columns | None = None) -> None:
    """Say which label files are read with a data file, and which in its folder are not."""
    for line in on_label_files(path, columns):
        note(line)


def on_label_files(path: Path, columns: Columns | None = None) -> list[str]:
    """Return the lines of ``note_label_files``; none for a table, which has no label files."""
    from labelspace.data.label_files import are_labels, label_files, own_file, unread_fields, unread_label_files

    if columns is not None:
        return []
    files = [file for file in label_files(path) if file != path]
    read = [f"labels of {path.name} are those of {' and '.join(map(str, files))}"] if files else []
    not_read = [(file, unread_fields(file)) for file in label_files(path) if are_labels(file)]
    read += [f"{file} has fields that are not read: {', '.join(names)[:80]}" for file, names in not_read if names]
    return read + [
        f"{file} is not read with {path.name}; if it belongs to it, name it {own_file(path, file.name).name}"
        for file in unread_label_files(path)
    ]


def note_selection(selection: Selection | None, quiet: bool = False) -> None:
    """Say which labels are allowed, and which options named none."""
    if selection is not None and not quiet:
        for line in [*selection.notes, selection.summary]:
            note(line)


def note_preset(recipe: Recipe) -> None:
    """Say which parameters a preset sets."""
    if recipe.preset is not None:
        model = recipe.tagger().model
        preset = model.presets[recipe.preset]
        moot = model.without_effect({**model.get_params(), **preset, **recipe.params})
        listed = ", ".join(f"{key}={getattr(model, key)}" for key in preset if key not in moot)
        listed = listed or "our defaults"
        without = f"; without effect then: {', '.join(moot)}" if moot else ""
        note(f"preset {recipe.preset} of {model.name}, with what --set says: {listed}{without}")


def note_plan(plan: Plan, is_first: bool) -> None:
    """Say what a training with limits will do, and what it leaves out."""
    if is_first:
        note(f"plan: {plan}")
    for name, reason in plan.left_out.items():
        note(f"left out: {name}{f', since {reason}' if reason else ''}")


def note_documents(documents: Dataset) -> None:
    """Say what training documents lack, and what is strange about their labels."""
    n, without = len(documents), int((documents.Y.getnnz(axis=1) == 0).sum())
    if without:
        note(f"{without:,} of {n:,} training documents have no label")
    empty = sum(not text.strip() for text in documents.texts or ())
    if empty:
        note(f"{empty:,} of {n:,} training documents are empty")
    note_labels(documents)


def note_labels(documents: Dataset) -> None:
    """Say if labels differ only in case or spaces, or nearly every label occurs once."""
    from labelspace.data.label_mapping import spelling_groups

    names = documents.labels.names
    groups = spelling_groups(documents.labels) if documents.labels.are_named else []
    if groups:
        first = " and ".join(repr(names[label]) for label in groups[0][:2])
        count = sum(len(group) - 1 for group in groups)
        remedy = "--normalize-labels merges them, and `labelspace data check` finds more spellings"
        note(
            f"{count:,} of {len(names):,} labels differ from another only in case or spaces, such as {first}; {remedy}"
        )
    counts = documents.Y.getnnz(axis=0)
    n_used, n_once = int((counts > 0).sum()), int((counts == 1).sum())
    if n_once >= MIN_ONCE and n_once > ONCE * n_used:
        remedy = "if a label is a list of names, say what separates them: --label-separator"
        note(f"{n_once:,} of {n_used:,} labels occur once; {remedy}")


@contextmanager
def noting_interrupt(message: str, kept: Path | None = None) -> Iterator[None]:
    """Say how to resume if the block is interrupted; with ``kept`` only if that folder of finished work exists."""
    try:
        yield
    except BaseException as error:
        if is_interrupt(error) and (kept is None or kept.is_dir()):
            note(message)
        raise


def open_noted(data: Path, reading: ReadOptions, quiet: bool) -> Source:
    """Open data, and unless quiet say which label files are read with them."""
    from labelspace.data.source import open_source

    source = open_source(data, options=reading)
    if not quiet:
        note_label_files(source.train_path, reading.columns)
    return source


def note_figures(figures: Mapping[str, Any]) -> None:
    """Say what limits the meaning of the figures of an evaluation."""
    seen, unknown = figures.get("seen_in_training"), figures.get("n_unknown_labels")
    if seen is not None and seen >= SEEN:
        meaning = "the figures say how well the model remembers, not how well it tags"
        note(f"about {seen:.0f} % of these documents were in the training data; {meaning}")
    if figures.get("n_filtered_pairs"):
        note(f"{figures['n_filtered_pairs']:,} pairs of a document and a label are filtered, and do not count")
    if unknown:
        note(f"{unknown:,} labels of these documents are unknown to the model, and count as missed")


def model_at(out: Path) -> str | None:
    """Describe the model in a folder, which a new one would replace; None if there is no model."""
    from labelspace import store
    from labelspace.errors import ModelError

    manifest = out / "model.json"
    if not manifest.is_file():
        return None
    saved = f"saved {datetime.fromtimestamp(manifest.stat().st_mtime):%Y-%m-%d %H:%M}"
    try:
        about = store.read_manifest(out)
        return f"{about['method']}, {about['model']['state']['n_labels_']['value']:,} labels, {saved}"
    except (ModelError, LookupError, TypeError, ValueError):
        return f"not readable, {saved}"


def note_problems(problems: Counter[str], n: int) -> None:
    """Say in how many of n documents the model reads nothing."""
    from labelspace.tagger.answers import PLURAL

    for problem, count in problems.items():
        note(f"{count:,} of {n:,} documents {PLURAL[problem]}; their labels are those of every such document")


def note_precision(tagger: Tagger, options: TagOptions) -> None:
    """Say what --precision keeps, or that it cannot be reached."""
    precision, consistent = options.get("precision"), options.get("consistent", False)
    if precision is None:
        return
    found = tagger.precision_threshold(precision, consistent)
    if found.confidence is None:
        highest = tagger.precision_thresholds(consistent).highest
        shown = "none was shown" if highest is None else f"the highest shown is {highest:g}"
        reached = "reaches" if isinf(found.threshold) else "was shown to reach"
        note(f"no threshold {reached} a precision of {precision:g} on held-out documents; {shown}")
    if not isinf(found.threshold):
        kept = f"kept what has a probability of at least {found.threshold:.3g}"
        share, coverage = f"{100 * precision:g} % of such labels", f"coverage {100 * found.coverage:.0f} %"
        by_estimate = ", by estimate" if found.confidence is None else ""
        note(f"{kept}: {share} were right on held-out documents{by_estimate} ({coverage})")
