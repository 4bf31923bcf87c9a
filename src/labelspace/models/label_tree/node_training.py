"""Training the nodes of trees: some children of a node at a time, on this machine or another."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from labelspace.kernels import large_arrays, tree_classifiers
from labelspace.kernels.csr_arrays import csr_arrays
from labelspace.kernels.threads import run_blocks
from labelspace.labels.tree import PartitionTree
from labelspace.models.fit_context import Executor
from labelspace.models.label_tree.weight_parts import WeightParts
from labelspace.types import Csr, Floats, Ints, Longs

CHILD_BLOCK = 64  # children per part: a wide node is work for several threads
TASKS_PER_CPU = 8  # tasks for each CPU of a cluster: few cost little, many leave no CPU waiting long for the last
NO_DOCUMENTS: Ints = np.zeros(0, np.int32)


class NodePart(NamedTuple):
    """Some children of a node: the number of its tree, its own, and the first child."""

    tree: int
    node: int
    first: int
    negatives: Ints = NO_DOCUMENTS  # hard negatives, besides the documents that reach the node


class TrainedPart(NamedTuple):
    """The classifiers of adjacent nodes."""

    begin: int  # the first of them
    features: Ints
    weights: Floats
    sizes: Longs  # weights of each
    biases: Floats


@dataclass(frozen=True)
class NodeTraining:
    """The documents, the trees and the settings that all parts share."""

    X: Csr
    columns: list[sp.csc_matrix]  # for each tree, the documents of the labels in the order of its leaves
    forest: list[PartitionTree]
    roots: Ints  # of the trees, among the nodes of all
    options: tree_classifiers.ClassifierOptions
    random_state: int

    def parts_of(self, tree: int, node: int, negatives: Ints = NO_DOCUMENTS) -> list[NodePart]:
        """Return the parts of a node."""
        n_children = int(self.forest[tree].last_child[node] - self.forest[tree].first_child[node])
        return [NodePart(tree, node, first, negatives) for first in range(0, n_children, CHILD_BLOCK)]

    def train(self, part: NodePart) -> TrainedPart:
        """Train the classifiers of a part."""
        tree, below = self.forest[part.tree], self.columns[part.tree]
        new_column, row_index = self._scratch
        documents = tree_classifiers.node_training_set(
            below.indices, below.indptr, tree.cuts(part.node), part.node == 0, part.negatives, row_index
        )
        root = int(self.roots[part.tree])
        documents = documents._replace(ends=documents.ends[part.first : part.first + CHILD_BLOCK + 1])
        size = tree_classifiers.count_entries(self.X.indptr, documents.rows)
        values, columns = large_arrays.working(size, np.float32, np.int32)
        scratch = tree_classifiers.NodeScratch(new_column, values, columns)
        seed = self.random_state + root + part.node + part.first
        trained = tree_classifiers.train_children(csr_arrays(self.X), documents, self.options, seed, scratch)
        features, weights, stops, biases = trained
        begin = root + int(tree.first_child[part.node]) + part.first
        return TrainedPart(begin, features, weights, np.diff(stops), biases)

    def cost(self, part: NodePart) -> int:
        """Estimate how long a part takes: documents that reach the node, times children."""
        cuts, starts = self.forest[part.tree].cuts(part.node), self.columns[part.tree].indptr
        n_children = min(CHILD_BLOCK, len(cuts) - 1 - part.first)
        return (int(starts[cuts[-1]] - starts[cuts[0]]) + len(part.negatives) + 1) * n_children

    @property
    def _scratch(self) -> tuple[Ints, Ints]:
        """The buffers of a thread: one number per feature, and one per document."""
        mine = self._of_threads
        if not hasattr(mine, "buffers"):
            mine.buffers = np.full(self.X.shape[1], -1, np.int32), np.full(self.X.shape[0], -1, np.int32)
        buffers: tuple[Ints, Ints] = mine.buffers
        return buffers

    @cached_property
    def _of_threads(self) -> threading.local:
        return threading.local()


def train_parts(
    training: NodeTraining,
    parts: Sequence[NodePart],
    add: Callable[[TrainedPart], None],
    executor: Executor | None,
    progress: Callable[[int, int], None],
) -> None:
    """Train parts on the threads of this process, or on other machines; ``add`` is called with each, in any order."""
    if executor is None:
        run_blocks(lambda start, stop: add(training.train(parts[start])), len(parts), 1, progress)
        return
    done, tasks = 0, split_evenly(parts, training.cost, TASKS_PER_CPU * executor.n_cpus)
    for at, trained in executor.map_unordered(train_some, training, tasks):
        for part in trained:
            add(part)
        done += len(tasks[at])
        progress(done, len(parts))


def train_some(training: NodeTraining, parts: Sequence[NodePart]) -> list[TrainedPart]:
    """Train some parts, one after the other: a task of a cluster."""
    return [training.train(part) for part in parts]


def split_evenly(parts: Sequence[NodePart], cost: Callable[[NodePart], int], n_tasks: int) -> list[Sequence[NodePart]]:
    """Split parts, in their order, into tasks of about equal cost; a part that costs more is a task of its own.

    >>> parts = [NodePart(0, node, 0) for node in (0, 1, 2, 3)]
    >>> [len(task) for task in split_evenly(parts, lambda part: 10 if part.node == 0 else 2, n_tasks=3)]
    [1, 3]
    """
    costs = [cost(part) for part in parts]
    share = max(1, -(-sum(costs) // n_tasks))
    return list(_cut(parts, costs, share))


def _cut(parts: Sequence[NodePart], costs: Sequence[int], share: int) -> Iterator[Sequence[NodePart]]:
    start, filled = 0, 0
    for at, part_cost in enumerate(costs):
        if at > start and filled + part_cost > share:
            yield parts[start:at]
            start, filled = at, 0
        filled += part_cost
    if start < len(parts):
        yield parts[start:]


class TrainedNodes:
    """The trained classifiers of all nodes, added from any thread in any order."""

    def __init__(self, n_nodes: int, parts: WeightParts) -> None:
        self.parts, self.biases, self.sizes = parts, np.zeros(n_nodes, np.float32), np.zeros(n_nodes, np.int64)

    def add(self, part: TrainedPart) -> None:
        """Keep the classifiers of a part."""
        nodes = slice(part.begin, part.begin + len(part.biases))
        self.biases[nodes], self.sizes[nodes] = part.biases, part.sizes
        self.parts.add(part.begin, part.features, part.weights)
