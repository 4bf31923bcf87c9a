"""What a training, and the model that comes of it, may cost."""

import re
from dataclasses import dataclass

from labelspace.errors import ParameterError

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


@dataclass(frozen=True)
class Limits:
    """Limits that a plan keeps to; None where there is none."""

    cpu_seconds: float | None = None  # of the training, all threads together
    model_mb: float | None = None  # on disk
    latency_ms: float | None = None  # of one document from its text, median

    def __bool__(self) -> bool:
        return self != Limits()

    def check(self) -> None:
        """Refuse limits that are not positive numbers."""
        named = {"--budget": self.cpu_seconds, "--max-model-mb": self.model_mb, "--max-latency-ms": self.latency_ms}
        for option, value in named.items():
            if value is not None and not 0 < value < float("inf"):
                raise ParameterError(f"{option} must be a positive number, but is {value:g}; give such a number")


def parse_duration(text: str) -> float:
    """Seconds of a duration such as 90s, 2m or 1h30m; a number alone is seconds.

    >>> parse_duration("2m"), parse_duration("1h30m"), parse_duration("90"), parse_duration("1.5m")
    (120.0, 5400.0, 90.0, 90.0)
    """
    match = DURATION.fullmatch(text.strip().lower())
    if match is None or not any(match.groups()):
        raise ParameterError(f"--budget must be a duration such as 90s, 2m or 1h30m, but is {text!r}; write one so")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return hours * UNITS["h"] + minutes * UNITS["m"] + seconds


def shown_duration(seconds: float) -> str:
    """Seconds in words.

    >>> shown_duration(42.3), shown_duration(150), shown_duration(0.42)
    ('42 s', '2 min 30 s', '0.4 s')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60} s"
