"""A job as a process: ``python -m labelspace.server.job ID MODEL KIND``, with the settings of the server."""

import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from labelspace.data.source import Source, open_source
from labelspace.errors import DatabaseError, DataError, LabelspaceError
from labelspace.experiment.evaluate import evaluate
from labelspace.server.database import Database, open_database
from labelspace.server.job_processes import EVALUATE
from labelspace.server.learning import learn
from labelspace.server.served_model import version_of
from labelspace.server.settings import VARIABLE, Settings
from labelspace.store import read_manifest, read_unreplaced
from labelspace.tagger import Tagger
from labelspace.types import Progress

NICE = 10  # below those who serve
REPORT_SECONDS = 1.0  # between two reports of progress
BEAT_SECONDS = 10.0  # between two signs of life


def main(job_id: str, model: str, kind: str) -> int:
    """Run a job, and write what came of it to the database; the exit code says whether it went well."""
    if hasattr(os, "nice"):
        os.nice(NICE)
    settings = Settings.from_json(os.environ[VARIABLE])
    database = open_database(settings.database_url)
    progress = reporting(database, job_id)
    try:
        database.update_job(job_id, state="running", step="reading the data")
        if settings.data is None:
            raise DataError("a job needs data, but the server was started without; start it with --data DATA")
        run = measure if kind == EVALUATE else learn
        with beating(database, job_id):
            result = run(Path(settings.models[model]), open_source(settings.data), database, model, progress)
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


@contextmanager
def beating(database: Database, job_id: str) -> Iterator[None]:
    """Say every few seconds that the job lives: some steps of a training take minutes."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(BEAT_SECONDS):
            with suppress(DatabaseError):  # it may be back at the next beat
                database.update_job(job_id)

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def reporting(database: Database, job_id: str) -> Progress:
    """Progress of a training into the database, about once a second."""
    last = 0.0

    def report(step: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= REPORT_SECONDS:
            last = now
            with suppress(DatabaseError):  # a training goes on without
                database.update_job(job_id, step=step, progress=done / total if total else 0.0)

    return report


def measure(folder: Path, source: Source, database: Database, model: str, progress: Progress) -> dict[str, Any]:
    """The figures of the model on the test documents, kept for its version."""
    version, tagger = read_unreplaced(folder, lambda: (version_of(read_manifest(folder)), Tagger.load(folder)))
    test = source.read_as(tagger.columns_, tagger.fields_).test(tagger.labels_)
    if test is None:
        raise DataError(f"figures need test documents, but {source.path} has no test.*; add it")
    progress("evaluating", 0, 1)
    figures = evaluate(tagger, test)
    name = source.test_path.name if source.test_path is not None else ""
    database.put_figures(model, version, {"data": name, "figures": figures})
    return {"data": name, "n": len(test), "nDCG@5": figures["nDCG@5"]}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
