"""Measure wall and CPU seconds of work and milliseconds per document; read and show durations."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelspace.errors import ParameterError

LATENCY_ROWS = 300  # single documents that are timed: enough for a 99th percentile
LATENCY_SECONDS = 20.0  # no further document is timed after this time, since some methods take seconds for one
WARM_UP_ROWS = 32  # documents that are predicted before prediction is timed

DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


@dataclass
class Seconds:
    """Wall and CPU seconds of a piece of work."""

    wall: float = 0.0
    cpu: float = 0.0
    compiling: float = 0.0  # wall seconds of compiling kernels, which happens once on a machine: they are cached


@contextmanager
def timed() -> Iterator[Seconds]:
    """Measure the block, CPU time of all threads included."""
    from numba.core.event import TimingListener, install_listener  # a slow import

    taken, compiler = Seconds(), TimingListener()  # type: ignore[no-untyped-call]
    with install_listener("numba:compile", compiler):
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield taken
        finally:
            taken.wall, taken.cpu = time.perf_counter() - wall, time.process_time() - cpu
            taken.compiling = compiler.duration if compiler.done else 0.0


@contextmanager
def cpu_clock() -> Iterator[Callable[[], float]]:
    """Provide a clock of the CPU seconds of all threads that stops while kernels are compiled."""
    from numba.core.event import TimingListener, install_listener  # a slow import

    compiler = TimingListener()  # type: ignore[no-untyped-call]
    with install_listener("numba:compile", compiler):
        yield lambda: time.process_time() - (compiler.duration if compiler.done else 0.0)


def warm_up(predict: Callable[[Any], object], inputs: Any) -> None:  # noqa: ANN401 - texts or rows of features
    """Predict a few documents, then a single one: first predictions compile kernels and read the model's files."""
    for n in (WARM_UP_ROWS, 1):
        predict(inputs[:n])


def latency(predict: Callable[[Any], object], inputs: Any, seed: int = 0) -> dict[str, float]:  # noqa: ANN401 - texts or rows of features
    """Return percentiles of the milliseconds per document, one document at a time, over a seeded sample."""
    n = len(inputs) if isinstance(inputs, Sequence) else inputs.shape[0]
    taken: list[float] = []
    for row in np.random.default_rng(seed).permutation(n)[:LATENCY_ROWS].tolist():
        one = inputs[row : row + 1]
        with timed() as single:
            predict(one)
        taken.append(1e3 * single.wall)
        if sum(taken) > 1e3 * LATENCY_SECONDS:
            break
    return {f"latency_ms_p{p}": round(float(np.percentile(taken, p)), 4) for p in (50, 99)}


def parse_duration(text: str, option: str = "--budget") -> float:
    """Return the seconds of a duration such as 90s, 2m or 1h30m; a number without a unit is seconds.

    ``option`` is named in the error.

    >>> parse_duration("2m"), parse_duration("1h30m"), parse_duration("90"), parse_duration("1.5m")
    (120.0, 5400.0, 90.0, 90.0)
    """
    match = DURATION.fullmatch(text.strip().lower())
    if match is None or not any(match.groups()):
        rule = f"{option} must be a duration such as 90s, 2m or 1h30m"
        raise ParameterError(f"{rule}, but is {text!r}; write it like these")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds


def shown_duration(seconds: float) -> str:
    """Return seconds in words.

    >>> shown_duration(42.3), shown_duration(150), shown_duration(0.42)
    ('42 s', '2 min 30 s', '0.4 s')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60} s"
