import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from labelspace.kernels.threads import THREADS_VARIABLE, n_threads
from labelspace.models.one_vs_rest import OneVsRest
from labelspace.sklearn import TaggerClassifier
from labelspace.sklearn.parameters import limited_threads


@pytest.mark.parametrize("before", [None, "3"])
def test_the_number_of_threads_is_that_of_n_jobs_for_a_while(monkeypatch, before):
    monkeypatch.delenv(THREADS_VARIABLE, raising=False)
    if before is not None:
        monkeypatch.setenv(THREADS_VARIABLE, before)
    usual = n_threads()
    with limited_threads(5):
        assert n_threads() == 5
        with limited_threads(2):
            assert n_threads() == 2
    with limited_threads(-1):
        assert n_threads() == os.cpu_count()
    with limited_threads(None):
        assert n_threads() == usual
    assert os.environ.get(THREADS_VARIABLE) == before


def test_threads_that_overlap_leave_the_variable_as_it_was(monkeypatch):
    monkeypatch.setenv(THREADS_VARIABLE, "3")
    inside, first_is_out = Barrier(2), Barrier(2)

    def first():
        with limited_threads(1):
            inside.wait(10)
        first_is_out.wait(10)

    def second():
        with limited_threads(1):
            inside.wait(10)
            first_is_out.wait(10)

    with ThreadPoolExecutor(2) as pool:
        for future in (pool.submit(first), pool.submit(second)):
            future.result()
    assert os.environ[THREADS_VARIABLE] == "3"


def test_the_variable_is_back_after_an_error(monkeypatch):
    monkeypatch.setenv(THREADS_VARIABLE, "3")
    with pytest.raises(ValueError, match="broken"), limited_threads(1):
        raise ValueError("broken")
    assert n_threads() == 3


def test_training_and_prediction_keep_to_n_jobs(documents, monkeypatch):
    seen = []
    for name in ("_fit", "_predict"):
        monkeypatch.setattr(OneVsRest, name, _noting(getattr(OneVsRest, name), seen))
    TaggerClassifier("one_vs_rest", k=1, n_jobs=7).fit(documents.X, documents.Y).predict(documents.X)
    assert seen == [7, 7]


def _noting(function, seen):
    def call(*args):
        seen.append(n_threads())
        return function(*args)

    return call
