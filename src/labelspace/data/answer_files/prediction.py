"""The predicted labels of one document."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labelspace.data.records import Record


@dataclass(frozen=True, slots=True)
class Prediction:
    """A document with its labels, best first, their scores, and the JSON object that says all of it."""

    record: Record
    labels: Sequence[int]
    scores: Sequence[float]
    as_json: Mapping[str, object]
