"""A net of torch's modules whose weights are one array that Adam moves, on one thread.

This module needs torch: import it only where ``errors.require`` has been asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from labelspace.errors import ParameterError
from labelspace.training.optimizers import AdamParameter


class Descent:
    """The weights of a net as one array, and the way they go."""

    def __init__(self, net: nn.Module, rates: str) -> None:
        parameters = list(net.parameters())
        self.rates = rates  # the parameters to lower where it goes wrong
        self.weights = AdamParameter(np.concatenate([p.detach().numpy().ravel() for p in parameters]))
        self.gradient = np.zeros_like(self.weights.value)
        begin = 0
        for p in parameters:  # the modules' weights become views of the arrays
            end = begin + p.numel()
            p.data = torch.from_numpy(self.weights.value[begin:end]).view(p.shape)
            p.grad = torch.from_numpy(self.gradient[begin:end]).view(p.shape)
            begin = end

    def descend(self, loss: Tensor, clip: float, rate: float, number: int) -> None:
        """Move against the gradient of a loss, which is shortened to a length of ``clip``."""
        self.gradient[:] = 0.0
        loss.backward()  # type: ignore[no-untyped-call]
        with np.errstate(over="ignore", invalid="ignore"):
            length = float(np.linalg.norm(self.gradient))
        if not np.isfinite(length):
            raise ParameterError(
                f"weights must stay finite while they are learned, but the length of a gradient is {length}; "
                f"lower {self.rates}"
            )
        if length > clip:
            self.gradient *= np.float32(clip / length)
        self.weights.step(self.gradient, rate, number)


@contextmanager
def single_thread() -> Iterator[None]:
    """Hold torch to one thread: sums in another order would be other weights, and tasks have threads of their own.

    Where torch has not got the memory it asked for, that becomes Python's own error.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    except RuntimeError as error:
        if "allocate memory" in str(error):
            raise MemoryError(str(error)) from error
        raise
    finally:
        torch.set_num_threads(before)
