"""The decorators of kernels, without wrappers that are never called: numba would take longer to compile them.

Plain loops compile faster than assignments to slices, and each type of an argument is compiled for itself: a literal 0
where a number is passed later is one more type, so write ``integer(0)``.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numba import njit
from numba.core import event

from labelspace.kernels.compilation import tell

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher

    integer = int
else:
    integer = np.int64  # a number of this type where a literal would be another type

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(**options: Any) -> Callable[[Function], Dispatcher[Function]]:  # noqa: ANN401 - options of numba
    """Compile a function that Python and other kernels call: at its first call, cached, and run without the GIL.

    One with ``fastmath`` that kernels call has ``forceinline=True``. Otherwise the linker takes the copy in its caller
    or the one compiled on its own, depending on what this process compiled, and the two may round differently.
    """
    return njit(cache=True, nogil=True, no_cfunc_wrapper=True, **options)  # type: ignore[call-overload,no-any-return]


def part(**options: Any) -> Callable[[Function], Dispatcher[Function]]:  # noqa: ANN401
    """Compile a few lines, or a piece of one kernel, into each kernel that calls it.

    A function that several kernels of a command call, or that has its own ``fastmath``, is a ``kernel``.
    """
    return kernel(inline="always", **options)


class _Listener(event.Listener):
    """Stops the garbage collector during compilation: it would look again and again through all that numba builds."""

    depth, was_enabled = 0, False

    def on_start(self, event: Any) -> None:  # noqa: ANN401
        """Start a compilation, which may be nested; numba holds a lock."""
        if self.depth == 0:
            self.was_enabled = gc.isenabled()
            gc.disable()
        self.depth += 1
        tell(_name(event), starts=True)

    def on_end(self, event: Any) -> None:  # noqa: ANN401
        """End a compilation; after the outermost start the garbage collector again."""
        self.depth -= 1
        tell(_name(event), starts=False)
        if self.depth == 0 and self.was_enabled:
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()  # moves the objects that numba built to the oldest generation: they stay
            gc.enable()


def _name(event: Any) -> str:  # noqa: ANN401
    function = event.data["dispatcher"].py_func
    return f"{function.__module__}.{function.__qualname__}"


event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]
