"""NeuralXC (Srinivasan, Rao and Agarwal)."""

from labelspace.models.neuralxc.model import NeuralXC

__all__ = ["NeuralXC"]
