"""Run a child process that prints its figures, and end it where it takes too long or too much memory."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from peers import THREADS, Figures

POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Limits:
    """What a run may take: CPU time of the whole process, of all threads, and resident memory.

    CPU time, since a clock would count what others do on the same machine.
    """

    minutes: float
    gigabytes: float

    def exceeded(self, process: subprocess.Popen[bytes]) -> str | None:
        """The name of the limit that a running process is over."""
        if cpu_seconds(process.pid) > 60 * self.minutes:
            return "minutes"
        return "gigabytes" if resident_bytes(process.pid) > 1e9 * self.gigabytes else None


def run_within(limits: Limits, command: list[str], threads: int) -> Figures:
    """The JSON object on the last line that a child prints; or ``stopped``: the limit; or ``failed``: the error.

    An address space limit would count memory maps too, so resident memory is watched. What the child leaves in its
    folder for temporary files is removed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {**os.environ, **dict.fromkeys(THREADS, str(threads)), "TMPDIR": name}
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)
            stopped = _watch(process, limits)
        if stopped:
            return {"stopped": stopped}
        if process.returncode:
            error = ((folder / "err").read_text(errors="replace").strip().splitlines() or ["no message"])[-1]
            failed = f"exit code {process.returncode}: {error}"
            return {"stopped": "gigabytes"} if "MemoryError" in error else {"failed": failed}
        figures: Figures = json.loads((folder / "out").read_text().splitlines()[-1])
        return figures


def _watch(process: subprocess.Popen[bytes], limits: Limits) -> str | None:
    """Wait for the end of a process, or end it; returns the limit that it was over."""
    try:
        while True:
            try:
                process.wait(POLL_SECONDS)
                return None
            except subprocess.TimeoutExpired:
                if over := limits.exceeded(process):
                    return over
    finally:
        process.kill()  # does nothing where it has ended; an interrupt comes here too
        process.wait()


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, of all its threads; 0 where it has ended.

    >>> cpu_seconds(os.getpid()) > 0
    True
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # a name may have blanks
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")  # utime and stime: see proc(5)
    except (OSError, IndexError):
        return 0.0


def resident_bytes(pid: int) -> int:
    """Resident memory of a process; 0 where it has ended.

    >>> resident_bytes(os.getpid()) > 10**6
    True
    """
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
