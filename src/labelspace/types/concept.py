"""What a vocabulary says of a label beside its name and synonyms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Concept:
    """The URI, the notation, the names by language and the hidden names of a label; each may be missing.

    Hidden names are synonyms too, which are found in texts and never shown.

    >>> concept = Concept("http://example.org/p2", "02.1", {"fi": "kissat"})
    >>> concept.name_in("fi", "cats"), concept.name_in("sv", "cats")
    ('kissat', 'cats')
    """

    uri: str | None = None
    notation: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)  # language, such as "fi" -> name
    hidden: tuple[str, ...] = ()

    def name_in(self, language: str | None, otherwise: str) -> str:
        """The name in a language, or another where there is none."""
        return otherwise if language is None else self.names.get(language, otherwise)

    def to_json(self) -> dict[str, Any]:
        """The fields of a line of ``labels.jsonl``; what is missing is left out."""
        fields = {"id": self.uri, "notation": self.notation, "names": dict(self.names), "hidden": list(self.hidden)}
        return {key: value for key, value in fields.items() if value}

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> Concept:
        """What ``to_json`` gave; a ``ValueError`` says which field is wrong, by its rule.

        >>> Concept.from_json({"label": "cats", "notation": "02.1"}).notation
        '02.1'
        """
        uri, notation, names, hidden = (row.get(key) for key in ("id", "notation", "names", "hidden"))
        for key, value in (("id", uri), ("notation", notation)):
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{key!r} to be a text")
        if names is not None and not (
            isinstance(names, dict) and all(isinstance(name, str) for name in names.values())
        ):
            raise ValueError("'names' to be names by language")
        if hidden is not None and not (isinstance(hidden, list) and all(isinstance(name, str) for name in hidden)):
            raise ValueError("'hidden' to be a list of names")
        return Concept(uri or None, notation or None, names or {}, tuple(hidden or ()))


NO_CONCEPT = Concept()
