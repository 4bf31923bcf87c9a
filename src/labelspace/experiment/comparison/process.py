"""Run a job in a process of its own: its peak memory is that of one method, and its crash is not ours.

The job goes to the process, and steps and the result come back, pickled, through pipes that nobody else has. A process
that had to compile kernels says so and ends, and another one is started, so that neither the times nor the memory are
those of a compiler.
"""

import pickle  # nosec B403
import signal
import subprocess  # nosec B404
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from labelspace.experiment.comparison.job import Job, JobResult
from labelspace.types import Progress

START = "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); " + (
    "from labelspace.experiment.comparison.worker import main; main()"
)
INTERRUPTED = 130  # the exit code of a worker after Ctrl-C
GRACE = 5.0  # seconds that an interrupted process has to end by itself
STEP, RESULT, COMPILED = "step", "result", "compiled"  # kinds of messages


def run_isolated(job: Job, progress: Progress) -> JobResult:
    """The result of a job; where its process dies, the row has an ``error`` that says so."""
    result = _attempt(job, progress, compile_first=True) or _attempt(job, progress, compile_first=False)
    assert result is not None  # it compiles first only once
    return result


def _attempt(job: Job, progress: Progress, compile_first: bool) -> JobResult | None:
    """None where kernels were compiled and nothing else was done."""
    with _worker() as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        with suppress(BrokenPipeError):  # it died before it read: the exit code says more
            for value in (sys.path, (job, compile_first)):
                pickle.dump(value, worker.stdin)
            worker.stdin.close()
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
    """A process that ends with the block, whatever happens in it."""
    command = [sys.executable, "-P", "-c", START]  # -P: the folder it is started in holds no modules
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # nosec B603
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
                worker.wait()
        for pipe in (worker.stdin, worker.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def _messages(pipe: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """What the process says, until it ends."""
    while True:
        try:
            yield pickle.load(pipe)  # nosec B301
        except (EOFError, pickle.UnpicklingError):  # the latter: it died while it wrote
            return


def death(code: int) -> str:
    """Why a process that gave no result has ended, and what to do.

    >>> death(-11)
    'the process crashed (SIGSEGV); train this method alone to see more'
    """
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code == -signal.SIGKILL:
        return (
            "the process was killed (SIGKILL), as it is where memory runs out; use fewer features "
            "(--set features.max_features=100000), or a smaller model"
        )
    what = f"crashed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
    return f"the process {what}; train this method alone to see more"
