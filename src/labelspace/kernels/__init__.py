"""Numba loops, one version each, each with a NumPy twin in the tests.

Compiled kernels are kept beside the sources, or in the home folder; where neither can be written, as in many a
container, in the folder for temporary files.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def _find_cache() -> None:
    writable = (os.access(place, os.W_OK) for place in (Path(__file__).parent, os.path.expanduser("~")))
    if "NUMBA_CACHE_DIR" in os.environ or any(writable):
        return
    owner = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    folder = str(Path(tempfile.gettempdir()) / f"labelspace-kernels-{owner}")
    os.environ["NUMBA_CACHE_DIR"] = folder
    if "numba" in sys.modules:  # it has read its settings already
        sys.modules["numba"].config.CACHE_DIR = folder


_find_cache()
