"""mlc2seq: the labels of a document written one after the other, a label in one step.

Nam et al., "Maximizing Subset Accuracy with Recurrent Neural Networks in Multi-label Classification" (2017), which
SeCSeq is compared with: the setting of ``secseq`` where a code has one digit with a value for every label, so that the
last layer grows with the number of labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelspace.labels.codes import Codes
from labelspace.models.base import Aids
from labelspace.models.secseq.model import SeCSeq
from labelspace.types import Csr

CODING = {"trees", "width", "digits", "vectors", "scheme", "quantizer", "dimension"}  # there is nothing to code


class Mlc2Seq(SeCSeq):
    """Labels as a sequence.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Mlc2Seq(hidden=64, memory=32, beam=4).fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.3)
    True
    """

    name = "mlc2seq"
    title = "mlc2seq: the labels of a document as a sequence (Nam et al., 2017)"
    choose_when = "the whole set of a document's labels must be right at once, and labels are at most some thousands"
    rules = {name: rule for name, rule in SeCSeq.rules.items() if name not in CODING}

    def __init__(
        self,
        encoder: str = "bag",
        target: str = "sequence",
        order: str = "frequent",
        hidden: int = 512,
        memory: int = 256,
        word: int = 128,
        epochs: int | None = None,
        batch: int = 256,
        rate: float = 0.004,
        feature_rate: float = 0.1,
        dropout: float = 0.3,
        input_dropout: float = 0.1,
        clip: float = 10.0,
        patience: int | None = None,
        decoding: str = "beam",
        beam: int = 8,
        samples: int = 100,
        seed: int = 0,
    ) -> None:
        super().__init__(
            trees=1, digits=1, encoder=encoder, target=target, order=order, hidden=hidden, memory=memory, word=word,
            epochs=epochs, batch=batch, rate=rate, feature_rate=feature_rate, dropout=dropout,
            input_dropout=input_dropout, clip=clip, patience=patience, decoding=decoding, beam=beam, samples=samples,
            seed=seed,
        )  # fmt: skip

    def _codes(self, X: Any, Y: Csr, aids: Aids) -> list[Codes]:  # noqa: ANN401 - csr or texts
        """Each label is a digit of its own."""
        return [Codes(np.arange(Y.shape[1], dtype=np.int32)[:, None], Y.shape[1])]

    @property
    def _width(self) -> int:
        return self.n_labels_
