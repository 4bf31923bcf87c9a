"""Saving, with a fault at every step: the old or the new model loads, always."""

import errno
import os
import signal
import warnings
from contextlib import suppress
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp

import labelspace
from labelspace import store
from labelspace.errors import ModelError
from labelspace.models.registry import create
from labelspace.store import atomic
from labelspace.types import LabelSpace
from tests.store.faults import WRITES, each_step, ended, failing, in_child, kills

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
X = sp.csr_matrix(np.eye(5, dtype=np.float32))
LABELS = LabelSpace(list("abcde"))


@pytest.fixture(scope="module")
def old():
    return create("popular").fit(X, X, labels=LABELS)


@pytest.fixture(scope="module")
def new():
    return create("neighbors").fit(X, X, labels=LABELS)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(atomic, "PAUSE", 0)


def stop():
    raise KeyboardInterrupt


def method(folder):
    """The method of the model that a folder holds, which is read whole."""
    return labelspace.load(folder, verify=True).model.name


@pytest.mark.slow
@pytest.mark.parametrize(("exchange", "place"), [("exchange", "disk"), ("two renames", "tmpfs")], indirect=True)
@pytest.mark.usefixtures("exchange")
def test_a_save_that_is_killed_at_every_step_leaves_a_model(place, old, new):
    folder, seen = place / "model", []
    old.save(folder)
    for _ in kills(lambda: new.save(folder)):
        seen.append(method(folder))
        old.save(folder)
        assert os.listdir(place) == ["model"], "the next save removes what is left"
    assert method(folder) == "neighbors"
    assert len(seen) > 20
    assert seen == sorted(seen, reverse=True), "first the old model, then the new"
    assert set(seen) == {"popular", "neighbors"}


@pytest.mark.slow
@pytest.mark.parametrize("place", ["disk"], indirect=True)
def test_a_first_save_that_is_killed_at_every_step(place, new):
    folder, seen = place / "deep" / "model", []
    for _ in kills(lambda: new.save(folder)):
        seen.append(folder.exists() and method(folder))
        atomic._remove(folder)
    assert False in seen
    assert os.listdir(place / "deep") == ["model"], "the save that is not killed removes what is left"
    assert method(folder) == "neighbors"


class TestFailing:
    @pytest.mark.parametrize(
        ("exchange", "number"), [("exchange", errno.ENOSPC), ("two renames", errno.EIO)], indirect=["exchange"]
    )
    @pytest.mark.usefixtures("exchange")
    def test_at_any_step_leaves_the_old_model_and_says_so(self, tmp_path, old, new, number):
        folder, failed, successes = tmp_path / "model", 0, 0
        old.save(folder)
        for faults in each_step(failing(number)):
            error = None
            with faults.installed():
                try:
                    new.save(folder)
                except ModelError as raised:
                    error = str(raised)
            assert method(folder) == ("popular" if error else "neighbors")
            if error:
                failed += 1
                assert os.strerror(number) in error
                assert "\n" not in error
            if not faults.while_removing:
                assert os.listdir(tmp_path) == ["model"]
            if not error or faults.while_removing:
                successes += 1
                old.save(folder)
                assert os.listdir(tmp_path) == ["model"]
        assert failed > 10
        assert successes > 5

    @pytest.mark.usefixtures("exchange")
    @pytest.mark.parametrize(
        ("fault", "lasting"), [(failing(errno.EIO), True), (stop, False)], ids=["for good", "Ctrl-C"]
    )
    def test_for_good_or_by_ctrl_c_at_any_step_leaves_a_model(self, tmp_path, old, new, fault, lasting):
        folder = tmp_path / "model"
        old.save(folder)
        for faults in each_step(fault, lasting, WRITES):
            with faults.installed(), suppress(ModelError, KeyboardInterrupt):
                new.save(folder)
            assert method(folder) in ("popular", "neighbors")
            old.save(folder)
            assert os.listdir(tmp_path) == ["model"]


