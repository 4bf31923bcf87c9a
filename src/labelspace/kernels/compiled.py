"""The decorators of kernels, without the wrappers that nobody calls: numba would take longer to compile them.

Plain loops compile faster than assignments to slices, and each type of an argument is compiled for itself: a literal 0
where a number is passed later is one type more, so write ``integer(0)``.
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
    """A function that Python and other kernels call: compiled at its first call and cached, runs without the GIL."""
    return njit(cache=True, nogil=True, no_cfunc_wrapper=True, **options)  # type: ignore[call-overload,no-any-return]


def part(**options: Any) -> Callable[[Function], Dispatcher[Function]]:  # noqa: ANN401
    """A piece of one kernel, or a few lines: written into each kernel that calls it, and compiled with it.

    What several kernels of a command call, or what has its own ``fastmath``, is a ``kernel``.
    """
    return kernel(inline="always", **options)


class _Listener(event.Listener):
    """Python collects no garbage meanwhile: it would look again and again through all that numba builds."""

    depth, was_enabled = 0, False

    def on_start(self, event: Any) -> None:  # noqa: ANN401
        """Compilations are nested, and under a lock of numba."""
        if self.depth == 0:
            self.was_enabled = gc.isenabled()
            gc.disable()
        self.depth += 1
        tell(_name(event), starts=True)

    def on_end(self, event: Any) -> None:  # noqa: ANN401
        """Go on after the outermost."""
        self.depth -= 1
        tell(_name(event), starts=False)
        if self.depth == 0 and self.was_enabled:
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()  # into the oldest generation: what was built stays, and is not looked through as new
            gc.enable()


def _name(event: Any) -> str:  # noqa: ANN401
    function = event.data["dispatcher"].py_func
    return f"{function.__module__}.{function.__qualname__}"


event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]
