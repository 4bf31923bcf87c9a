"""Two levels of categories, of which the rows have four paths; one value has two parents."""

import numpy as np
import scipy.sparse as sp

from labelspace.models.text2text.targets import build_targets
from labelspace.types import Hierarchy, LabelSpace

NAMES = ["L0: Food", "L0: Care", "L1: Tea", "L1: Rice", "L1: Soap"]
LABELS = LabelSpace(NAMES, hierarchy=Hierarchy.from_edges([[2, 0], [2, 1], [3, 0], [4, 1]], 5))
ROWS = [["L0: Food", "L1: Tea"], ["L0: Food", "L1: Rice"], ["L0: Care", "L1: Tea"], ["L0: Care", "L1: Soap"]]


def small_targets():
    Y = sp.csr_matrix(np.array([[name in row for name in NAMES] for row in ROWS], np.float32))
    return build_targets(Y, LABELS)[0]
