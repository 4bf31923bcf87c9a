"""Memory that was freed goes back to the system: loading needs more than serving, and a server serves for long."""

import ctypes
import gc
import sys


def release_freed_memory() -> None:
    """Give back what Python and the C library keep for later, where they can."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of the GNU C library
        if trim is not None:
            trim(0)
