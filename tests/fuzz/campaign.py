"""The fuzzing campaign: ``python tests/fuzz/campaign.py --kind models --cases 10000 --boundscheck``.

Mutates small models, data files and checkpoints, and lets worker processes load and use them. Whatever does not answer
or refuse in one line is a finding: the exit code is then 1. ``--replay FILE`` runs the findings of a file again.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.fuzz.bases import BY_KIND, make_bases  # noqa: E402 - found on the path above
from tests.fuzz.runner import HANG_SECONDS, Case, Result, Worker, cases  # noqa: E402
from tests.fuzz.targets.outcome import FINDINGS, HANG, OUTCOMES  # noqa: E402

KEPT = ROOT / ".fuzz"  # kernels compiled with bounds checking, and findings
REPORT_SECONDS = 15.0
BOUNDSCHECK = "NUMBA_BOUNDSCHECK"


def main() -> int:
    """Parse, run, print the table; the exit code."""
    options = _options()
    if options.make:
        make_bases(options.kind, Path(options.make), options.method)
        return 0
    KEPT.mkdir(exist_ok=True)
    findings_file = Path(options.findings or KEPT / "findings.jsonl")
    replayed = _read_cases(Path(options.replay)) if options.replay else None
    kinds = list(BY_KIND) if options.kind == "all" else [options.kind]
    if replayed is not None:
        kinds = sorted({case.kind for case in replayed})
    results: list[Result] = []
    with findings_file.open("w", encoding="utf-8") as file:  # as they come: hours may end by Ctrl-C
        for kind in kinds:
            given = None if replayed is None else [case for case in replayed if case.kind == kind]
            results += _campaign(kind, options, len(kinds), given, file)
    findings = [result for result in results if result.outcome in FINDINGS]
    print(_table(results))
    for text, count in Counter(f"{r.outcome}: {_signature(r)}" for r in findings).most_common(60):
        print(f"{count:6} {text}")
    print(f"{len(findings)} findings" + (f" in {findings_file}; run them again with --replay" if findings else ""))
    return 1 if findings else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", choices=[*BY_KIND, "all"], default="all", help="what is mutated")
    parser.add_argument("--cases", type=int, default=10_000, help="of each kind")
    parser.add_argument("--minutes", type=float, default=None, help="stop after so many, of all kinds")
    parser.add_argument("--seed", type=int, default=0)
    checked = os.environ.get(BOUNDSCHECK) == "1"
    parser.add_argument("--boundscheck", action="store_true", default=checked, help="kernels check every index")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--method", default=None, help="only bases of this method or format, or one base")
    parser.add_argument("--mutator", default=None, help="only this one, and maybe others after it")
    parser.add_argument("--findings", default=None, help="file for the findings; default .fuzz/findings.jsonl")
    parser.add_argument("--replay", default=None, metavar="FINDINGS", help="run the cases of a file of findings")
    parser.add_argument("--hang", type=float, default=HANG_SECONDS, help="seconds after which a case hangs")
    parser.add_argument("--make", default=None, help=argparse.SUPPRESS)
    return parser.parse_args()


def _campaign(
    kind: str, options: argparse.Namespace, n_kinds: int, given: list[Case] | None, findings: TextIO
) -> list[Result]:
    """All cases of one kind."""
    with tempfile.TemporaryDirectory(prefix="labelspace-fuzz-bases-") as folder:
        started = time.monotonic()
        # In a process of its own, which compiles without bounds checking: training kernels are not under test.
        command = [sys.executable, __file__, "--kind", kind, "--make", folder]
        plain = {key: value for key, value in os.environ.items() if key != BOUNDSCHECK}
        subprocess.run(command + (["--method", options.method] if options.method else []), check=True, env=plain)
        names = sorted(path.name for path in Path(folder).iterdir())
        if not names:
            raise SystemExit(f"--method must be the start of a base, but no base of {kind} is {options.method!r}")
        print(f"{kind}: {len(names)} bases in {time.monotonic() - started:.0f} s", flush=True)
        todo = iter(given or islice(cases(kind, names, options.seed, options.mutator), options.cases))
        pool = _Pool(kind, Path(folder), todo, options, findings)
        return pool.run(None if options.minutes is None else 60 * options.minutes / n_kinds)


def _bounds_checking() -> dict[str, str]:
    """Numba compiles kernels that check every index, to a folder of their own: its cache tells not which is which.

    Nor does it see that a kernel calls one that changed, so each state of the sources has its folder.
    """
    sources = sorted((ROOT / "src" / "labelspace" / "kernels").glob("*.py"))
    kernels = KEPT / f"kernels-{zlib.crc32(b''.join(path.read_bytes() for path in sources)):08x}"
    for other in KEPT.glob("kernels-*"):
        if other != kernels:
            shutil.rmtree(other, ignore_errors=True)
    return {BOUNDSCHECK: "1", "NUMBA_CACHE_DIR": str(kernels)}


class _Pool:
    """Worker processes that share one stream of cases."""

    def __init__(
        self, kind: str, bases: Path, todo: Iterator[Case], options: argparse.Namespace, findings: TextIO
    ) -> None:
        self.kind, self.bases, self.todo, self.options, self.findings = kind, bases, todo, options, findings
        self.results: list[Result] = []
        self.errors: list[BaseException] = []
        self.lock, self.warming = threading.Lock(), threading.Lock()
        self.seconds: float | None = None
        self.started = 0.0
        self.environment = _bounds_checking() if options.boundscheck else {}

    def run(self, seconds: float | None) -> list[Result]:
        """Run until there are no more cases, or no more time."""
        self.seconds = seconds
        threads = [threading.Thread(target=self._work) for _ in range(self.options.jobs)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(REPORT_SECONDS / len(threads))
            self._report()
        if self.errors:
            raise self.errors[0]
        return self.results

    def _work(self) -> None:
        try:
            with ExitStack() as stack:
                with self.warming:  # one after the other: the next finds the compiled kernels
                    worker = stack.enter_context(Worker(self.kind, self.bases, self.environment))
                    worker.wait_until_warm()
                self.started = self.started or time.monotonic()
                while (case := self._next()) is not None:
                    result = worker.run(case, self.options.hang)
                    if result.outcome == HANG:  # the machine may have been busy: a hang is one that hangs twice
                        result = worker.run(case, self.options.hang)
                    self._keep(result)
        except BaseException as error:  # noqa: BLE001 - raised again by ``run``
            self.errors.append(error)

    def _keep(self, result: Result) -> None:
        with self.lock:
            self.results.append(result)
            if result.outcome in FINDINGS:
                self.findings.write(json.dumps(result.row()) + "\n")
                self.findings.flush()

    def _next(self) -> Case | None:
        with self.lock:
            if self.errors or (self.seconds is not None and time.monotonic() > self.started + self.seconds):
                return None
            return next(self.todo, None)

    def _report(self) -> None:
        if not self.started:
            print(f"{self.kind}: compiling", flush=True)
            return
        with self.lock:
            counted = Counter(result.outcome for result in self.results)
        listed = ", ".join(f"{counted[name]} {name}" for name in OUTCOMES if counted[name])
        rate = counted.total() / (time.monotonic() - self.started)
        print(f"{self.kind}: {counted.total()} cases, {rate:.0f}/s: {listed}", flush=True)


def _table(results: list[Result]) -> str:
    """Outcomes by kind and method."""
    rows: dict[str, Counter[str]] = {}
    for result in results:
        for name in (f"{result.case.kind} {result.case.base.partition('-')[0]}", "all"):
            rows.setdefault(name, Counter())[result.outcome] += 1
    width = max(map(len, [*rows, "kind"]))
    lines = ["".join([" " * width, f"{'cases':>9}", *(f"{name:>15}" for name in OUTCOMES)])]
    for name in [*sorted(set(rows) - {"all"}), *(["all"] if rows else [])]:
        counted = rows[name]
        lines.append("".join([f"{name:{width}}", f"{counted.total():9}", *(f"{counted[o]:15}" for o in OUTCOMES)]))
    return "\n".join(lines)


def _signature(result: Result) -> str:
    """What findings of one cause share: the error and its innermost place."""
    error, _, places = result.detail.partition(" at ")
    place = places.partition(" < ")[0]
    kind = f"{error.partition(':')[0][:60]} {place}" if place else result.detail[:110]
    return f"{result.case.base.partition('-')[0]} {kind}"


def _read_cases(path: Path) -> list[Case]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Case(**{field.name: row[field.name] for field in fields(Case)}) for row in rows]


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    sys.exit(main())
