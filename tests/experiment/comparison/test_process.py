"""A process per method: what it says, and how it dies."""

import pickle
import subprocess
from functools import partial

import pytest

from labelspace.data.source import open_source
from labelspace.experiment import Recipe, compare
from labelspace.experiment.comparison import process
from labelspace.experiment.comparison.run import Job, JobResult
from labelspace.types import no_progress

SAY = "import pickle, sys, time\ndef say(*message): pickle.dump(message, sys.stdout.buffer); sys.stdout.flush()\n"


@pytest.fixture
def job(folder, tmp_path):
    return Job(Recipe("popular"), (0,), open_source(folder), tmp_path / "out", (1, 5), 0)


@pytest.fixture
def started(monkeypatch):
    """All processes that are started."""
    processes = []

    class Watched(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            processes.append(self)

    monkeypatch.setattr(subprocess, "Popen", Watched)
    return processes


@pytest.mark.slow
def test_processes_give_the_figures_of_this_process_and_their_memory(folder, tmp_path):
    run = partial(compare, open_source(folder), [Recipe("random", seed=3)])
    alone, here = (run(tmp_path / name, isolated=is_alone)["rows"][0] for name, is_alone in (("a", True), ("b", False)))
    assert {key: alone[key] for key in alone if "@" in key} == {key: here[key] for key in here if "@" in key}
    assert 50 < alone["peak_memory_mb"] < 5000
    assert "peak_memory_mb" not in here


@pytest.mark.parametrize(
    ("start", "error"),
    [
        ("import os; os.kill(os.getpid(), 9)", "was killed (SIGKILL), as happens when memory runs out"),
        ("import os; os.abort()", "crashed (SIGABRT)"),
        ("import sys; sys.exit(3)", "ended with exit code 3"),
        (SAY + "sys.stdout.buffer.write(pickle.dumps(('result', 'x' * 99))[:50])", "ended with exit code 0"),
    ],
)
def test_a_process_that_dies_is_a_failed_row(job, monkeypatch, started, start, error):
    monkeypatch.setattr(process, "START", start)
    row = process.run_isolated(job, no_progress).row
    assert (row["method"], row["params"]) == ("popular", {})
    assert error in row["error"]
    assert len(started) == 1


def test_a_process_that_compiled_is_started_again(job, monkeypatch, started, tmp_path):
    cache = tmp_path / "cache"
    answers = f"import pathlib; cache = pathlib.Path({str(cache)!r})\n"
    answers += "say('result', 'done') if cache.exists() else (cache.touch(), say('compiled', None))"
    monkeypatch.setattr(process, "START", SAY + answers)
    assert process.run_isolated(job, no_progress) == "done"
    assert [worker.returncode for worker in started] == [0, 0]


def test_steps_are_shown_and_an_interruption_ends_the_process(job, monkeypatch, started):
    monkeypatch.setattr(process, "START", SAY + "say('step', ('training', 1, 2)); time.sleep(600)")
    shown = []

    def interrupt(*step):
        shown.append(step)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process.run_isolated(job, interrupt)
    assert shown == [("training", 1, 2)]
    assert started[0].returncode is not None


def test_a_worker_that_was_interrupted_interrupts_the_comparison(job, monkeypatch):
    monkeypatch.setattr(process, "START", f"import sys; sys.exit({process.INTERRUPTED})")
    with pytest.raises(KeyboardInterrupt):
        process.run_isolated(job, no_progress)


def test_jobs_and_results_travel(job):
    assert pickle.loads(pickle.dumps(job)) == job
    assert JobResult.failed(job, "why").row == {"method": "popular", "params": {}, "error": "why"}
