"""Use many machines, on Ray: train in tasks, predict for folders of files, and serve label shards.

Needs the extra: pip install 'labelspace[cluster]'.
"""

from labelspace.cluster.connection import Cluster, connect
from labelspace.cluster.executor import RayExecutor

__all__ = ["Cluster", "RayExecutor", "connect"]
