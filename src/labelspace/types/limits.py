"""Limits on the input, so that a small file cannot fill the memory; an environment variable raises each limit."""

import os
from dataclasses import dataclass

from labelspace.errors import ParameterError

_MAX_DIGITS = 18  # so that a limit fits into 64 bits


@dataclass(frozen=True)
class Limit:
    """A default, and the environment variable that replaces it.

    >>> Limit("LABELSPACE_MAX_LEVELS", 1000).raise_it
    'set LABELSPACE_MAX_LEVELS to allow more'
    """

    variable: str
    default: int

    @property
    def value(self) -> int:
        """Return the limit that applies now."""
        given = os.environ.get(self.variable, "").strip()
        if not given:
            return self.default
        if not given.isdecimal() or len(given) > _MAX_DIGITS or int(given) < 1:
            rule = f"{self.variable} must be an integer of at least 1 and at most {_MAX_DIGITS} digits"
            raise ParameterError(f"{rule}, but is {given[:40]!r}; set it to {self.default}, or unset it")
        return int(given)

    @property
    def raise_it(self) -> str:
        """Return the remedy for an error message."""
        return f"set {self.variable} to allow more"


MAX_LINE_BYTES = Limit("LABELSPACE_MAX_LINE_BYTES", 64 * 2**20)
"""Bytes of a line, or of a CSV row over several lines."""
MAX_LABELS = Limit("LABELSPACE_MAX_LABELS", 5_000_000)
"""Labels without names, if a file has fewer label occurrences; the largest public data sets have 3 million."""
MAX_FEATURES = Limit("LABELSPACE_MAX_FEATURES", 2**24)
"""Columns of features, if a file has fewer values; the largest public data sets have 2 million."""
MAX_LEVELS = Limit("LABELSPACE_MAX_LEVELS", 1000)
"""Levels of a hierarchy, and steps of a path."""
MAX_ANCESTORS = Limit("LABELSPACE_MAX_ANCESTORS", 50_000_000)
"""Pairs of a label, or of a label of a document, and an ancestor, if there are over ``ANCESTORS_PER_LABEL`` of each."""
ANCESTORS_PER_LABEL = 32  # always allowed: real hierarchies have a few levels
MAX_PATH_CHARACTERS = Limit("LABELSPACE_MAX_PATH_CHARACTERS", 2**29)
"""Characters of all prefixes that become labels because label names are paths."""
MAX_SELECTION_CHARACTERS = Limit("LABELSPACE_MAX_SELECTION_CHARACTERS", 64 * 2**20)
"""Characters of a file with the labels that answers may have, or may not have."""
MAX_RDF_BYTES = Limit("LABELSPACE_MAX_RDF_BYTES", 2**30)
"""Bytes of a vocabulary in Turtle, RDF/XML or JSON-LD, which is read into memory as a whole."""
MAX_DESCRIPTION_CHARACTERS = Limit("LABELSPACE_MAX_DESCRIPTION_CHARACTERS", 10_000)
"""Characters of the description of a label."""
