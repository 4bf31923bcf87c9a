"""Training with ``--cache`` beside training in memory: CPU seconds, peak memory, and whether the models are the same.

Usage: python benchmarks/out_of_core.py DATA --max-memory 400MB [--method label_tree] [--threads 2] [OPTION...]

Other options are those of ``labelspace train``. Both trainings are child processes; the documents are
read into a new cache. Memory is looked at every 20 milliseconds, on Linux:

- own: what cannot be dropped, as Python's objects and arrays (RssAnon)
- resident: with pages of mapped files, which the system takes back when memory is short (VmHWM)
- matrix: the features as CSR in memory, 8 bytes per value

Prints a row of a Markdown table for each, then the files of the models that differ.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

INTERVAL = 0.02  # seconds
MB = 10**6
HEAD = "| training | limit | file | CPU | own | resident | wall |\n|---|---|---|---|---|---|---|"


class Cost(NamedTuple):
    """What a process took: seconds, and bytes."""

    cpu: float
    wall: float
    own: int
    resident: int


def measured(command: list[str], threads: int) -> Cost:
    """Run a command to its end; it must succeed."""
    start, own, resident = time.perf_counter(), 0, 0
    child = subprocess.Popen(command, env={**os.environ, "LABELSPACE_THREADS": str(threads)})
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        memory = memory_of(child.pid)
        own, resident = max(own, memory.get("RssAnon", 0)), max(resident, memory.get("VmHWM", 0))
        time.sleep(INTERVAL)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - start, own, resident)


def memory_of(pid: int) -> dict[str, int]:
    """The sizes of a process by their names in its status, in bytes; none where it just ended."""
    lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {words[0].removesuffix(":"): int(words[1]) * 1024 for words in lines if words[-1] == "kB"}


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main() -> None:
    """Train twice, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--max-memory", required=True)
    parser.add_argument("--method", default="label_tree")
    parser.add_argument("--threads", type=int, default=2)
    args, options = parser.parse_known_args()
    train = [sys.executable, "-m", "labelspace", "train", str(args.data), "--method", args.method, *options]
    with tempfile.TemporaryDirectory(dir=args.data.parent) as folder:
        sides = {"with cache": ["--cache", f"{folder}/cache", "--max-memory", args.max_memory], "in memory": []}
        models = {}
        print(HEAD, flush=True)
        for name, cache in sides.items():
            cost = measured([*train, "--out", f"{folder}/model", *cache], args.threads)
            models[name] = checksums(Path(folder, "model"))
            print(
                f"| {args.method}, {name} | {args.max_memory if cache else '-'} | "
                f"{args.data.stat().st_size / MB:,.0f} MB | {cost.cpu:.0f} s | {cost.own / MB:,.0f} MB | "
                f"{cost.resident / MB:,.0f} MB | {cost.wall:.0f} s |",
                flush=True,
            )
    cached, first = models.values()
    differ = [file for file in sorted(first.keys() | cached) if first.get(file) != cached.get(file)]
    print(f"files of the model that differ: {', '.join(differ) or 'none'} of {len(first)}")


if __name__ == "__main__":
    main()
