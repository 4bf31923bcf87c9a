"""Shapley values of a forest of decision trees between two rows: exact, in one pass over the nodes they tell apart.

The players are groups of columns. In a coalition, its players have the values of the row x, all others those of the
reference row r, and the worth is the forest's score. In one tree, a path to a leaf is taken if some players have the
values of x and some others those of r; with a of the former and b of the latter, the leaf's value counts for each of
the a players with (a - 1)! b! / (a + b)!, and against each of the b players with a! (b - 1)! / (a + b)!
(interventional TreeSHAP, Lundberg et al., Nature Machine Intelligence 2020, with a single reference).
"""

import numpy as np

from labelspace.kernels.compiled import integer, kernel
from labelspace.types import Doubles, Floats, Ints, Longs

UNDECIDED, FROM_X, FROM_R = 0, 1, 2


@kernel()
def forest_shapley(
    x: Floats, r: Floats, players: Ints, roots: Ints, column: Ints, threshold: Floats, left: Ints, value: Floats,
    n_players: int, factorials: Doubles, out: Doubles,
) -> None:  # fmt: skip
    """Write the Shapley value of each player to ``out``, and then the score of r and that of x.

    Node i splits ``column[i]``, -1 for a leaf, at ``threshold[i]``: left[i] up to it, left[i] + 1 above. ``players``
    has the player of each column. ``factorials`` reaches as far as a tree is deep. A tree is walked depth first; a
    level of the stack has the node, and what the walk decided there: a player, or none.
    """
    deepest = len(factorials) + 1
    nodes, decided, branch = np.empty(deepest, np.int64), np.empty(deepest, np.int64), np.empty(deepest, np.int64)
    side = np.zeros(n_players, np.int64)
    for i in range(n_players + 2):
        out[i] = 0.0
    for root in roots:
        depth, n_x, n_r = integer(0), integer(0), integer(0)
        nodes[0], decided[0], branch[0] = root, -1, 0
        while depth >= 0:
            node = nodes[depth]
            if column[node] < 0:
                add_leaf(value[node], side, n_players, n_x, n_r, factorials, out)
                depth -= 1
                continue
            player = players[column[node]]
            to_x = left[node] + (x[column[node]] > threshold[node])
            to_r = left[node] + (r[column[node]] > threshold[node])
            step = branch[depth]
            branch[depth] += 1
            if decided[depth] >= 0 and step == 1:  # back from the branch of x: now that of r
                side[player], n_x, n_r = FROM_R, n_x - 1, n_r + 1
                target = to_r
            elif step > 0:
                if decided[depth] >= 0:
                    side[player], n_r = UNDECIDED, n_r - 1
                depth -= 1
                continue
            elif to_x == to_r or side[player] == FROM_X:
                target = to_x
            elif side[player] == FROM_R:
                target = to_r
            else:
                side[player], n_x, decided[depth] = FROM_X, n_x + 1, player
                target = to_x
            depth += 1
            nodes[depth], decided[depth], branch[depth] = target, -1, 0


@kernel()
def add_leaf(value: float, side: Longs, n_players: int, n_x: int, n_r: int, factorials: Doubles, out: Doubles) -> None:
    """Add a leaf to the Shapley values of the players on its path, and to the scores of r and x."""
    if n_x == 0:
        out[n_players] += value
    if n_r == 0:
        out[n_players + 1] += value
    total = factorials[n_x + n_r]
    for player in range(n_players):
        if side[player] == FROM_X:
            out[player] += value * factorials[n_x - 1] * factorials[n_r] / total
        elif side[player] == FROM_R:
            out[player] -= value * factorials[n_x] * factorials[n_r - 1] / total
