"""A test of the mean of bounded numbers by betting: is at least a given share of the kept labels right?"""

import math

from labelspace.kernels.compiled import kernel
from labelspace.types import Bools, Floats

LARGEST_BET = 0.9  # of the bet that may lose all: below 1, a lost bet leaves some capital to go on with


@kernel()
def is_precise(
    probabilities: Floats, right: Bools, n_first: int, threshold: float, target: float, most: int, confidence: float
) -> bool:
    """Return whether documents show that a share of at least ``target`` of the kept labels is right.

    A document keeps its labels of at least ``threshold``, at most ``most`` of them; rows of ``probabilities`` are
    sorted best first. W_i = target * kept - right has a mean of at most 0 if the precision is reached. If it is not,
    a gambler who bets that it is, and multiplies the capital by 1 - bet * W_i, reaches 1 / (1 - confidence) times the
    capital with a probability of at most 1 - confidence, as long as each bet depends on earlier documents only. The
    first ``n_first`` documents determine the size of the first bet, and are not bet on.
    """
    n, width = probabilities.shape
    goal = 1.0 / (1.0 - confidence)
    scale, bound = 2.0 * math.log(goal) / max(n - n_first, 1), LARGEST_BET / (target * most)
    capital, squares = 1.0, target * (1.0 - target)
    for i in range(n):
        kept, hits = 0, 0
        while kept < min(most, width) and probabilities[i, kept] >= threshold:
            hits += right[i, kept]
            kept += 1
        if kept == 0:
            continue
        w = target * kept - hits
        if i >= n_first:
            capital *= 1.0 - min(math.sqrt(scale * (i + 1) / squares), bound) * w
            if capital >= goal:
                return True
        squares += w * w
    return False
