"""Checks of data before a model learns from them: each asks one thing, gives the reason, and a remedy."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from labelspace.data.checks import document_checks, label_checks
from labelspace.data.checks.base import SEVERITIES, TEXTS, Check, Documents, Finding, Found
from labelspace.errors import DataError, ParameterError

# What finds the cases of the check NAME is called find_NAME.
_FINDERS: dict[str, Any] = {**vars(document_checks), **vars(label_checks)}
_ALL = {name: Check(name=name, find=_FINDERS.get(f"find_{name}"), **texts) for name, texts in TEXTS.items()}
CHECKS: Mapping[str, Check] = {name: check for name, check in _ALL.items() if check.find is not None}
"""All checks that need no training."""
DEEP_CHECKS: Mapping[str, Check] = {name: check for name, check in _ALL.items() if check.find is None}
"""Checks of labels against what a model says; ``experiment.label_errors`` makes them."""


@dataclass(frozen=True)
class Report:
    """The findings, worst first; the checks that found nothing; and those that could not be made, with the reason."""

    findings: Sequence[Finding]
    passed: Sequence[str]
    skipped: Mapping[str, str]


def selected(only: Iterable[str] = (), skip: Iterable[str] = (), names: Iterable[str] = CHECKS) -> list[str]:
    """Return the names of the checks to make; raise ParameterError for an unknown name.

    >>> selected(only=["repeated_ids"])
    ['repeated_ids']
    """
    names, only, skip = list(names), list(only), set(skip)
    for name in (*only, *skip):
        if name not in names:
            close = get_close_matches(name, names, n=1)
            remedy = f"did you mean {close[0]}?" if close else f"they are {', '.join(names)}"
            rule = "only and skip take names of checks"
            raise ParameterError(f"{rule}, but there is no {name!r}; {remedy}", options=["only", "skip"])
    return [name for name in names if (not only or name in only) and name not in skip]


def run_checks(documents: Documents, names: Iterable[str] = CHECKS) -> Report:
    """Make these checks and report what they find."""
    findings, passed, skipped = [], [], {}
    for name in names:
        find = CHECKS[name].find
        try:
            found = None if find is None else find(documents)
        except DataError as error:  # a limit: the others may still say something
            skipped[name] = str(error)
            continue
        if found is None or not found.count:
            passed.append(name)
        else:
            findings.append(CHECKS[name].finding(found, documents.parts))
    return Report(worst_first(findings), passed, skipped)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity, then by the share of documents or labels that is concerned."""

    def badness(finding: Finding) -> tuple[int, float]:
        return SEVERITIES.index(finding.severity), -finding.found.count / max(finding.found.total, 1)

    return sorted(findings, key=badness)


__all__ = ["CHECKS", "DEEP_CHECKS", "Documents", "Finding", "Found", "Report", "run_checks", "selected", "worst_first"]
