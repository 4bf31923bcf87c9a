"""Run a method and a peer library alternately, each in child processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HARNESS = Path(__file__).resolve().parents[2] / "shared" / "peers" / "bench.py"
LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA", "RAYON")
THREADS = ("LABELSPACE_THREADS", "BENCH_THREADS", *(f"{name}_NUM_THREADS" for name in LIBRARIES))  # variables

Figures = dict[str, Any]


def child(command: list[str], threads: int = 2) -> Figures:
    """The JSON object on the last line that a child process prints."""
    env = {**os.environ, **dict.fromkeys(THREADS, str(threads))}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    figures: Figures = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def best_runs(commands: Mapping[str, list[str]], repeat: int, threads: int = 2) -> dict[str, Figures]:
    """Run the commands alternately, and keep the run of each that trained in the fewest CPU seconds."""
    runs: dict[str, list[Figures]] = {name: [] for name in commands}
    for _ in range(repeat):
        for name, command in commands.items():
            runs[name].append(child(command, threads))
        time.sleep(1)
    return {name: min(figures, key=lambda run: float(run["train_cpu_s"])) for name, figures in runs.items()}
