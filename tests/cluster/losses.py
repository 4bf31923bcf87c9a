"""What is lost in the middle of a task."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class KilledOnce:
    """A task of which the first process is killed when its work is nearly done; ``killed`` is written then."""

    task: Any
    killed: Path

    def __call__(self, shared, item):
        result = self.task(shared, item)
        try:
            self.killed.touch(exist_ok=False)
        except FileExistsError:
            return result
        os.kill(os.getpid(), signal.SIGKILL)
