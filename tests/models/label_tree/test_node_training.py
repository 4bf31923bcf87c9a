"""Tasks of a training, in one process: no cluster is needed to see that they make the same model."""

import numpy as np

from labelspace.data.synthetic import planted
from labelspace.models.label_tree import LabelTree
from labelspace.models.label_tree.node_training import NodePart, split_evenly
from tests.fake_executor import FakeExecutor


def test_the_order_of_tasks_changes_nothing():
    data = planted(n=400, d=200, l=150, seed=3)
    for params in ({}, {"hard_negatives": 3}, {"n_estimators": 2, "loss": "logistic"}):
        executor, settings = FakeExecutor(), {"max_leaf_size": 5, "branching_factor": 4, **params}
        here = LabelTree(**settings).fit(data.X, data.Y)
        there = LabelTree(**settings).fit(data.X, data.Y, executor=executor)
        assert max(n_tasks for n_tasks, _ in executor.calls) > 4
        for name in ("values_", "scales_", "nodes_", "starts_", "bias_", "first_child_", "label_"):
            np.testing.assert_array_equal(getattr(there, name), getattr(here, name))


def test_parts_are_split_by_cost_in_their_order():
    parts = [NodePart(0, node, 0) for node in range(100)]
    tasks = split_evenly(parts, lambda part: 1 + part.node % 3, n_tasks=10)
    assert [part for task in tasks for part in task] == parts
    costs = [sum(1 + part.node % 3 for part in task) for task in tasks]
    assert max(costs) <= 20
    assert len(tasks) <= 12
    assert split_evenly([], lambda part: 1, 5) == []
