"""Run a job in a process of its own, so that peak memory is that of one method, and a crash ends only that method.

The job goes to the process, and steps and the result come back, pickled, through pipes that no other process can open.
A process that had to compile kernels reports so and ends, and a second process is started, so that times and memory do
not include the compiler's.
"""

import os
import pickle  # nosec B403
import signal
import subprocess  # nosec B404
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from labelspace.data.cache.scratch import peak_memory
from labelspace.experiment.comparison.run import Job, JobResult, run
from labelspace.types import Progress

START = "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); " + (
    "from labelspace.experiment.comparison.process import main; main()"
)
INTERRUPTED = 130  # exit code of a worker after Ctrl-C
GRACE = 5.0  # seconds that an interrupted process has to end by itself, before it is killed
STEP, RESULT, COMPILED = "step", "result", "compiled"  # kinds of messages


def run_isolated(job: Job, progress: Progress) -> JobResult:
    """Run a job in a process; if the process dies, the row of the result has an ``error``."""
    result = _attempt(job, progress, compile_first=True) or _attempt(job, progress, compile_first=False)
    assert result is not None  # only the first attempt ends after compiling
    return result


def _attempt(job: Job, progress: Progress, compile_first: bool) -> JobResult | None:
    """Return the result of a process; None if it compiled kernels and did nothing else."""
    with _worker() as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        # The process may die before it has read the job: its exit code tells more.
        with suppress(BrokenPipeError), worker.stdin as pipe:
            for value in (sys.path, (job, compile_first)):
                pickle.dump(value, pipe)
        for kind, value in _messages(worker.stdout):
            if kind == STEP:
                progress(*value)
            elif kind == COMPILED:
                return None
            else:
                return value  # type: ignore[no-any-return]
        return JobResult.failed(job, death(worker.wait()))


@contextmanager
def _worker() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that ends with the block, whatever happens in it."""
    command = [sys.executable, "-P", "-c", START]  # -P: modules in the current folder are not imported
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:  # nosec B603
        try:
            yield worker
            worker.wait()
        finally:
            if worker.poll() is None:
                worker.terminate()
                try:
                    worker.wait(GRACE)
                except subprocess.TimeoutExpired:
                    worker.kill()


def _messages(pipe: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """Yield the messages of a process until it ends."""
    while True:
        try:
            yield pickle.load(pipe)  # nosec B301
        except (EOFError, pickle.UnpicklingError):  # the latter if it died while writing
            return


def death(code: int) -> str:
    """Return why a process ended without a result, and what to do; raise KeyboardInterrupt after Ctrl-C.

    >>> death(-11)
    'the process crashed (SIGSEGV); train only this method to see more'
    """
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code == -signal.SIGKILL:
        return (
            "the process was killed (SIGKILL), as happens when memory runs out; use fewer features "
            "(--set features.max_features=100000), or a smaller model"
        )
    what = f"crashed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
    return f"the process {what}; train only this method to see more"


def main() -> None:
    """Read a job, run it, and write the steps and the result."""
    job, compile_first = pickle.load(sys.stdin.buffer)  # nosec B301
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # text that a library prints must not mix with the messages
    try:
        _send(pipe, RESULT, _run(job, compile_first, pipe))
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    except BrokenPipeError:  # the comparison has ended
        os._exit(1)


def _run(job: Job, compile_first: bool, pipe: IO[bytes]) -> JobResult:
    def restart(compiled: bool) -> None:
        if compiled and compile_first:
            _send(pipe, COMPILED, None)
            raise SystemExit  # the next process loads the kernels

    try:
        result = run(job, lambda *step: _send(pipe, STEP, step), restart)
    except BrokenPipeError:
        raise
    except Exception as error:  # a fault of one method must not end the comparison
        if os.environ.get("LABELSPACE_DEBUG") == "1":
            traceback.print_exc()
        return JobResult.failed(job, f"internal error: {type(error).__name__}: {error}")
    if "error" not in result.row:
        result.row["peak_memory_mb"] = round(peak_memory() / 1e6, 1)
    return result


def _send(pipe: IO[bytes], kind: str, value: object) -> None:
    pickle.dump((kind, value), pipe)
    pipe.flush()
