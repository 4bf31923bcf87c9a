"""The cache of compiled kernels is a folder that no other user can write to; numba unpickles what it finds there."""

import importlib.util
import os
import pickle
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import pytest

from labelspace.kernels import compilation
from labelspace.kernels.compilation import beside_sources_is_safe, private_folder, set_cache_folder

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows has no owner and mode of this kind")
needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can change owners")
NOBODY = 65534
KERNEL = """
import numba

@numba.njit(cache=True)
def add_one(x: int) -> int:
    return x + 1
"""


class Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return Path.touch, (self.marker,)


@pytest.fixture
def package(tmp_path):
    """A folder with one kernel."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "kernel.py").write_text(KERNEL)
    return folder


@pytest.fixture
def run_kernel(package, tmp_path, monkeypatch):
    """Choose a cache and run the kernel; returns the folder of its cache."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def run(given=""):
        monkeypatch.setenv(compilation.VARIABLE, str(given))
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(given))
        set_cache_folder(package)
        spec = importlib.util.spec_from_file_location("kernel", package / "kernel.py")
        kernel = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(kernel)
        assert kernel.add_one(1) == 2
        return Path(kernel.add_one.stats.cache_path)

    return run


@pytest.fixture
def closed(package):
    """The package with a ``__pycache__`` that cannot be a folder, as root may write to every folder."""
    (package / "__pycache__").write_text("")
    return package


def plant(folder, package, marker):
    """Put an index that makes the file ``marker`` where numba would look for it below, or in, the folder."""
    line = KERNEL.splitlines().index("@numba.njit(cache=True)") + 1
    name = f"kernel.add_one-{line}.py{sys.version_info[0]}{sys.version_info[1]}.nbi"
    subfolder = numba.core.caching._CacheLocator.get_suitable_cache_subpath(str(package / "kernel.py"))
    for place in (folder, folder / subfolder):
        place.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(pickle.dumps(Touch(marker)))
        os.chmod(place, 0o777)


def test_the_kernels_are_cached_beside_the_sources(run_kernel, package):
    assert run_kernel() == package / "__pycache__"


def test_numba_runs_what_is_planted(run_kernel, package, tmp_path):
    plant(package / "__pycache__", package, tmp_path / "marker")
    os.chmod(package / "__pycache__", 0o700)
    assert run_kernel() == package / "__pycache__"
    assert (tmp_path / "marker").exists(), "else the tests below show nothing"


def test_an_index_planted_in_an_open_pycache_is_not_run(run_kernel, package, tmp_path):
    plant(package / "__pycache__", package, tmp_path / "marker")
    folder = run_kernel()
    assert folder.parent == tmp_path / "home" / ".cache" / compilation.NAME
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert not (tmp_path / "marker").exists()


def test_an_index_planted_in_an_open_cache_dir_is_not_run(run_kernel, package, tmp_path):
    plant(tmp_path / "open", package, tmp_path / "marker")
    with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR must be a folder that only its owner can write to"):
        folder = run_kernel(tmp_path / "open")
    assert folder.parent == tmp_path / "home" / ".cache" / compilation.NAME
    assert not (tmp_path / "marker").exists()


def test_a_private_cache_dir_is_used(run_kernel, tmp_path):
    folder = run_kernel(tmp_path / "new" / "mine")
    assert folder.parent == tmp_path / "new" / "mine"
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


@needs_root
def test_folders_of_another_user_are_not_used(run_kernel, closed, tmp_path):
    predictable = tmp_path / f"{compilation.NAME}-{os.geteuid()}"
    for folder in (tmp_path / "home" / ".cache" / compilation.NAME, predictable):
        plant(folder, closed, tmp_path / "marker")
        os.chown(folder, NOBODY, NOBODY)
        os.chmod(folder, 0o755)
    folder = run_kernel()
    assert folder.parent.parent == tmp_path
    assert folder.parent != predictable
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert not (tmp_path / "marker").exists()


@needs_root
def test_a_home_of_another_user_is_not_used(run_kernel, closed, tmp_path):
    plant(tmp_path / "home" / ".cache" / compilation.NAME, closed, tmp_path / "marker")
    os.chmod(tmp_path / "home" / ".cache" / compilation.NAME, 0o700)
    os.chown(tmp_path / "home", NOBODY, NOBODY)
    folder = run_kernel()
    assert folder.parent == tmp_path / f"{compilation.NAME}-{os.geteuid()}"
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("before", ["", "import numba"])
def test_the_choice_is_made_on_import_and_a_fresh_folder_is_removed_at_the_end(tmp_path, before):
    code = f"""
{before}
import os
from labelspace.kernels import compilation
compilation._user_folders = lambda: []
compilation.beside_sources_is_safe = lambda package: False
compilation.set_cache_folder(None)
folder = os.environ["NUMBA_CACHE_DIR"]
import numba
assert numba.config.CACHE_DIR == folder
print(folder, oct(os.stat(folder).st_mode))
if os.fork() == 0:
    raise SystemExit
os.wait()
assert os.path.exists(folder), "removed by a forked process"
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    folder, mode = done.stdout.split()
    assert (done.stderr, Path(folder).parent, mode) == ("", tmp_path, "0o40700")
    assert not Path(folder).exists()


def test_a_link_is_not_private(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    assert private_folder(str(tmp_path / "link")) is None
    assert private_folder(str(tmp_path / "link" / "below")) == str(tmp_path / "mine" / "below"), "the real path"


@pytest.mark.parametrize(("mode", "is_private"), [(0o777, False), (0o775, False), (0o1777, True), (0o755, True)])
def test_no_other_user_can_rename_a_private_folder(tmp_path, mode, is_private):
    (tmp_path / "parent").mkdir()
    (tmp_path / "parent").chmod(mode)
    assert (private_folder(str(tmp_path / "parent" / "mine")) is not None) == is_private


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_a_folder_open_to_others_is_not_private(tmp_path, mode):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine").chmod(mode)
    assert private_folder(str(tmp_path / "mine")) is None


@pytest.mark.parametrize(
    ("sources", "cache", "is_safe"),
    [
        (0o755, 0o755, True),
        (0o775, 0o775, True),  # who can write to the cache can change the sources as well
        (0o755, 0o775, False),
        (0o755, 0o757, False),
        (0o777, 0o777, True),
        (0o1777, 0o777, False),
    ],
)
def test_the_cache_beside_the_sources_is_no_more_open_than_they_are(tmp_path, sources, cache, is_safe):
    (tmp_path / "package" / "__pycache__").mkdir(parents=True)
    (tmp_path / "package" / "__pycache__").chmod(cache)
    (tmp_path / "package").chmod(sources)
    assert beside_sources_is_safe(tmp_path / "package") == is_safe
