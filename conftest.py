"""Doctests of modules that need an extra are skipped where it is not installed; long files run first."""

import gc
import os
from collections import Counter
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler.protocol import Scheduling

NEED = {
    "faiss": ["index/approximate"],
    "torch": [
        "training/torch_optimizer",
        *(f"models/secseq/{name}" for name in ("decoding", "model", "network", "objectives")),
        *(f"models/secseq/{name}" for name in ("sequence_search", "training")),
        *(f"models/text2text/{name}" for name in ("constrained_decoding", "t5", "training")),
    ],
    "optuna": ["experiment/tuning/tune", "experiment/tuning/study"],
    "rdflib": ["data/vocabularies/rdf"],
    "sklearn": [f"sklearn/{name}" for name in ("__init__", "classifier", "parameters", "scorers", "targets")],
    "transformers": [
        f"models/text2text/{name}" for name in ("model", "pretrained", "tokenization", "transformers_engine")
    ],
}

gc.disable()  # until all is collected: what is imported and collected stays, and to look through it takes seconds

collect_ignore = [
    f"src/labelspace/{name}.py" for package, names in NEED.items() if not find_spec(package) for name in names
]


def unit(nodeid: str) -> str:
    """Name the tests that stay in one process: those of a file, or all on Ray, whose cluster takes long to start."""
    return "tests/cluster" if nodeid.startswith("tests/cluster/") else nodeid.split("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one process more than cores: tests of servers, browsers and clusters mostly wait for other processes."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "Scheduling | None":
    """Return the scheduler of ``--dist loadfile`` with the units from above, or None for another ``--dist``."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduler(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid)

    return Scheduler(config, log) if config.option.dist == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort units with the most slow tests first, so that the processes which share them end together."""
    slow = Counter(unit(item.nodeid) for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[unit(item.nodeid)])


def pytest_collection_finish() -> None:
    """Freeze what is imported by now: to look through it for garbage takes half a second each time."""
    gc.freeze()
    gc.enable()
