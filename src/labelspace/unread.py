"""Documents in which a model reads nothing: their labels are those of an empty one, which a user should know."""

from typing import Any

from scipy.sparse import csr_matrix

from labelspace.tagger import Tagger
from labelspace.tagger.answers import TagOptions, Tags

EMPTY = "is empty"
UNKNOWN = "has no word that the model knows"
PLURAL = {EMPTY: "are empty", UNKNOWN: "have no word that the model knows"}


class Unread:
    """Says of a document in which the model reads nothing why that is: its labels are those of an empty one."""

    def __init__(self, tagger: Tagger, k: int, options: TagOptions) -> None:
        empty: Any = csr_matrix((1, tagger.model.n_features_)) if tagger.ready_made else [""]
        tags = tagger.tag_batch(empty, k, **options)[0]
        self._tagger, self._empty = tagger, [label for label, _ in tags]

    def __call__(self, content: str, tags: Tags) -> str | None:
        """What is wrong with the content, a text or a row of features as text; None where nothing is."""
        if not content.strip():
            return EMPTY
        if self._tagger.ready_made or [label for label, _ in tags] != self._empty:
            return None
        return None if self._tagger.reads([content])[0] else UNKNOWN
