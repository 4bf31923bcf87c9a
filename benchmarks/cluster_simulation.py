"""What 100 million labels and a billion documents would take on N machines, from constants measured here.

    python benchmarks/cluster_simulation.py [--fraction 0.1] [--labels 100000000] [--documents 1000000000]
        [--machines 16,64,256] [--cpus 16] [--memory 64] [--network 1.25] [--json FILE]

1. A label tree is trained on a part of the Amazon-670K shape (``--fraction``), its tasks one by one, each timed. That
   gives CPU seconds per document and child, and how many nodes of each level a document reaches, counted from the
   leaves; the size of the weights per label; and the seconds of a prediction.
2. The large tree has the same nodes near its leaves and more levels above. Its top is trained on one machine, each node
   on at most ``--sample`` documents; the sub-trees below are the tasks. A machine fetches the documents of a sub-tree
   from shared storage, trains it on all its CPUs, and writes its weights back.
3. Tasks go to machines as these become free, the longest first. A machine is lost every ``--days-to-failure`` on
   average, comes back after ten minutes, and its task is run again.

``label_tree`` on a cluster today puts all documents into the memory of every machine, and trains the top on all of
them: steps 2 and 3 are a plan, not what the library does. docs/scale.md says what is missing.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labelspace.data.synthetic import shaped
from labelspace.experiment.timing import latency
from labelspace.models.label_tree import LabelTree
from labelspace.models.label_tree.node_training import NodePart, NodeTraining

BRANCHING, LEAF = 16, 100
REPLACED_AFTER = 600.0  # seconds until a lost machine is replaced
TASKS_PER_MACHINE = 4


class TimedTasks:
    """Runs the tasks of a training one by one, and keeps what the parts of each level cost."""

    n_cpus = 64  # many small tasks

    def __init__(self) -> None:
        self.levels: dict[int, list[tuple[float, int]]] = {}  # by steps above the leaves: CPU s, documents x children
        self.reached: dict[int, int] = {}  # documents x nodes

    def map_unordered(
        self, task: Callable[[Any, Any], Any], shared: NodeTraining, items: Sequence[Any], whole_node: bool = False
    ) -> Iterator[tuple[int, Any]]:
        """One after the other, here."""
        height = int(shared.forest[0].level[-1])
        for at, parts in enumerate(items):
            done = []
            for part in parts:
                start = time.process_time()
                done += task(shared, [part])
                self._note(shared, part, height, time.process_time() - start)
            yield at, done

    def _note(self, training: NodeTraining, part: NodePart, height: int, seconds: float) -> None:
        tree, above = training.forest[part.tree], height - int(training.forest[part.tree].level[part.node])
        n_children = min(64, int(tree.last_child[part.node] - tree.first_child[part.node]) - part.first)
        cuts, columns = tree.cuts(part.node), training.columns[part.tree]
        documents = len(np.unique(columns.indices[columns.indptr[cuts[0]] : columns.indptr[cuts[-1]]]))
        self.levels.setdefault(above, []).append((seconds, documents * n_children))
        if part.first == 0:
            self.reached[above] = self.reached.get(above, 0) + documents


@dataclass(frozen=True)
class Constants:
    """What was measured on this machine."""

    documents: int
    labels: int
    train_cpu_s: float
    cluster_cpu_s: float  # of it, before nodes are trained
    seconds_per_pair: list[float]  # by steps above the leaves, from 1: CPU seconds per document and child
    nodes_per_document: list[float]  # by steps above the leaves, from 1
    bytes_per_label: float
    bytes_per_document: float
    predict_cpu_ms: float


def measure(fraction: float) -> Constants:
    """Train and predict on a part of the Amazon-670K shape, on one thread."""
    train, test = shaped("Amazon-670K", fraction, 0)
    assert train.X is not None
    assert test.X is not None
    small = shaped("Amazon-670K", 0.005, 0)[0]
    assert small.X is not None
    LabelTree().fit(small.X, small.Y).predict_topk(small.X[:2], 5)  # compiles
    tasks, start = TimedTasks(), time.process_time()
    model = LabelTree(branching_factor=BRANCHING, max_leaf_size=LEAF).fit(train.X, train.Y, executor=tasks)
    total = time.process_time() - start
    levels = sorted(tasks.levels)
    spent = {level: sum(seconds for seconds, _ in tasks.levels[level]) for level in levels}
    pairs = {level: sum(n for _, n in tasks.levels[level]) for level in levels}
    size = model.values_.nbytes + model.nodes_.nbytes
    row = (train.X.data.nbytes + train.X.indices.nbytes + 4 * train.Y.nnz) / len(train)
    return Constants(
        len(train), train.Y.shape[1], round(total, 1), round(total - sum(spent.values()), 1),
        [spent[level] / pairs[level] for level in levels], [tasks.reached[level] / len(train) for level in levels],
        size / train.Y.shape[1], row, latency(lambda row: model.predict_topk(row, 5), test.X)["latency_ms_p50"],
    )  # fmt: skip


@dataclass(frozen=True)
class Machines:
    """The machines, all alike."""

    n: int
    cpus: int
    memory: float  # bytes
    network: float  # bytes per second to and from shared storage, each
    days_to_failure: float


def plan(constants: Constants, labels: int, documents: int, machines: Machines, sample: int) -> dict[str, float]:
    """What is stored and moved, and the hours of each step."""
    height = 1 + math.ceil(math.log(labels / LEAF, BRANCHING))  # levels of nodes above the leaves
    cut = math.ceil(math.log(TASKS_PER_MACHINE * machines.n, BRANCHING))  # levels of the top
    n_tasks = BRANCHING**cut
    inner = range(1, height - cut + 1)  # levels of a sub-tree, by steps above the leaves
    per_document = sum(_pairs(constants, above) * _seconds(constants, above) for above in inner)
    cpu_subtrees = documents * per_document
    top_nodes = [(BRANCHING**level, height - level) for level in range(cut)]
    cpu_top = sum(min(sample, documents) * n * BRANCHING * _seconds(constants, above) for n, above in top_nodes)
    cpu_clusters = constants.cluster_cpu_s * (documents / constants.documents) * height / 4
    paths = _nodes(constants, height - cut)
    fetched = documents * paths * constants.bytes_per_document
    written = labels * constants.bytes_per_label
    per_task = fetched / n_tasks
    busy = cpu_subtrees / n_tasks / machines.cpus + (per_task + written / n_tasks) / machines.network
    hours_subtrees, lost = simulate(n_tasks, busy, machines)
    one_pass = documents * constants.bytes_per_document / (machines.n * machines.network)
    predicted = constants.predict_cpu_ms / 1000 * documents * height / 4 / (machines.n * machines.cpus)
    return {
        "machines": machines.n,
        "sub-trees": n_tasks,
        "documents in storage, GB": documents * constants.bytes_per_document / 1e9,
        "model, GB": written / 1e9,
        "a sub-tree in memory, GB": (2 * per_task + written / n_tasks) / 1e9,
        "moved, TB": (fetched + 2 * documents * constants.bytes_per_document + written) / 1e12,
        "clusters, hours": (cpu_clusters / (machines.n * machines.cpus) + 2 * one_pass) / 3600,
        "top, hours": cpu_top / (machines.n * machines.cpus) / 3600,
        "sub-trees, hours": hours_subtrees,
        "tasks run again": lost,
        "predict all documents, hours": predicted / 3600,
        "machines that hold the model": math.ceil(written / (0.5 * machines.memory)),
    }


def _nodes(constants: Constants, above: int) -> float:
    """Nodes so many steps above the leaves that a document reaches; above what was measured, as at the top there."""
    return constants.nodes_per_document[min(above, len(constants.nodes_per_document) - 1) - 1]


def _pairs(constants: Constants, above: int) -> float:
    return _nodes(constants, above) * (LEAF * 0.75 if above == 1 else BRANCHING)


def _seconds(constants: Constants, above: int) -> float:
    return constants.seconds_per_pair[min(above, len(constants.seconds_per_pair)) - 1]


def simulate(n_tasks: int, seconds: float, machines: Machines, seed: int = 0) -> tuple[float, int]:
    """Hours until all tasks are done, and how many were run again; tasks vary in size, machines fail."""
    rng = np.random.default_rng(seed)
    sizes = np.sort(rng.lognormal(-0.125, 0.5, n_tasks) * seconds)[::-1]  # mean 1: topics are of unequal size
    mean_life, free, left, again, end = machines.days_to_failure * 86400, [0.0] * machines.n, list(sizes[::-1]), 0, 0.0
    while left:
        start, task = heapq.heappop(free), left.pop()
        life = rng.exponential(mean_life)
        if life < task:
            again += 1
            left.append(task)
            heapq.heappush(free, start + life + REPLACED_AFTER)
        else:
            end = max(end, start + task)
            heapq.heappush(free, start + task)
    return end / 3600, again


def main() -> None:
    """Measure, plan for each number of machines, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fraction", type=float, default=0.1)
    parser.add_argument("--labels", type=int, default=100_000_000)
    parser.add_argument("--documents", type=int, default=1_000_000_000)
    parser.add_argument("--machines", default="16,64,256")
    parser.add_argument("--cpus", type=int, default=16)
    parser.add_argument("--memory", type=float, default=64.0, help="GB of a machine")
    parser.add_argument("--network", type=float, default=1.25, help="GB per second of a machine")
    parser.add_argument("--days-to-failure", type=float, default=30.0, help="of a machine, on average")
    parser.add_argument("--sample", type=int, default=2_000_000, help="documents that a node of the top is trained on")
    parser.add_argument("--json")
    args = parser.parse_args()
    constants = measure(args.fraction)
    print(json.dumps(asdict(constants)))
    plans = [
        plan(
            constants, args.labels, args.documents,
            Machines(n, args.cpus, args.memory * 1e9, args.network * 1e9, args.days_to_failure), args.sample,
        )
        for n in map(int, args.machines.split(","))
    ]  # fmt: skip
    for key in plans[0]:
        print("| " + " | ".join([key, *(f"{row[key]:,.4g}" for row in plans)]) + " |")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"constants": asdict(constants), "plans": plans}, file, indent=1)


if __name__ == "__main__":
    main()
