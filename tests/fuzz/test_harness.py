"""The harness sees what it is to see, and every case can be run again."""

import os
import signal
import time
from contextlib import suppress
from random import Random

import pytest

from labelspace.errors import ModelError
from tests.fuzz.bases import make_bases
from tests.fuzz.mutators import BY_KIND, mutate
from tests.fuzz.mutators.array_file import ArrayFile
from tests.fuzz.runner import Case, Worker
from tests.fuzz.targets.outcome import NUMBA_BOUNDS, Attempts, outcome_of
from tests.fuzz.worker import read_files


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bases")
    make_bases("models", folder, "popular")
    make_bases("models", folder, "neighbors-0")
    return folder


@pytest.mark.parametrize("kind", BY_KIND)
def test_a_seed_gives_the_same_case_again(kind, bases):
    files, donor = read_files(bases / "neighbors-0"), read_files(bases / "popular-0")
    changed = 0
    for mutator in BY_KIND[kind]:
        one, other = (mutate(kind, files, donor, mutator, Random("7")) for _ in range(2))
        assert one == other
        changed += one[0] != files
    assert changed > 0.9 * len(BY_KIND[kind])
    assert files == read_files(bases / "neighbors-0"), "the base is left as it is"


def test_arrays_are_written_as_they_were_read(bases):
    for content in read_files(bases / "neighbors-0").values():
        file = ArrayFile.read(content)
        again = ArrayFile.read(file.write()) if file else None
        assert file is None or all((file.arrays[key] == again.arrays[key]).all() for key in file.arrays)


def raised(error, cause=None):
    def run():
        attempts = Attempts()
        attempts(fail)
        return attempts.outcome

    def fail():
        raise error from cause

    return outcome_of(run)[0]


def test_outcomes():
    assert raised(ModelError("a must be b, but is c; do d")) == "refused"
    assert raised(ModelError("hidden"), cause=IndexError(NUMBA_BOUNDS)) == "out of bounds"
    assert raised(ModelError("said"), cause=MemoryError()) == "refused"
    assert raised(IndexError(NUMBA_BOUNDS)) == "out of bounds"
    assert raised(IndexError("index 3 is out of bounds for axis 0 with size 3")) == "traceback"
    assert raised(MemoryError()) == "memory"
    assert raised(SystemExit(1)) == "traceback"


def wait_for_the_end_of(pid: int) -> None:
    with suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            time.sleep(0.01)


@pytest.mark.slow
def test_a_crash_and_a_hang_are_outcomes_and_the_next_case_goes_on(bases):
    case = Case("models", "popular-0", "popular-0", "reorder", "3")
    with Worker("models", bases) as worker:
        expected = worker.run(case, 120.0)
        assert expected.outcome in ("answered", "refused")
        os.kill(worker.pid, signal.SIGSEGV)
        wait_for_the_end_of(worker.pid)  # it may not read a part of the next case
        assert worker.run(case, 120.0).detail.startswith("SIGSEGV")
        assert worker.run(case, 0.0).outcome == "hang"
        again = worker.run(case, 120.0)
        assert (again.outcome, again.mutation) == (expected.outcome, expected.mutation)
