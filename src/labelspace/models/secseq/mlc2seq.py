"""mlc2seq: the labels of a document as a sequence, one label per step.

Nam et al., "Maximizing Subset Accuracy with Recurrent Neural Networks in Multi-label Classification" (2017), the
baseline of SeCSeq: ``secseq`` with codes of one digit that has a value per label, so that the output layer grows with
the number of labels.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from labelspace.features.views import Views
from labelspace.labels.codes import Codes
from labelspace.models.fit_context import FitContext
from labelspace.models.secseq.model import SequenceModel
from labelspace.types import Csr


class Mlc2Seq(SequenceModel):
    """Labels as a sequence.

    >>> from labelspace.data.synthetic import planted
    >>> data = planted(n=600, d=400, l=50, seed=1)
    >>> train, test = data.rows(range(500)), data.rows(range(500, 600))
    >>> model = Mlc2Seq(hidden_dim=64, decoder_dim=32, beam_size=4).fit(train.X, train.Y)
    >>> first = model.predict_topk(test.X, k=1).labels[:, 0]
    >>> bool(test.Y[np.arange(100), first].mean() > 0.3)
    True
    """

    name = "mlc2seq"
    title = "mlc2seq: the labels of a document as a sequence (Nam et al., 2017)"
    choose_when = "the label sets of documents must be exactly right, and labels are at most some thousands"

    target = SequenceModel.params["target"].with_default("sequence")
    beam_size = SequenceModel.params["beam_size"].with_default(8)

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            "encoder": "gru",  # words in order
            "decoder": "gru",  # a step per label: eq. 2 of SeCSeq
            "max_sequence": 100,  # more than the labels of any document of the paper
            "masked_softmax": False,
            "init_biases": False,
            "constrained": False,
            "scores": "count",
        }
    }

    n_estimators = 1
    code_length = 1
    shared_outputs = False
    shared_embeddings = False
    repeated_codes = False
    leaf_histogram = "shares"

    @property
    def _code_size(self) -> int:
        return self.n_labels_

    def _codes(self, views: Views, Y: Csr, context: FitContext) -> list[Codes]:
        """Each label is a digit."""
        return [Codes(np.arange(Y.shape[1], dtype=np.int32)[:, None], Y.shape[1])]
