"""What a check of data has found: for a terminal, and as plain values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from labelspace.data.checks import Documents, Finding, Report
from labelspace.data.checks.base import HIGH, LOW, MEDIUM, Example
from labelspace.data.cleaning import Cleaned
from labelspace.report.tables import plain
from labelspace.types import Dataset

MIN_COUNT = 10  # of a share that is shown in percent
STYLES = {HIGH: "bold red", MEDIUM: "yellow", LOW: "cyan"}


def check_json(data: str, documents: Documents, report: Report, command: str) -> dict[str, Any]:
    """Return the findings as plain values; ``command`` fixes what can be fixed."""
    return {
        "data": data,
        "documents": {name: len(part) for name, part in documents.parts.items()},
        "n_labels": len(documents.labels),
        "checks": [finding.to_json(command) for finding in report.findings],
        "passed": list(report.passed),
        "skipped": dict(report.skipped),
    }


def check_report(data: str, documents: Documents, report: Report, command: str) -> Group:
    """Return the findings, worst first; what was not found, in one line; and the command that fixes them."""
    sizes = [f"{len(part):,} {name}" for name, part in documents.parts.items()]
    parts: list[Any] = [plain(f"{data}: {', '.join(sizes)} documents, {len(documents.labels):,} labels", "bold")]
    parts += [Padding(_finding(finding), (1, 0, 0, 0)) for finding in report.findings]
    lines = []
    if report.passed:
        n, none = len(report.passed), "no problem" if not report.findings else "nothing"
        lines.append(plain(f"{n} {'check' if n == 1 else 'checks'} found {none}: {', '.join(report.passed)}"))
    lines += [plain(f"{name} was not made: {reason}") for name, reason in report.skipped.items()]
    fixed = [finding.check.name for finding in report.findings if finding.check.fixed]
    if fixed:
        lines.append(plain(f"To fix {', '.join(fixed)} in a copy:"))
        lines.append(Text("  " + plain(command).plain, "bold", no_wrap=True, overflow="ignore"))  # to be copied
    return Group(*parts, Padding(Group(*lines), (1, 0, 0, 0)))


def _finding(finding: Finding) -> Table:
    """Return a finding: severity at the left, and title, examples, reason and remedy next to it."""
    check, found = finding.check, finding.found
    title = plain(f"{found.count:,} of {found.total:,} {check.title}", "bold")
    heading = Text.assemble((check.name, STYLES[finding.severity]), (_share(found.count, found.total), "dim"))
    rows = Table.grid(padding=(0, 2))
    rows.add_column(width=4, style="dim")
    rows.add_column(overflow="fold")
    if found.note:
        rows.add_row("note", plain(found.note))
    for at, example in enumerate(found.examples):
        rows.add_row("" if at else "e.g.", _example(example))
    if len(found.examples) < found.count and found.examples:
        rows.add_row("", Text(f"… {found.count - len(found.examples):,} more", "dim"))
    rows.add_row("why", plain(check.why))
    rows.add_row("do", plain(f"{check.remedy} (--fix does it)" if check.fixed else check.remedy))
    table = Table.grid(padding=(0, 2))
    table.add_column(width=6)
    table.add_column(overflow="fold")
    table.add_row(Text(finding.severity, STYLES[finding.severity]), Group(heading, title, rows))
    return table


def _share(count: int, total: int) -> str:
    """Return the share in percent if it says more than the two numbers; else an empty text."""
    if count < MIN_COUNT or not total:
        return ""
    percent = 100 * count / total
    return f"  {percent:.0f} %" if percent >= 9.5 else f"  {percent:.1g} %"


def _example(example: Example) -> Text:
    places: list[str] = []
    for place in example.where:  # the name of one file once
        file, _, line = place.rpartition(":")
        places.append(line if places and places[0].rpartition(":")[0] == file else place)
    where = " = ".join(places)
    return Text.assemble(plain(where, "green"), "  " if where else "", plain(example.what))


def changes_json(cleaned: Cleaned, written: Mapping[Path, Dataset]) -> dict[str, Any]:
    """Return what was changed and written as plain values."""
    sizes = {str(path): len(part) for path, part in written.items()}
    return {"changes": cleaned.changes, "merged_labels": cleaned.merged, "written": sizes}


def changes_lines(cleaned: Cleaned, written: Mapping[Path, Dataset], shown: int = 5) -> list[str]:
    """Return what was changed and written as lines of text."""
    lines = [
        f"{check}: " + ", ".join(_counted(number, what) for what, number in counts.items())
        for check, counts in cleaned.changes.items()
    ]
    renamed = [f"  {old} -> {new}" for old, new in cleaned.merged.items()]
    lines += renamed[:shown] + ([f"  … {len(renamed) - shown:,} more; --json lists all"] if renamed[shown:] else [])
    lines = lines or ["nothing to fix was found; the copy has the same documents and labels"]
    sizes = (f"{path}: {len(part):,} documents, {len(part.labels):,} labels" for path, part in written.items())
    return [*lines, *sizes]


def _counted(number: int, what: str) -> str:
    """Return a number of things, whose first word is a plural.

    >>> _counted(1, "labels merged"), _counted(2_000, "texts of train")
    ('1 label merged', '2,000 texts of train')
    """
    things, space, rest = what.partition(" ")
    return f"{number:,} {things.removesuffix('s') if number == 1 else things}{space}{rest}"
