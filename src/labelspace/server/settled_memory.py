"""What is done once a model is loaded, for a server that serves it for long."""

import ctypes
import gc
import sys


def settle_memory() -> None:
    """Give freed memory back to the system, and let Python look for garbage only in what comes from now on.

    Loading needs more memory than serving. A search through all modules and models takes a tenth of a second, in which
    no request is answered.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of the GNU C library
        if trim is not None:
            trim(0)
