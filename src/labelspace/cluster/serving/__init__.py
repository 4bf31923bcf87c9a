"""Serve a model from many machines: label shards of a model that fits no single machine, or replicas for load.

The front end is the ordinary server, which loads models by ``ClusterBackend.load`` in place of ``Tagger.load``.
"""

from labelspace.cluster.serving.backend import ClusterBackend, ServingCluster, serving

__all__ = ["ClusterBackend", "ServingCluster", "serving"]
