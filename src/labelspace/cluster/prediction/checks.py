"""What is refused before the work begins: an output among the input, and machines that cannot do it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from labelspace.cluster.executor import RayExecutor
from labelspace.cluster.nodes import alive_nodes, check_shared
from labelspace.cluster.prediction.output_folder import OutputFolder
from labelspace.cluster.prediction.storage import InputFile, file_system, is_local
from labelspace.cluster.prediction.tasks import PredictJob
from labelspace.errors import ClusterError, DataError
from labelspace.store.model_folder import MANIFEST

CHECKED_FILES = 1000  # that are looked for on each machine
ROOM_SECONDS = 10.0  # in which a CPU must get free


def check_apart(url: str, files: Sequence[InputFile], output: OutputFolder) -> None:
    """Refuse to write where the input is read: a restart would read it."""
    fs, root = file_system(url)
    if is_local(fs) != output.is_local:
        return
    real = os.path.realpath if output.is_local else _without_slash
    target, paths = real(output.path), [file_system(file.path)[1] for file in files]
    folders = {root, *map(os.path.dirname, paths)} if fs.isdir(root) else set()  # links may lead to other ones
    inside = any(f"{target}/".startswith(f"{real(folder)}/") for folder in folders)
    # A file is where its own name is, which may be a link, and where that leads to.
    locations = (location for path in paths for location in (real(path), f"{real(os.path.dirname(path))}/"))
    if inside or any(location.startswith(f"{target}/") for location in locations):
        raise DataError(f"--out must not be in the folder of --input, but {output.url} is; give another folder")


def _without_slash(path: str) -> str:
    return path.rstrip("/")


def check_machines(executor: RayExecutor, job: PredictJob, files: Sequence[InputFile]) -> None:
    """Refuse to begin where no CPU is free, or a machine does not see the model or the input."""
    ray: Any = import_module("ray")
    executor.check_room(threads=1)
    end = time.monotonic() + ROOM_SECONDS
    while ray.available_resources().get("CPU", 0) < 1:
        if time.monotonic() > end:
            raise ClusterError(
                f"a CPU of the cluster must be free, but all {executor.n_cpus} are in use; wait until other work is "
                "done, or add machines"
            )
        time.sleep(0.2)
    local = [file.path for file in files[:CHECKED_FILES] if is_local(file_system(file.path)[0])]
    check_shared(alive_nodes(), [str(Path(job.model, MANIFEST)), *local])
