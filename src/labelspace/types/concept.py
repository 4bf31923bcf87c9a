"""The concept of a label in a vocabulary: URI, notation, names by language, hidden names and description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from labelspace.types.limits import MAX_DESCRIPTION_CHARACTERS

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Concept:
    """The URI, notation, names by language, hidden names and description of a label; each may be missing.

    Hidden names are synonyms too, which are found in texts and never shown.

    >>> concept = Concept("http://example.org/p2", "02.1", {"fi": "kissat"})
    >>> concept.name_in("fi", "cats"), concept.name_in("sv", "cats")
    ('kissat', 'cats')
    """

    uri: str | None = None
    notation: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)  # language, such as "fi" -> name
    hidden: tuple[str, ...] = ()
    description: str | None = None  # one line: a definition or a note on what the label is for

    def name_in(self, language: str | None, otherwise: str) -> str:
        """Return the name in a language, or ``otherwise`` if there is none."""
        return otherwise if language is None else self.names.get(language, otherwise)

    def to_json(self) -> dict[str, Any]:
        """Return the fields of a line of ``labels.jsonl``; missing ones are left out."""
        fields = {
            "id": self.uri,
            "notation": self.notation,
            "names": dict(self.names),
            "hidden": list(self.hidden),
            "description": self.description,
        }
        return {key: value for key, value in fields.items() if value}

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> Concept:
        """Read what ``to_json`` returned; raise a ``ValueError`` with the rule that a wrong field breaks.

        >>> Concept.from_json({"label": "cats", "notation": "02.1"}).notation
        '02.1'
        """
        uri, notation, names, hidden, description = (row.get(key) for key in FIELDS)
        for key, value in (("id", uri), ("notation", notation), ("description", description)):
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{key!r} to be a text")
        if not isinstance(names, dict | None) or not all(isinstance(name, str) for name in (names or {}).values()):
            raise ValueError("'names' to be names by language")
        if not isinstance(hidden, list | None) or not all(isinstance(name, str) for name in hidden or ()):
            raise ValueError("'hidden' to be a list of names")
        described = None if description is None else one_line(description)
        return Concept(uri or None, notation or None, names or {}, tuple(hidden or ()), described)


FIELDS = ("id", "notation", "names", "hidden", "description")
"""The fields of ``labels.jsonl`` that make a concept."""
NO_CONCEPT = Concept()


def one_line(description: str) -> str | None:
    r"""Return a description on one line, None if it is blank; raise a ``ValueError`` with the rule that it breaks.

    >>> one_line("A small\n  carnivore. "), one_line(" ")
    ('A small carnivore.', None)
    """
    line = " ".join(description.split())
    limit = MAX_DESCRIPTION_CHARACTERS
    if len(line) > limit.value:
        raise ValueError(f"a description of at most {limit.value:,} characters ({limit.raise_it})")
    if _CONTROL.search(line):
        raise ValueError("a description without control characters")
    return line or None
