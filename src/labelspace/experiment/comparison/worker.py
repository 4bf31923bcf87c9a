"""The program of a process that runs one method; ``labelspace.experiment.comparison.process`` starts it."""

import os
import pickle  # nosec B403
import sys
import traceback
from pathlib import Path
from typing import IO, Any

from labelspace.experiment.comparison.job import Job, JobResult
from labelspace.experiment.comparison.process import COMPILED, INTERRUPTED, RESULT, STEP
from labelspace.experiment.comparison.run import run


def main() -> None:
    """Read a job, run it, and write the steps and the result."""
    job, compile_first = pickle.load(sys.stdin.buffer)  # nosec B301
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # text that a library prints must not mix with the messages
    try:
        kind, value = _run(job, compile_first, pipe)
        _send(pipe, kind, value)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    except BrokenPipeError:  # the comparison has ended
        os._exit(1)


class CompiledError(Exception):
    """Raised after kernels were compiled, to end the process: the next one loads them."""


def _run(job: Job, compile_first: bool, pipe: IO[bytes]) -> tuple[str, Any]:
    def restart(compiled: bool) -> None:
        if compiled and compile_first:
            raise CompiledError

    try:
        result = run(job, lambda *step: _send(pipe, STEP, step), restart)
    except CompiledError:
        return COMPILED, None
    except BrokenPipeError:
        raise
    except Exception as error:  # a fault of one method must not end the comparison
        if os.environ.get("LABELSPACE_DEBUG") == "1":
            traceback.print_exc()
        return RESULT, JobResult.failed(job, f"internal error: {type(error).__name__}: {error}")
    if "error" not in result.row and (memory := peak_memory()) is not None:
        result.row["peak_memory_mb"] = memory
    return RESULT, result


def _send(pipe: IO[bytes], kind: str, value: object) -> None:
    pickle.dump((kind, value), pipe)
    pipe.flush()


def peak_memory() -> float | None:
    """Return the peak memory of this process in megabytes, libraries included; None if it is not known.

    >>> 10 < peak_memory() < 100_000
    True
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return round(int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6, 1)
    except (OSError, LookupError):
        pass
    try:  # on other systems than Linux; this peak includes the memory of the parent process at the start
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)
