"""HierarchicalXC (Srinivasan, Rao and Agarwal)."""

from labelspace.models.hierarchicalxc.model import HierarchicalXC

__all__ = ["HierarchicalXC"]
