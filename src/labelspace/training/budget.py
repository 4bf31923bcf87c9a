"""A budget of CPU seconds for a training."""

import time
from collections.abc import Callable


class Budget:
    """CPU seconds that a training may take, of all threads together, from now on; what it left out is noted here."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.process_time) -> None:
        self.seconds, self.clock = seconds, clock
        self.expected: dict[str, float] = {}  # CPU seconds of parts of the training
        self.left_out: list[str] = []  # to keep to it
        self._start = clock()

    @property
    def spent(self) -> float:
        """CPU seconds since it was made."""
        return self.clock() - self._start

    @property
    def left(self) -> float:
        """CPU seconds that remain; negative where it is exceeded."""
        return self.seconds - self.spent
