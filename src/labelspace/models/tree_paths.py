"""Why a mean over trees of products along the paths to a label has its value.

1. In a tree, p = exp(sum of g_n) over the nodes n of the label's path. A feature has a share of every g_n: of its
   difference between the empty document and this one.
2. The score is the mean of p over the trees. Its log-odds rise with every log p, so that all shares of a tree are
   multiplied with the slope of that function between the empty document and this one.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from labelspace.models.evidence import ColumnShares, Evidence, Numbers, Step, logit, logit_of_log, slopes
from labelspace.types import Doubles, Ints

SHOWN_LABELS = 3  # labels below a node that an explanation names; more make it longer, not clearer
STEP = 1e-6  # of the difference quotient that stands for a slope at one point
LEAST_LOG = -700.0  # smallest log of a score: its exponential is still above 0 in 64 bits


class TreePath(NamedTuple):
    """The path to a label in one tree, from below the root."""

    nodes: Ints
    logs: Doubles  # (2, nodes): g for the empty document, and for this one
    by_node: Doubles  # (nodes, features): the shares of the features at each node


def margin_shares(g: Callable[[Numbers], Doubles], b: Doubles, z: Doubles, parts: Doubles) -> tuple[Doubles, Doubles]:
    """Return ``logs`` and ``by_node`` of a ``TreePath``, for the margins b of the empty document and z of this one.

    ``parts`` (nodes, features) are what the features add to the margins.
    """
    before, after = g(b), g(z)
    at_b = (g(b + STEP) - before) / STEP
    return np.stack([before, after]), parts * slopes(after, before, z, b, at_b)[:, None]


def log_sigmoid(z: Numbers) -> Doubles:
    """Return the logarithm of 1 / (1 + exp(-z))."""
    return np.asarray(-np.logaddexp(0.0, -z))


def mean_of_paths(
    paths: Sequence[TreePath], n_trees: int, columns: Ints, view: str, below: Callable[[int], Ints], weight: float = 1.0
) -> Evidence:
    """Return the evidence for a label by its paths in the trees (step 2).

    ``below`` lists the labels below a node; the score is multiplied with ``weight``.
    """
    if not paths:  # the label had no training documents
        return Evidence(logit(0.0), logit(0.0))
    sums = np.maximum([path.logs.sum(axis=1) for path in paths], LEAST_LOG)  # (trees, 2)
    before, after = np.exp(sums.T) * (weight / n_trees)
    log_odds, baseline = (logit_of_log(float(np.log(p.sum()))) for p in (after, before))
    # of the log-odds by the mean p, and of the mean by each log p
    at_once = after.sum() * (1 - min(after.sum(), 1 - STEP))
    outer = slopes(np.array(log_odds), np.array(baseline), after.sum(), before.sum(), 1 / max(at_once, STEP))
    inner = slopes(after, before, np.log(after), np.log(before), before)
    shares, steps = np.zeros(len(columns)), []
    for path, slope in zip(paths, outer * inner, strict=True):
        shares += slope * path.by_node.sum(axis=0)
        by_step = slope * path.by_node.sum(axis=1)
        for node, log_probability, share in zip(path.nodes.tolist(), path.logs[1], by_step, strict=True):
            labels = below(node)
            steps.append(Step(labels[:SHOWN_LABELS], len(labels), float(log_probability), float(share)))
    return Evidence(log_odds, baseline, {view: ColumnShares(columns, shares)}, path=steps)


def path_to(parents: Ints, node: int) -> Ints:
    """Return the nodes from below the root to ``node``.

    >>> path_to(np.array([-1, 0, 1, 1]), 3).tolist()
    [1, 3]
    """
    nodes = []
    while parents[node] >= 0:
        nodes.append(node)
        node = int(parents[node])
    return np.array(nodes[::-1], np.int32)


def labels_below(first_child: Ints, last_child: Ints, label: Ints, node: int) -> Ints:
    """Return the labels of a node and of all nodes below it, level by level, children in the order of their parents.

    >>> labels_below(np.array([1, 0, 3, 0]), np.array([3, 0, 4, 0]), np.array([-1, 7, 8, 9]), 0).tolist()
    [7, 8, 9]
    """
    below, nodes = [], np.array([node])
    while len(nodes):
        own = label[nodes]
        below.append(own[own >= 0])
        inner = nodes[last_child[nodes] > first_child[nodes]]
        nodes = np.arange(first_child[inner[0]], last_child[inner[-1]]) if len(inner) else inner
    return np.concatenate(below)
