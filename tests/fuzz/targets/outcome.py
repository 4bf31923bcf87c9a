"""Outcomes of a case: answered and refused are right, all others are findings."""

import traceback
from collections.abc import Callable, Iterator
from typing import Any

from labelspace.errors import LabelspaceError

NUMBA_BOUNDS = "index is out of bounds"  # the message of a kernel compiled with bounds checking; numpy's is longer
ANSWERED, REFUSED = "answered", "refused"
CRASH, OUT_OF_BOUNDS, HANG, TRACEBACK, MEMORY, BAD = (
    "crash", "out of bounds", "hang", "traceback", "memory", "bad answer"
)  # fmt: skip
FINDINGS = (CRASH, OUT_OF_BOUNDS, HANG, TRACEBACK, MEMORY, BAD)
OUTCOMES = (ANSWERED, REFUSED, *FINDINGS)


class BadAnswerError(Exception):
    """An answer that no right model gives."""


class Attempts:
    """Calls that may be refused; what a refusal looks like is checked."""

    def __init__(self) -> None:
        self.answers = 0
        self.refusal = ""

    def __call__(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any call
        """What the call returns, or None where it refuses."""
        try:
            answer = call(*args, **kwargs)
        except LabelspaceError as error:
            check_refusal(error)
            self.refusal = self.refusal or f"{type(error).__name__}: {error}"
            return None
        self.answers += 1
        return answer

    @property
    def outcome(self) -> tuple[str, str]:
        """Answered if any call was."""
        return (ANSWERED, "") if self.answers else (REFUSED, self.refusal)


def check_refusal(error: LabelspaceError) -> None:
    """One line, and not made of a kernel that read out of bounds."""
    if len(str(error).splitlines()) != 1:
        raise BadAnswerError(f"a message must be one line, but is {str(error)[:300]!r}")
    for cause in chain(error):
        if is_out_of_bounds(cause):
            raise cause


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def is_out_of_bounds(error: BaseException) -> bool:
    """Whether a kernel compiled with bounds checking raised it."""
    return isinstance(error, IndexError) and str(error) == NUMBA_BOUNDS


def outcome_of(run: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """The outcome of a case and, of a finding, what happened and where."""
    try:
        return run()
    except BadAnswerError as error:
        return BAD, str(error)
    except MemoryError as error:
        return MEMORY, located(error)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is a finding
        return (OUT_OF_BOUNDS if is_out_of_bounds(error) else TRACEBACK), located(error)


def located(error: BaseException) -> str:
    """An exception and the places of the library that it came through, innermost first."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if "labelspace" in f.filename and "tests" not in f.filename
    ]
    places = [
        f"{frame.filename.rpartition('labelspace/')[2]}:{frame.lineno} {frame.name}" for frame in frames[::-1][:4]
    ]
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]} at {' < '.join(places)}"
