"""A fault at the n-th step of a function: the process is killed, or the call fails. Steps are calls to the system."""

import io
import os
import shutil
import signal
import traceback
import warnings
from contextlib import ExitStack, contextmanager
from unittest import mock

import safetensors.numpy

from labelspace.store import atomic

WRITES = [
    (io, "open"),
    (safetensors.numpy, "save_file"),
    (atomic, "_exchange"),
    (atomic, "_lock"),
    *((os, name) for name in "chmod fsync link mkdir rename replace rmdir unlink".split()),
]
READS = [(os, name) for name in "open scandir stat".split()]  # to be killed before one is to be killed after a write


class Faults:
    """Counts steps and calls ``fault`` before the n-th, and before all after it where the fault is lasting."""

    def __init__(self, at, fault, lasting=False, steps=(*WRITES, *READS)):
        self.steps = steps
        self.at, self.fault, self.lasting = at, fault, lasting
        self.count, self.hit, self.while_removing, self.removing = 0, None, False, 0

    def step(self, name, call):
        def counted(*args, **kwargs):
            self.count += 1
            if self.count == self.at or (self.lasting and self.count > self.at):
                self.hit, self.while_removing = name, self.removing > 0
                self.fault()
            return None if name == "fsync" else call(*args, **kwargs)  # a kill loses nothing that is not yet synced

        return counted

    def rmtree(self, *args, **kwargs):
        self.removing += 1
        try:
            return rmtree(*args, **kwargs)
        finally:
            self.removing -= 1

    @contextmanager
    def installed(self):
        with ExitStack() as stack:
            for module, name in self.steps:
                stack.enter_context(mock.patch.object(module, name, self.step(name, getattr(module, name))))
            stack.enter_context(mock.patch.object(shutil, "rmtree", self.rmtree))
            yield self


rmtree = shutil.rmtree


def each_step(fault, lasting=False, steps=(*WRITES, *READS)):
    """Faults at the first step, the second, ..., until one comes too late; to be installed by the caller."""
    at, faults = 0, None
    while faults is None or faults.hit:
        at += 1
        faults = Faults(at, fault, lasting, steps)
        yield faults


def failing(number):
    """A fault: the call fails with this error number."""

    def fail():
        raise OSError(number, os.strerror(number))

    return fail


def in_child(function):
    """Call a function in a forked process; returns its pid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads that numba or the test runner left
        pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        function()
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def ended(pid):
    """Wait for a child; True where it ended well, False where it was killed."""
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return False
    assert os.waitstatus_to_exitcode(status) == 0, "it failed"
    return True


def kills(function):
    """Call a function in children that are killed before their first step, second step, ...; yields after each kill."""

    def kill():
        os.kill(os.getpid(), signal.SIGKILL)

    def child(at):
        with Faults(at, kill, steps=WRITES).installed():
            function()

    at = 1
    while not ended(in_child(lambda: child(at))):  # noqa: B023 - called at once
        yield at
        at += 1
