"""Whether all workers of a server have been ready once: whoever learns that it is ready may meet any of them."""

import os
from pathlib import Path

PLACE = "LABELSPACE_SERVE_WORKER"  # the number of a worker, in its environment
FOLDER = "LABELSPACE_SERVE_READY"  # where workers leave a file each
REPLACEMENT = "LABELSPACE_SERVE_REPLACEMENT"  # 1 for a worker that takes the place of a dead one


class Readiness:
    """What this worker knows of itself and the others; without a supervisor there are no others."""

    def __init__(self, n_workers: int) -> None:
        folder = os.environ.get(FOLDER)
        self._folder, self._n_workers = None if folder is None else Path(folder), n_workers
        self._all = self._folder is None

    def mark(self) -> None:
        """This worker is ready."""
        if self._folder is not None:
            (self._folder / f"ready-{int(os.environ[PLACE])}").touch()

    @property
    def of_all(self) -> bool:
        """Whether every worker was ready once; one that takes the place of another does not listen before it is."""
        if not self._all and self._folder is not None:
            self._all = sum(1 for _ in self._folder.glob("ready-*")) >= self._n_workers
        return self._all
