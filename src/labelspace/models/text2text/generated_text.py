"""Labels read in texts that were generated freely, by the output template; what cannot be read counts as nothing."""

from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
import scipy.sparse as sp

from labelspace.models.text2text.prompt import Prompt
from labelspace.models.text2text.targets import MISSING
from labelspace.types import Csr, Doubles, LabelSpace

WHOLE = ""  # the one "column" of labels that are not those of a table


class LabelReader:
    """Reads the labels in generated texts, and counts the texts that have something else.

    A text is compared after what the tokenizer does to any text that it encodes and decodes, such as folding spaces.
    """

    def __init__(self, prompt: Prompt, labels: LabelSpace) -> None:
        assert prompt.output is not None
        self.tokenizer, self.template, self.n_labels = prompt.tokenizer, prompt.output, len(labels)
        self.normalize = cache(lambda text: self._normalized([text])[0])
        self.counts = Counter({"documents": 0, "malformed": 0, "unknown_values": 0})
        is_table = bool(self.template.markers)
        names = [name.split(": ", 1) if is_table else [WHOLE, name] for name in labels.names]
        self.ids: dict[str, dict[str, int]] = {column: {} for column in (self.template.markers or [WHOLE])}
        for i, value in enumerate(self._normalized([value for _, value in names])):
            if value:  # not all of unknown characters
                self.ids[names[i][0]].setdefault(value, i)
        self.missing = self.normalize(MISSING) if is_table else None
        self.implied = identity = sp.identity(self.n_labels, np.float32, format="csr")
        if not is_table:  # a label of a hierarchy brings its ancestors along
            targets = prompt.targets.label_ids[:, 0]
            unseen = sp.diags(1.0 - np.isin(np.arange(self.n_labels), targets))
            self.implied = (identity[:, targets] @ prompt.targets.label_shares + unseen).tocsr().astype(np.float32)

    def read(self, text: str) -> tuple[list[int], bool, bool]:
        """The labels of a text; whether it has all markers, and whether all its values are known."""
        values = (
            self.template.read(text, self.normalize) if self.missing is not None else {WHOLE: " ".join(text.split())}
        )
        known = [(column, value) for column, value in values.items() if value in self.ids[column]]
        absent = sum(value == self.missing for column, value in values.items() if value not in self.ids[column])
        labels = [self.ids[column][value] for column, value in known]
        return labels, len(values) == len(self.ids), len(known) + absent == len(values)

    def label_scores(self, texts: Sequence[str], probabilities: Doubles) -> Csr:
        """Scores (n, n_labels): the probabilities (n, n_beams) of the texts with a label; the best text is first."""
        n, n_beams = probabilities.shape
        rows, columns, values = [], [], []
        for i, text in enumerate(texts):
            labels, is_whole, is_known = self.read(text)
            rows += [i // n_beams] * len(labels)
            columns += labels
            values += [float(probabilities[i // n_beams, i % n_beams])] * len(labels)
            if i % n_beams == 0:
                self.counts.update(documents=1, malformed=int(not is_whole), unknown_values=int(not is_known))
        scores = sp.csr_matrix((np.array(values, np.float32), (rows, columns)), shape=(n, self.n_labels))
        return (scores @ self.implied).tocsr()

    def _normalized(self, texts: Sequence[str]) -> list[str]:
        """The texts as the tokenizer gives them back."""
        return [" ".join(text.split()) for text in self.tokenizer.decode(self.tokenizer.encode(texts))]
