"""Jobs run in processes of their own, with low priority: whoever serves goes on serving."""

import asyncio
import os
import sys
from contextlib import suppress

from labelspace.kernels.threads import BLAS_VARIABLES, THREADS_VARIABLE
from labelspace.server.database import Job
from labelspace.server.settings import VARIABLE, Settings
from labelspace.server.state import ServerState

LEARN, EVALUATE = "learn", "evaluate"
FAILED = "the process of the job ended with code {code}; see the log of the server"


async def start_job(state: ServerState, model: str, kind: str) -> Job | None:
    """Start a job; None where one of the kind runs for this model."""
    job = await state.beside(state.database.start_job, model, kind)
    if job is not None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "labelspace.server.job", job.id, model, kind,
            env=environment(state.settings), stdin=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        watch = asyncio.create_task(_watch(state, job.id, process))
        state.jobs.add(watch)
        watch.add_done_callback(state.jobs.discard)
    return job


def environment(settings: Settings) -> dict[str, str]:
    """That of a job: the settings, and all threads, while a worker has one."""
    threads = dict.fromkeys((THREADS_VARIABLE, *BLAS_VARIABLES), str(settings.job_threads))
    return {**os.environ, **threads, VARIABLE: settings.to_json()}


async def _watch(state: ServerState, job_id: str, process: asyncio.subprocess.Process) -> None:
    """Wait for a process; say so where it ended without a word. It ends with the server."""
    try:
        await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise
    finally:
        job = await state.beside(state.database.job, job_id)
        if job is not None and job.state in ("queued", "running"):
            error = FAILED.format(code=process.returncode)
            await state.beside(state.database.update_job, job_id, state="failed", error=error)