@pytest.mark.slow
@pytest.mark.usefixtures("exchange")
def test_several_writers_and_readers_at_once(place, old, new):
    folder = place / "model"
    old.save(folder)

    def write(model):
        warnings.simplefilter("ignore")  # that another one wrote meanwhile
        for _ in range(15):
            model.save(folder)

    writers = [in_child(lambda model=model: write(model)) for model in (old, new, old)]
    reader = in_child(lambda: [method(folder) for _ in range(50)])
    assert all([ended(pid) for pid in [*writers, reader]]), "each one saved or loaded a model whenever it wanted"
    assert method(folder) in ("popular", "neighbors")
    assert os.listdir(place) == ["model"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_writer_is_told_that_it_replaces_what_another_one_wrote_meanwhile(tmp_path, old, new, is_there):
    if is_there:
        old.save(tmp_path / "model")

    def write(path):
        new.save(tmp_path / "model")  # as another process might
        path.write_text("x")

    with pytest.warns(UserWarning, match="another process wrote .*model meanwhile; what it wrote is replaced"):
        store.write(tmp_path / "model", {}, {"a": write}, None)
    assert (tmp_path / "model" / "a").read_text() == "x"


def test_a_reader_never_mixes_two_models(tmp_path, old, new):
    """The folder is replaced between any two reads; without checksums nothing else would tell."""
    folder = tmp_path / "model"
    old.save(folder)
    replaced = []

    def read():
        manifest = store.read_manifest(folder)
        if len(replaced) < 2:
            replaced.append((new, old)[len(replaced)].save(folder))
        return manifest["method"], store.read_manifest(folder)["method"]

    assert store.read_unreplaced(folder, read) == ("popular", "popular")
    assert len(replaced) == 2


def cut_off(folder, model):
    """Leave what a writer leaves that is killed between its two renames."""
    model.save(folder.parent / ".model.writing-0123abcd")
    folder.rename(folder.parent / ".model.old-0123abcd")


class TestRecovery:
    def test_a_replacement_that_was_cut_off_is_finished_by_the_next_load(self, tmp_path, old, new):
        old.save(tmp_path / "model")
        cut_off(tmp_path / "model", new)
        (tmp_path / "link").symlink_to("model")
        assert method(tmp_path / "link") == "neighbors"
        assert (tmp_path / "model").is_dir()

    def test_the_next_save_that_fails_does_it_too(self, tmp_path, old, new):
        old.save(tmp_path / "model")
        cut_off(tmp_path / "model", new)
        with (
            mock.patch("safetensors.numpy.save_file", side_effect=OSError(errno.ENOSPC, "full")),
            pytest.raises(ModelError, match="full"),
        ):
            old.save(tmp_path / "model")
        assert os.listdir(tmp_path) == ["model"]
        assert method(tmp_path / "model") == "neighbors"

    def test_where_it_cannot_be_finished_nothing_is_removed(self, tmp_path, old, new):
        old.save(tmp_path / "model")
        cut_off(tmp_path / "model", new)
        before = sorted(os.listdir(tmp_path))
        with mock.patch.object(os, "rename", side_effect=OSError(errno.EIO, os.strerror(errno.EIO))):
            with pytest.raises(ModelError, match="does not exist"):
                labelspace.load(tmp_path / "model")
            with pytest.raises(ModelError, match="Input/output error"):
                old.save(tmp_path / "model")
        assert sorted(os.listdir(tmp_path)) == before
        assert method(tmp_path / "model") == "neighbors"

    def test_a_writer_that_can_neither_finish_nor_undo_leaves_both_models(self, tmp_path, old, new, monkeypatch):
        old.save(tmp_path / "model")
        real, done = os.rename, []

        def rename(one, other):
            if done:
                failing(errno.EIO)()
            real(one, other)
            done.append(other)

        monkeypatch.setattr(atomic, "_exchange", lambda one, other: False)
        with mock.patch.object(os, "rename", rename), pytest.raises(ModelError, match="Input/output error"):
            new.save(tmp_path / "model")
        assert not (tmp_path / "model").exists()
        assert method(tmp_path / "model") == "neighbors"
        old.save(tmp_path / "model")
        assert os.listdir(tmp_path) == ["model"]

    def test_a_model_that_its_owner_removed_does_not_come_back(self, tmp_path, old):
        for kind in ("old", "writing"):
            old.save(tmp_path / f".model.{kind}-01234567")
            with pytest.raises(ModelError, match="does not exist"):
                labelspace.load(tmp_path / "model")
            atomic._remove(tmp_path / f".model.{kind}-01234567")


class TestSweep:
    def test_only_our_own_leftovers_of_dead_writers_of_this_target_are_removed(self, tmp_path, old):
        kept = [".model.writing-xyz", ".model.old", ".other.writing-01234567", ".model.writing-0123456789", "photos"]
        old.save(tmp_path / "model")
        for name in [*kept, ".model.writing-00000000", ".model.old-11111111", ".model.old-00000000"]:
            (tmp_path / name).mkdir()
            (tmp_path / name / "holiday.jpg").write_text("x")
        (tmp_path / ".model.writing-22222222").write_text("a file")
        (tmp_path / ".model.writing-33333333").symlink_to(tmp_path / "photos")
        (tmp_path / ".model.old-33333333").symlink_to(tmp_path / "photos")
        kept += [".model.writing-22222222", ".model.writing-33333333", ".model.old-33333333", "model"]
        old.save(tmp_path / "model")
        assert sorted(os.listdir(tmp_path)) == sorted(kept)
        assert os.listdir(tmp_path / "photos") == ["holiday.jpg"]

    def test_the_folder_of_a_live_writer_is_left_alone(self, tmp_path, old, new):
        def write(path):
            old.save(tmp_path / "model")
            path.write_text("x")

        with pytest.warns(UserWarning, match="another process wrote"):
            store.write(tmp_path / "model", {}, {"a": write}, None)
        assert os.listdir(tmp_path) == ["model"]
        assert sorted(os.listdir(tmp_path / "model")) == ["a", "model.json"], "the last writer wins"

    def test_a_folder_that_is_swept_before_it_is_locked_is_made_again(self, tmp_path, old):
        real, calls = atomic._lock, []

        def swept(descriptor):
            calls.append(descriptor)
            if len(calls) == 1:
                [path] = tmp_path.glob(".model.writing-*")
                path.rmdir()
            return real(descriptor)

        with mock.patch.object(atomic, "_lock", swept):
            old.save(tmp_path / "model")
        assert len(calls) == 2
        assert method(tmp_path / "model") == "popular"


def test_files_that_appear_while_a_model_is_written_are_not_replaced(tmp_path, old):
    folder = tmp_path / "model"
    folder.mkdir()
    real = atomic._sync_all

    def appear(work):
        real(work)
        (folder / "holiday.jpg").write_text("x")

    with mock.patch.object(atomic, "_sync_all", appear), pytest.raises(ModelError, match="holds other files"):
        old.save(folder)
    assert os.listdir(folder) == ["holiday.jpg"]
    assert os.listdir(tmp_path) == ["model"]


def test_an_index_of_somebody_else_is_not_replaced(tmp_path, old):
    (tmp_path / "photos-index.faiss").write_text("x")
    with pytest.raises(ModelError, match="holds other files"):
        old.save(tmp_path)


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may remove anything")
def test_a_model_that_was_made_read_only_is_replaced_and_removed(tmp_path, old, new):
    old.save(tmp_path / "model")
    (tmp_path / "model").chmod(0o555)
    new.save(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_files_and_folder_are_as_the_umask_says(tmp_path, old, mask):
    before = os.umask(mask)
    try:
        old.save(tmp_path / "model")
    finally:
        os.umask(before)
    assert (tmp_path / "model").stat().st_mode & 0o777 == 0o777 & ~mask
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()} == {0o666 & ~mask}


def test_every_file_and_folder_is_synced_before_the_rename_and_the_parent_after(tmp_path, old, monkeypatch):
    done, rename = [], os.rename
    monkeypatch.setattr(os, "fsync", lambda fd: done.append(os.path.realpath(f"/proc/self/fd/{fd}")))
    monkeypatch.setattr(os, "rename", lambda *paths: done.append("rename") or rename(*paths))
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("no /proc")
    old.save(tmp_path / "model")
    at = done.index("rename")
    assert {Path(path).name for path in done[: at - 1]} == set(os.listdir(tmp_path / "model"))
    assert Path(done[at - 1]).name.startswith(".model.writing-")
    assert done[at + 1 :] == [os.path.realpath(tmp_path)]


def test_a_mount_is_refused_before_the_training(tmp_path):
    with mock.patch.object(Path, "is_mount", return_value=True), pytest.raises(ModelError, match="is a mount; give"):
        store.check_writable(tmp_path)


def test_a_lock_is_held_by_one_and_leaves_no_file(tmp_path):
    path = tmp_path / "lock"
    with atomic.locked(path) as free, atomic.locked(path) as second:
        assert (free, second) == (True, False)
    assert os.listdir(tmp_path) == []

    def hold():
        with atomic.locked(path):
            os.kill(os.getpid(), signal.SIGKILL)

    assert not ended(in_child(hold))
    assert os.listdir(tmp_path) == ["lock"]
    with atomic.locked(path) as free:
        assert free, "the lock of a dead process does not hold"
    assert os.listdir(tmp_path) == []
