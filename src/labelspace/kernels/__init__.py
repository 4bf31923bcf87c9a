"""Numba kernels; each has a NumPy twin in the tests.

Compiled kernels are cached beside the sources, or in the home folder. Where neither is writable, as in many
containers, they go to the folder for temporary files.
"""

import os
import sys
import tempfile
from pathlib import Path


def _set_cache_dir() -> None:
    is_writable = (os.access(path, os.W_OK) for path in (Path(__file__).parent, os.path.expanduser("~")))
    if "NUMBA_CACHE_DIR" in os.environ or any(is_writable):
        return
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    folder = str(Path(tempfile.gettempdir()) / f"labelspace-kernels-{user}")
    os.environ["NUMBA_CACHE_DIR"] = folder
    if "numba" in sys.modules:  # numba has read its settings already
        sys.modules["numba"].config.CACHE_DIR = folder


_set_cache_dir()
