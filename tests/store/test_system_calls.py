"""Saves and checkpoints, with a fault at every system call, also those of compiled libraries, made by strace."""

import ctypes
import errno
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace import store
from labelspace.errors import ModelError
from labelspace.models.registry import create
from labelspace.training.checkpoints import Checkpoint
from labelspace.types import LabelSpace
from tests.store.faults import ended, in_child

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")]
CALLS = (
    "openat mkdir mkdirat rename renameat renameat2 unlink unlinkat rmdir write pwrite64 writev ftruncate fallocate "
    "fsync chmod fchmod fchmodat flock getdents64 link linkat"
).split()
PR_SET_PTRACER = 0x59616D61
FSYNC = os.fsync  # conftest.py replaces it once the tests start


def under_strace(function, *options):
    """Call a function in a child under strace; returns whether it was killed, and what strace wrote."""
    wait, go = os.pipe()

    def child():
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1))
        os.read(wait, 1)
        function()

    pid = in_child(child)
    with (
        tempfile.NamedTemporaryFile("r") as log,
        subprocess.Popen(
            ["strace", "-p", str(pid), "-o", log.name, *options], stderr=subprocess.PIPE, text=True
        ) as strace,
    ):
        said = strace.stderr.readline()
        os.write(go, b"x")
        os.close(wait)
        os.close(go)
        killed = not ended(pid)
        said += strace.stderr.read()
        lines = log.read()
    if "attached" not in said:
        pytest.skip(f"strace cannot attach: {said.strip()}")
    return killed, lines


def each_call(prepare, function, fault):
    """Call a function with a fault at the first call of a kind, the second, ..., for all kinds; yields after each."""
    prepare()
    _, lines = under_strace(function, "-e", "trace=" + ",".join(f"?{call}" for call in CALLS))
    for call, n_calls in Counter(re.findall(r"^(\w+)\(", lines, re.MULTILINE)).items():
        for when in range(1, n_calls + 1):
            prepare()
            killed, lines = under_strace(function, "-e", f"trace={call}", "-e", f"inject={call}:{fault}:when={when}")
            if killed or "(INJECTED)" in lines:  # else there were fewer calls this time
                yield


@pytest.fixture(autouse=True)
def synced(monkeypatch):
    """Sync, which the other tests do not: it is a system call too."""
    monkeypatch.setattr(os, "fsync", FSYNC)


@pytest.fixture
def models(place, monkeypatch):
    """A function that saves the old model, one that saves the new, and one that tells which of them is there."""
    X, labels, folder = sp.csr_matrix(np.eye(5, dtype=np.float32)), LabelSpace(list("abcde")), place / "model"
    old, new = (create(name).fit(X, X, labels=labels) for name in ("popular", "neighbors"))

    def save_old():
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda descriptor: None)
            old.save(folder)
        assert os.listdir(place) == ["model"]

    return save_old, lambda: new.save(folder), lambda: labelspace.load(folder, verify=True).model.name


@pytest.mark.parametrize(("exchange", "place"), [("exchange", "disk"), ("two renames", "tmpfs")], indirect=True)
def test_a_save_that_is_killed_at_any_system_call_leaves_a_model(exchange, models):
    save_old, save_new, method = models
    seen = [method() for _ in each_call(save_old, save_new, "signal=KILL")]
    assert set(seen) == {"popular", "neighbors"}
    assert len(seen) > 40


@pytest.mark.parametrize(("exchange", "place"), [("two renames", "disk")], indirect=True)
def test_a_save_in_which_any_system_call_fails_leaves_the_old_model_and_says_so(exchange, models):
    save_old, save_new, method = models
    here, there = socket.socketpair()

    def save():
        try:
            save_new()
            there.send(b"saved")
        except ModelError as raised:
            there.send(str(raised).encode())

    failed = 0
    with here, there:
        for _ in each_call(lambda: (save_old(), there.send(b"|")), save, "error=ENOSPC"):
            message = here.recv(10**6).decode().rpartition("|")[2]
            assert method() == ("neighbors" if message == "saved" else "popular"), message
            if message != "saved":
                failed += 1
                assert os.strerror(errno.ENOSPC) in message
    assert failed > 10


def test_a_checkpoint_that_is_killed_at_any_system_call_is_the_one_before_or_the_new_one(tmp_path):
    checkpoint, seen = Checkpoint(tmp_path, {}), []

    def write(epoch):
        checkpoint.write({"a": np.full(9, epoch)}, {"epoch": epoch})

    def write_old():
        write(1)
        assert os.listdir(tmp_path) == ["checkpoint.safetensors"]

    for _ in each_call(write_old, lambda: write(2), "signal=KILL"):
        into = {"a": np.zeros(9, int)}
        seen.append(checkpoint.read(into)["epoch"])
        assert into["a"].tolist() == [seen[-1]] * 9
    assert set(seen) == {1, 2}
    assert len(seen) > 15


@pytest.mark.parametrize("place", ["disk"], indirect=True)
def test_a_version_that_is_killed_at_any_system_call_leaves_the_one_before_or_both(place, monkeypatch):
    X, labels, folder = sp.csr_matrix(np.eye(5, dtype=np.float32)), LabelSpace(list("abcde")), place / "model"
    old, new = (create(name).fit(X, X, labels=labels) for name in ("popular", "neighbors"))
    seen = []

    def method(path):
        return labelspace.load(path, verify=True).model.name

    def save_old():
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda descriptor: None)
            shutil.rmtree(store.versions_folder(folder), ignore_errors=True)
            old.save(folder)
            for number in (1, 2):
                store.keep_version(folder, number)

    def add_version(number=3):
        with store.changing(folder):
            store.keep_version(folder, number)
            new.save(folder)
            store.drop_versions(folder, number + 1, 2)

    for _ in each_call(save_old, add_version, "signal=KILL"):
        seen.append(method(folder))
        kept = store.kept_versions(folder)
        assert {method(path) for path in kept.values()} == {"popular"}
        assert 2 in kept
        if seen[-1] == "neighbors":
            assert 3 in kept
        add_version(3 if seen[-1] == "popular" else 4)
        assert len(store.kept_versions(folder)) == 2
        assert sorted(os.listdir(place)) == ["model", "model.versions"]
        assert len(os.listdir(store.versions_folder(folder))) == 2
    assert set(seen) == {"popular", "neighbors"}
    assert len(seen) > 60
