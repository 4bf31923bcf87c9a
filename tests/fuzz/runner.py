"""Give cases to worker processes, with a watchdog: a death or a hang is an outcome, and the next case goes on."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Self

from tests.fuzz.mutators import BY_KIND
from tests.fuzz.targets.outcome import CRASH, HANG

WORKER = Path(__file__).with_name("worker.py")
WARM_SECONDS = 1800.0  # to import, and to compile every kernel with bounds checking for the first time
HANG_SECONDS = 10.0
OFTEN = {
    "set_elements": 6, "replace_value": 3, "change_number": 3, "change_parameter": 3, "shift": 2, "resize": 2,
    "reorder": 2, "duplicate": 2, "change_tokens": 4, "flip_bytes": 2, "checkpoint_values": 4, "transplant_array": 2,
}  # fmt: skip
"""Mutators that find the most, how often for each time of another."""


@dataclass(frozen=True)
class Case:
    """Which base is mutated how, with which other one as the donor of parts; the seed decides the rest."""

    kind: str
    base: str
    donor: str
    mutator: str
    seed: str


@dataclass(frozen=True)
class Result:
    """What came of a case."""

    case: Case
    outcome: str
    detail: str
    mutation: str
    seconds: float

    def row(self) -> dict[str, Any]:
        """As one object, to write and to replay."""
        return {**asdict(self.case), "outcome": self.outcome, "detail": self.detail, "mutation": self.mutation}


def cases(kind: str, bases: list[str], seed: int, mutator: str | None = None) -> Iterator[Case]:
    """Cases without end: each mutator in turn, or one, each time with another base."""
    mutators = [mutator] if mutator else [name for name in BY_KIND[kind] for _ in range(OFTEN.get(name, 1))]
    for number in count():
        passes, at = divmod(number, len(mutators))
        base, donor = bases[(at + passes) % len(bases)], Random(f"{seed}:{number}").choice(bases)
        yield Case(kind, base, donor, mutators[at], f"{seed}:{number}")


class Worker:
    """A worker process; ``with Worker(...) as worker: worker.run(case)``."""

    def __init__(self, kind: str, bases: Path, environment: dict[str, str] | None = None) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="labelspace-fuzz-")
        self._errors = tempfile.TemporaryFile()
        # One thread each: cases run side by side in processes, and a fork must find no threads.
        one = dict.fromkeys(("LABELSPACE_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), kind, str(bases), self._scratch.name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0,
            env={**os.environ, "NUMBA_BOUNDSCHECK": "0", **one, **(environment or {})},
        )  # fmt: skip
        self.pid = 0
        self._pending = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.stdin.close()
        if error is not None and self.pid:
            self._kill(signal.SIGKILL)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()
        self._scratch.cleanup()

    def wait_until_warm(self, seconds: float = WARM_SECONDS) -> None:
        """Wait until all is imported and compiled."""
        while not self.pid:
            message = self._message(seconds)
            if message is None or "failed" in message:
                raise RuntimeError(f"the worker must get ready, but did not: {message}\n{self._new_errors()}")
            self.pid = message.get("pid", 0)

    def run(self, case: Case, seconds: float = HANG_SECONDS) -> Result:
        """Run one case."""
        self.wait_until_warm()
        self._process.stdin.write(json.dumps(asdict(case)).encode() + b"\n")
        mutation, started = "", False
        while True:
            # Not before the case has begun: who is killed while reading it leaves the rest of the line to the next.
            message = self._message(seconds if started else max(seconds, WARM_SECONDS))
            if message is None:
                self._kill(signal.SIGABRT)  # faulthandler then says where it is
                if not self._has_died(5.0):
                    self._kill(signal.SIGKILL)
                    self._has_died(WARM_SECONDS)
                self.pid = 0
                return Result(case, HANG, f"more than {seconds:g} s {self._new_errors()}", mutation, seconds)
            if "failed" in message:
                raise RuntimeError(f"a mutator must not fail, but did in {case}: {message['failed']}")
            if "died" in message:
                self.pid = 0
                detail = f"{_signal_name(message['died'])} {self._new_errors()}"
                return Result(case, CRASH, detail, mutation, 0.0)
            if "pid" in message:
                self.pid = message["pid"]
            started = started or "mutation" in message
            mutation = message.get("mutation", mutation)
            if "outcome" in message:
                return Result(case, message["outcome"], message["detail"], mutation, message["seconds"])

    def _has_died(self, seconds: float) -> bool:
        """Whether the worker says that the case's process died; what that one said meanwhile is skipped."""
        while (message := self._message(seconds)) is not None:
            if "died" in message:
                return True
        return False

    def _message(self, seconds: float) -> dict[str, Any] | None:
        """The next line of the worker; None after so many seconds without one."""
        out = self._process.stdout
        while b"\n" not in self._pending:
            if not select.select([out], [], [], seconds)[0]:
                return None
            read = out.read(65536)
            if not read:
                raise RuntimeError(f"the worker must not end, but did\n{self._new_errors()}")
            self._pending += read
        line, self._pending = self._pending.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def _kill(self, number: int) -> None:
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def _new_errors(self) -> str:
        """What faulthandler wrote since the last time: the innermost places of the library."""
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        self._errors.seek(0)
        self._errors.truncate()
        places = [line.strip() for line in lines if line.strip().startswith("File") and "src/labelspace" in line]
        lines = [line for line in lines if not line.startswith("Extension modules")]
        return (
            " < ".join(place.rpartition("labelspace/")[2].replace('", line ', ":") for place in places[:4])
            or " ".join(lines)[-500:]
        )


def _signal_name(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
