"""What a check is, and what it finds."""

import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from labelspace.types import PATH_SEPARATOR

if TYPE_CHECKING:
    from labelspace.data.checks.documents import Documents

TEXTS: dict[str, dict[str, Any]] = tomllib.loads(
    resources.files(__package__).joinpath("checks.toml").read_text(encoding="utf-8")
)
"""What each check says, by its name."""
HIGH, MEDIUM, LOW = "high", "medium", "low"
SEVERITIES = (HIGH, MEDIUM, LOW)
# Share below which the severity is the next lower one: one leaked document of a thousand changes no figure. A larger
# share hides real findings, a smaller one alarms about single documents.
RARE = {HIGH: 0.01, MEDIUM: 0.001, LOW: 0.0}
N_EXAMPLES = 3
MAX_SHOWN = 70  # characters of a text


@dataclass(frozen=True)
class Example:
    """One case: its description, and the places in the files, if known."""

    what: str
    where: tuple[str, ...] = ()  # file:line

    def to_json(self) -> dict[str, Any]:
        """Return the example as plain values."""
        return {"what": self.what, "where": list(self.where)}


@dataclass(frozen=True)
class Found:
    """What a check has found: how many, out of how many, and a few examples."""

    count: int
    total: int
    examples: tuple[Example, ...] = ()
    note: str = ""  # what else there is to say


@dataclass(frozen=True)
class Check:
    """A check of the data; ``find`` makes it."""

    name: str
    severity: str
    title: str  # of what was found, after "1 of 10 "; {held_out} and {learned_from} stand for splits
    why: str
    remedy: str
    find: "Callable[[Documents], Found | None] | None" = None  # None where a model must be trained
    fixed: bool = False  # whether ``clean`` fixes it

    def finding(self, found: Found, splits: Collection[str] = ("train", "dev", "test")) -> "Finding":
        """Return what to report of data that have these splits."""
        held_out, learned_from = (
            " and ".join(name for name in names if name in splits) for names in (("dev", "test"), ("train", "dev"))
        )
        named = replace(self, title=self.title.format(held_out=held_out, learned_from=learned_from))
        rare = found.count < RARE[self.severity] * found.total
        return Finding(named, found, SEVERITIES[SEVERITIES.index(self.severity) + rare])


@dataclass(frozen=True)
class Finding:
    """A check that has found something, and how severe it is in these data."""

    check: Check
    found: Found
    severity: str

    def to_json(self, command: str) -> dict[str, Any]:
        """Return the finding as plain values; ``command`` is the command that fixes what can be fixed."""
        check, found = self.check, self.found
        return {
            "check": check.name,
            "severity": self.severity,
            "count": found.count,
            "of": found.total,
            "title": check.title,
            "examples": [example.to_json() for example in found.examples],
            "note": found.note,
            "why": check.why,
            "remedy": f"{check.remedy}: {command} --only {check.name}" if check.fixed else check.remedy,
            "fixed_by_fix": check.fixed,
        }


def shown(text: str, length: int = MAX_SHOWN) -> str:
    r"""Return the start of a text on one line.

    >>> shown("two\nlines"), shown("much too long", 8)
    ('two lines', 'much to…')
    """
    line = " ".join(text[: 4 * length].split())
    return line if len(line) <= length else line[: length - 1] + "…"


def shown_name(name: str, length: int = MAX_SHOWN) -> str:
    """Return a label name on one line; of a long path, its last steps.

    >>> shown_name("food > bread > rye", 15)
    '… > bread > rye'
    """
    if PATH_SEPARATOR not in name or len(name) <= length:
        return shown(name, length)
    steps = name[-length:].partition(PATH_SEPARATOR)[2] or name.rpartition(PATH_SEPARATOR)[2]
    return shown(f"…{PATH_SEPARATOR}{steps}", length)
