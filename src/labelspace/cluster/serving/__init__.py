"""Serve a model from many machines: label shards of one that fits no single machine, or replicas for load.

The door is the ordinary server. It reads models by ``ClusterBackend.load`` in place of ``Tagger.load``.
"""

from labelspace.cluster.serving.backend import ClusterBackend, ServingCluster, serving

__all__ = ["ClusterBackend", "ServingCluster", "serving"]
