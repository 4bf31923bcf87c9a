"""A Tagger whose questions are answered by replicas of it on other machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, Unpack

from labelspace.cluster.serving.asking import Replicas
from labelspace.data.objects.inputs import Documents
from labelspace.explain import Explanation
from labelspace.labels.tag_options import TagOptions
from labelspace.tagger import Tagger, Text
from labelspace.tagger.answers import Answers
from labelspace.types import Csr, TopK


class ReplicatedTagger(Tagger):
    """Sends texts to the replica with the least to do; labels and their names are those of the model here."""

    _replicas: Replicas

    @classmethod
    def of(cls, tagger: Tagger, replicas: Replicas) -> Self:
        """A tagger with replicas; it is memory-mapped here too, and hardly read."""
        made = cls(tagger.model)
        made.__dict__.update(tagger.__dict__)
        made._replicas = replicas
        return made

    def answers(
        self, inputs: Documents, k: int = 5, *, calibrated: bool = False, **options: Unpack[TagOptions]
    ) -> Answers:
        """The answers of a replica."""
        found: Answers = self._replicas.ask("answers", inputs, k, calibrated=calibrated, **options)
        return found

    def explain(self, text: Text | Csr, labels: Sequence[str] | None = None, k: int = 3) -> list[Explanation]:
        """The reasons of a replica."""
        found: list[Explanation] = self._replicas.ask("explain", text, labels, k)
        return found

    def predict_members(self, inputs: Documents, k: int = 5) -> dict[str, TopK]:
        """The answers of the members of a replica."""
        found: dict[str, TopK] = self._replicas.ask("predict_members", inputs, k)
        return found
