"""Run jobs in processes of their own, with low priority: the workers go on answering requests.

A job is ``python -m labelspace.server.job ID MODEL KIND``, with the settings of the server in its environment, and what
the request asked for as JSON in its standard input: other users see the arguments of a process.
"""

import asyncio
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelspace.data.source import open_source
from labelspace.errors import DatabaseError, DataError, LabelspaceError
from labelspace.experiment.evaluate import evaluate
from labelspace.kernels.threads import BLAS_VARIABLES, THREADS_VARIABLE
from labelspace.server.database import ACTIVE, Database, Job, open_database
from labelspace.server.learning import LabelRequest, LearnOptions, edit_model, learn_more, retrain
from labelspace.server.served_model import version_of
from labelspace.server.settings import VARIABLE, Settings
from labelspace.store import KEPT, read_manifest, read_unreplaced
from labelspace.tagger import Tagger
from labelspace.types import Progress

if TYPE_CHECKING:
    from labelspace.server.state import ServerState

LEARN, EVALUATE, LABELS = "learn", "evaluate", "labels"
CHANGING = (LEARN, LABELS)  # kinds that write a version of the model: one at a time
FAILED = "the process of the job ended with code {code}; see the log of the server"
NICE = 10  # a lower priority than that of the workers
REPORT_SECONDS = 1.0  # between two reports of progress
BEAT_SECONDS = 10.0  # between two signs of life


async def start_job(state: "ServerState", model: str, kind: str, asked: Mapping[str, Any] | None = None) -> Job | None:
    """Start a job; return None if one of this kind already runs for the model, or another one that changes it."""
    if kind in CHANGING:
        jobs = await state.in_thread(state.database.jobs)
        if any(job.model == model and job.kind in CHANGING and job.state in ACTIVE for job in jobs):
            return None
    job = await state.in_thread(state.database.start_job, model, kind)
    if job is not None:
        command = [sys.executable, "-m", "labelspace.server.job", job.id, model, kind]
        process = await asyncio.create_subprocess_exec(
            *command, env=environment(state.settings), stdin=asyncio.subprocess.PIPE
        )
        if process.stdin is not None:  # it is, since it was asked for
            process.stdin.write(json.dumps(asked or {}).encode())
            process.stdin.close()
        watch = asyncio.create_task(_watch(state, job.id, process))
        state.jobs.add(watch)
        watch.add_done_callback(state.jobs.discard)
    return job


def environment(settings: Settings) -> dict[str, str]:
    """Return the environment of a job: the settings, and all threads, while a worker has one."""
    threads = dict.fromkeys((THREADS_VARIABLE, *BLAS_VARIABLES), str(settings.job_threads))
    return {**os.environ, **threads, VARIABLE: settings.to_json()}


async def _watch(state: "ServerState", job_id: str, process: asyncio.subprocess.Process) -> None:
    """Wait for a process, and report it as failed if it ended without a result. It ends with the server."""
    try:
        await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise
    finally:
        job = await state.in_thread(state.database.job, job_id)
        if job is not None and job.state in ACTIVE:
            error = FAILED.format(code=process.returncode)
            await state.in_thread(state.database.update_job, job_id, state="failed", error=error)


def main(job_id: str, model: str, kind: str) -> int:
    """Run a job, and write its result or error to the database; return an exit code, 0 if the job is done."""
    if hasattr(os, "nice"):
        os.nice(NICE)
    settings = Settings.from_json(os.environ[VARIABLE])
    database = open_database(settings.database_url)
    progress = reporting(database, job_id)
    try:
        asked = read_request()
        database.update_job(job_id, state="running", step="reading the model")
        with beating(database, job_id):
            result = RUN[kind](settings, database, model, asked, progress)
        database.update_job(job_id, state="done", step="done", progress=1.0, result=result)
        return 0
    except Exception as error:
        known = isinstance(error, (LabelspaceError, OSError))
        if not known:
            traceback.print_exc()
        database.update_job(job_id, state="failed", error=str(error) if known else f"{type(error).__name__}: {error}")
        return 1
    finally:
        database.close()


def read_request() -> dict[str, Any]:
    """Return what the request asked for; raise DataError if the server ended before it said so."""
    given = sys.stdin.buffer.read()
    try:
        return dict(json.loads(given))
    except ValueError:
        raise DataError("a job needs a request, but the server ended before it was sent; start another one") from None


@contextmanager
def beating(database: Database, job_id: str) -> Iterator[None]:
    """Update the heartbeat of a job every few seconds: some steps of a training take minutes."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(BEAT_SECONDS):
            with suppress(DatabaseError):  # the database may be back at the next beat
                database.update_job(job_id)

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def reporting(database: Database, job_id: str) -> Progress:
    """Return a function that writes the progress of a training to the database, about once a second."""
    last = 0.0

    def report(step: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_SECONDS:
            last = now
            with suppress(DatabaseError):  # the training goes on without a report
                database.update_job(job_id, step=step, progress=done / total if total else 0.0)

    return report


def learn(
    settings: Settings, database: Database, model: str, asked: Mapping[str, Any], progress: Progress
) -> dict[str, Any]:
    """Learn from feedback: go on from the current model, or train again if this is asked for or the only way."""
    folder = Path(settings.models[model])
    options = LearnOptions(bool(asked.get("full")), bool(asked.get("force")), n_kept(settings))
    outcome = None if options.full else learn_more(folder, settings.data, database, model, progress, options)
    if outcome is not None:
        return outcome
    if settings.data is None:
        raise DataError("a training needs data, but the server was started without; start it with --data DATA")
    return retrain(folder, open_source(settings.data), database, model, progress, options)


def n_kept(settings: Settings) -> int:
    """Return how many older versions of a model are kept."""
    return KEPT if settings.keep_versions is None else settings.keep_versions


def edit(
    settings: Settings, database: Database, model: str, asked: Mapping[str, Any], progress: Progress
) -> dict[str, Any]:
    """Edit the labels of a model."""
    asked = {name: tuple(value) if isinstance(value, list) else value for name, value in asked.items()}
    folder = Path(settings.models[model])
    return edit_model(folder, database, model, progress, LabelRequest(**asked), n_kept(settings))


def measure(
    settings: Settings, database: Database, model: str, asked: Mapping[str, Any], progress: Progress
) -> dict[str, Any]:
    """Evaluate a model on the test documents, and store the figures for its version."""
    folder = Path(settings.models[model])
    if settings.data is None:
        raise DataError("figures need data, but the server was started without; start it with --data DATA")
    source = open_source(settings.data)
    version, tagger = read_unreplaced(folder, lambda: (version_of(read_manifest(folder)), Tagger.load(folder)))
    test = source.read_as(tagger.columns_, tagger.fields_).test(tagger.labels_)
    if test is None:
        raise DataError(f"figures need test documents, but {source.path} has no test.*; add it")
    progress("evaluating", 0, 1)
    figures = evaluate(tagger, test)
    name = source.test_path.name if source.test_path is not None else ""
    database.put_figures(model, version, {"data": name, "figures": figures})
    return {"data": name, "n": len(test), "nDCG@5": figures["nDCG@5"]}


RUN = {LEARN: learn, LABELS: edit, EVALUATE: measure}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
