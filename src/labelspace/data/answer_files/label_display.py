"""Labels as they are shown: the name in a language, URI or number, notation, and path from the root."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from labelspace.errors import ParameterError
from labelspace.types import PATH_SEPARATOR, LabelSpace


class ShownLabel(NamedTuple):
    """What is shown of a label; None for what it lacks."""

    name: str
    uri: str | None
    notation: str | None
    path: str | None


class LabelDisplay:
    """The labels of a space, shown in a language if their vocabulary has names in it.

    >>> from labelspace.types import Concept
    >>> space = LabelSpace(["animals", "cats"], concepts=[Concept("ex:1"), Concept("ex:2", "02", {"fi": "kissat"})])
    >>> LabelDisplay(space, "fi").shown(1)
    ShownLabel(name='kissat', uri='ex:2', notation='02', path=None)
    """

    def __init__(self, labels: LabelSpace, language: str | None = None, are_probabilities: bool = False) -> None:
        self._labels, self._language = labels, language
        self.are_probabilities = are_probabilities  # the scores of labels
        if language is not None:
            check_language(labels, language)
        self.shown = cache(self._shown)  # the same labels come again and again

    def name(self, label: int) -> str:
        """Return the name in the language, else the label's own."""
        return self._labels.concept(label).name_in(self._language, self._labels.names[label])

    def _shown(self, label: int) -> ShownLabel:
        concept = self._labels.concept(label)
        return ShownLabel(self.name(label), concept.uri, concept.notation, self._path(label))

    def _path(self, label: int) -> str | None:
        """Return the names from the root on, by the first of several parents.

        If names are paths themselves, the path is the name.
        """
        if self._labels.hierarchy is None:
            return None
        parents, upwards = self._labels.hierarchy.parents, [label]
        while parents.indptr[upwards[-1] + 1] > parents.indptr[upwards[-1]]:
            upwards.append(int(parents.indices[parents.indptr[upwards[-1]]]))
        path = ""
        for name in map(self.name, reversed(upwards)):
            is_path = not path or name.startswith(path + PATH_SEPARATOR)
            path = name if is_path else path + PATH_SEPARATOR + name
        return path

    def names(self) -> Sequence[str]:
        """Return the names of all labels."""
        if self._language is None:
            return self._labels.names
        return [self.name(label) for label in range(len(self._labels))]

    def as_json(self, label: int, score: float) -> dict[str, Any]:
        """Return a label of an answer, given by its own name, as a JSON object without what it lacks."""
        shown = self.shown(label)
        more = {"id": shown.uri, "notation": shown.notation, "path": shown.path}
        present = {key: value for key, value in more.items() if value is not None}
        return {"label": shown.name, "score": round(score, 6), **present}


def check_language(labels: LabelSpace, language: str) -> None:
    """Raise ParameterError for a language in which no label has a name."""
    languages = {known for concept in labels.concepts or () for known in concept.names}
    if language in languages:
        return
    listed = ", ".join(sorted(languages)[:20])
    has = f"the names are in {listed}" if languages else "the labels have names in one language only"
    raise ParameterError(
        f"language must be one that the labels have names in, but is {language!r}; {has}: "
        f"{'choose one of these' if languages else 'leave it out'}",
        options=["language"],
    )
