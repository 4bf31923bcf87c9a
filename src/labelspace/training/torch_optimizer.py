"""Training of torch modules on one thread, with all weights in one array that Adam updates.

This module needs torch: import it only where ``errors.require`` has been called.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from labelspace.errors import ParameterError
from labelspace.training.optimizers import AdamParameter


class FlatAdam:
    """Adam on the weights of a torch module, which become views of one array."""

    def __init__(self, net: nn.Module, rate_names: str) -> None:
        parameters = list(net.parameters())
        self.rate_names = rate_names  # the parameters to lower where the training diverges
        self.weights = AdamParameter(np.concatenate([p.detach().numpy().ravel() for p in parameters]))
        self.gradient = np.zeros_like(self.weights.value)
        start = 0
        for p in parameters:
            stop = start + p.numel()
            p.data = torch.from_numpy(self.weights.value[start:stop]).view(p.shape)
            p.grad = torch.from_numpy(self.gradient[start:stop]).view(p.shape)
            start = stop

    def step(self, loss: Tensor, clip_norm: float, rate: float, n_steps: int) -> None:
        """Update on the gradient of a loss, clipped to a norm of ``clip_norm``."""
        self.gradient[:] = 0.0
        loss.backward()  # type: ignore[no-untyped-call]
        with np.errstate(over="ignore", invalid="ignore"):
            norm = float(np.linalg.norm(self.gradient))
        if not np.isfinite(norm):
            rule = "weights must stay finite in training"
            raise ParameterError(f"{rule}, but the norm of a gradient is {norm}; lower {self.rate_names}")
        if norm > clip_norm:
            self.gradient *= np.float32(clip_norm / norm)
        self.weights.step(self.gradient, rate, n_steps)


@contextmanager
def single_thread() -> Iterator[None]:
    """Limit torch to one thread: another order of sums would give other weights, and tasks have their own threads.

    Where torch runs out of memory, that becomes Python's ``MemoryError``.
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
