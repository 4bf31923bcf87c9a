"""A campaign of seconds, the same in each run; ``make fuzz`` runs one of hours."""

from collections import Counter
from itertools import islice
from pathlib import Path

from tests.fuzz.mutators import BY_KIND
from tests.fuzz.runner import Worker, cases
from tests.fuzz.targets.outcome import ANSWERED, FINDINGS, REFUSED

SEED = 1
HANG_SECONDS = 60.0  # the machine may be busy: only what never ends is a hang here
ENOUGH = 10  # findings


def check_no_findings(kind: str, n_cases: int, folder: Path) -> None:
    """Every base and every mutator occurs, and whatever is read answers or refuses in one line."""
    results, findings = [], []
    with Worker(kind, folder) as worker:
        worker.wait_until_warm()
        bases = sorted(path.name for path in folder.iterdir())
        for case in islice(cases(kind, bases, SEED), n_cases):
            results.append(worker.run(case, HANG_SECONDS))
            if results[-1].outcome in FINDINGS:
                findings.append(f"{case.base} {results[-1].mutation}: {results[-1].outcome}: {results[-1].detail}")
            if len(findings) == ENOUGH:
                break
    assert not findings, "\n".join(findings)
    assert {result.case.base for result in results} == set(bases)
    assert {result.case.mutator for result in results} == set(BY_KIND[kind])
    counted = Counter(result.outcome for result in results)
    assert min(counted[ANSWERED], counted[REFUSED]) > n_cases / 10, counted
