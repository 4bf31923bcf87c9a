"""Many machines, on Ray: training in tasks, prediction over folders of files, and label shards behind one door.

Needs the extra: pip install 'labelspace[cluster]'.
"""

from labelspace.cluster.connection import Cluster, connect
from labelspace.cluster.executor import RayExecutor

__all__ = ["Cluster", "RayExecutor", "connect"]
