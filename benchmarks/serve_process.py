"""``labelspace serve`` as a child process, and what its workers take: memory and CPU time, from /proc."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

READY_SECONDS = 120
STOP_SECONDS = 20
PARENT, USER_TIME, SYSTEM_TIME = 1, 11, 12  # fields of /proc/PID/stat after the name


@dataclass(frozen=True)
class Server:
    """A running server."""

    pid: int
    url: str
    model: str  # the name that requests use
    workers: int

    def worker_pids(self) -> list[int]:
        """The processes that answer: the children, or the one process where there is a single worker."""
        return [pid for pid in _descendants(self.pid) if "resource_tracker" not in _command(pid)] or [self.pid]

    def cpu_seconds(self) -> list[float]:
        """CPU seconds of each worker so far."""
        ticks = os.sysconf("SC_CLK_TCK")
        stats = [_stat(pid) for pid in self.worker_pids()]
        return [(int(stat[USER_TIME]) + int(stat[SYSTEM_TIME])) / ticks for stat in stats]

    def memory(self) -> list[dict[str, float]]:
        """Of each worker: private memory (USS), and with its part of what is shared (PSS)."""
        return [_memory(pid) for pid in self.worker_pids()]


@contextmanager
def serving(model: str, workers: int, options: Sequence[str] = ()) -> Iterator[Server]:
    """Start a server on a free port of 127.0.0.1, wait until it is ready, and stop it at the end."""
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        # Feedback would be stored beside the model.
        where = ["--port", str(port), "--workers", str(workers), "--database", f"sqlite:///{folder}/feedback.db"]
        command = [sys.executable, "-m", "labelspace", "serve", model, *where, *options]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            _wait_until_ready(process, url, log)
            with urlopen(f"{url}/v1/models", timeout=30) as response:
                name = json.load(response)["models"][0]["id"]
            yield Server(process.pid, url, name, workers)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + READY_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            with urlopen(f"{url}/readyz", timeout=5):  # 503 until then, which is an error here
                return
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    sys.exit(f"the server did not get ready within {READY_SECONDS} s:\n{log.read_text(errors='replace')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            children.setdefault(int(_stat(int(folder.name))[PARENT]), []).append(int(folder.name))
        except OSError:  # it ended meanwhile
            continue
    found, todo = [], [root]
    while todo:
        new = children.get(todo.pop(), [])
        found += new
        todo += new
    return sorted(found)


def _memory(pid: int) -> dict[str, float]:
    kilobytes: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value, _ = line.split()
        kilobytes[name.rstrip(":")] = int(value)
    private = sum(value for name, value in kilobytes.items() if name.startswith("Private_"))
    return {"uss_mb": megabytes(1024 * private), "pss_mb": megabytes(1024 * kilobytes["Pss"])}


def megabytes(n_bytes: int) -> float:
    """Millions of bytes.

    >>> megabytes(12_340_000)
    12.3
    """
    return round(n_bytes / 1e6, 1)
