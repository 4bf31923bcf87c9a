"""Average-link clustering of a sparse graph by chains of nearest neighbors.

Two clusters are as similar as their labels are on average: the sum of the similarities between them over the product
of their sizes. A merged cluster is no closer to a third than the nearer of its two parts was, so two clusters that are
nearest to each other may be merged at once, in any order: a chain from each cluster to its nearest ends at such two.

An edge e between clusters is two half-edges, 2e and 2e + 1. Each cluster holds its own in a pairing heap by sum / size
of the other cluster, which its own growth leaves alone: a hub does not touch its edges when it takes in one label after
another. The growth of the other lowers what is right; a key may be too high until it comes to the root. A hash table
finds the edge of two clusters, so that merging costs only the edges of the one that has fewer.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.types import Doubles, Ints, Longs

# Of a half-edge in its heap: the first child, the next sibling, the previous one or the parent; and where it leads to.
# They are columns of one array because they are read together.
CHILD, AFTER, BEFORE, TARGET = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def meld(x: int, y: int, keys: Doubles, links: Ints) -> int:
    """Two heaps as one, given and returned by their roots; -1 is an empty heap."""
    if x < 0:
        return y
    if y < 0:
        return x
    if keys[x] < keys[y] or (keys[x] == keys[y] and y < x):
        x, y = y, x
    first = links[x, CHILD]
    links[y, AFTER], links[y, BEFORE], links[x, CHILD] = first, x, y
    if first >= 0:
        links[first, BEFORE] = y
    return x


@njit(cache=True, nogil=True)
def without_root(x: int, keys: Doubles, links: Ints) -> int:
    """What is left of a heap below its root x: children are melded in twos, then from the last to the first."""
    y, pairs = links[x, CHILD], -1
    links[x, CHILD] = -1
    while y >= 0:
        z = links[y, AFTER]
        rest = links[z, AFTER] if z >= 0 else -1
        links[y, AFTER] = -1
        if z >= 0:
            links[z, AFTER] = -1
        winner = meld(y, z, keys, links)
        links[winner, AFTER] = pairs
        pairs, y = winner, rest
    root = -1
    while pairs >= 0:
        rest = links[pairs, AFTER]
        links[pairs, AFTER] = -1
        root = meld(root, pairs, keys, links)
        pairs = rest
    if root >= 0:
        links[root, BEFORE] = -1
    return root


@njit(cache=True, nogil=True)
def cut_out(x: int, links: Ints) -> None:
    """Part a half-edge that is no root, with what is below it, from its heap."""
    previous, following = links[x, BEFORE], links[x, AFTER]
    if links[previous, CHILD] == x:
        links[previous, CHILD] = following
    else:
        links[previous, AFTER] = following
    if following >= 0:
        links[following, BEFORE] = previous
    links[x, AFTER], links[x, BEFORE] = -1, -1


@njit(cache=True, nogil=True)
def removed(root: int, x: int, keys: Doubles, links: Ints) -> int:
    """The heap without half-edge x."""
    if x == root:
        return without_root(x, keys, links)
    cut_out(x, links)
    return meld(root, without_root(x, keys, links), keys, links)


@njit(cache=True, nogil=True)
def raised(root: int, x: int, key: float, keys: Doubles, links: Ints) -> int:
    """The heap after the key of x rose to at least ``key``."""
    if keys[x] >= key:
        return root
    keys[x] = key
    if x == root:
        return root
    cut_out(x, links)
    return meld(root, x, keys, links)


@njit(cache=True, nogil=True, inline="always")
def home(a: int, b: int, table: Ints) -> int:
    """Where the search for the edge of two clusters begins."""
    pair = np.uint64(min(a, b)) << np.uint64(32) | np.uint64(max(a, b))
    mixed = (pair ^ (pair >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return int(np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(len(table) - 1)))


@njit(cache=True, nogil=True)
def lookup(a: int, b: int, table: Ints, links: Ints) -> int:
    """Where in the table the edge of two clusters stands, or the empty place where it would."""
    at = home(a, b, table)
    while table[at] >= 0:
        one, other = links[2 * table[at], TARGET], links[2 * table[at] + 1, TARGET]
        if (one == a and other == b) or (one == b and other == a):
            break
        at = (at + 1) & (len(table) - 1)
    return at


@njit(cache=True, nogil=True)
def erase(at: int, table: Ints, links: Ints) -> None:
    """Empty a place of the table; those that were pushed past it move up."""
    mask = len(table) - 1
    table[at] = -1
    place = (at + 1) & mask
    while table[place] >= 0:
        wanted = home(links[2 * table[place], TARGET], links[2 * table[place] + 1, TARGET], table)
        if (place - wanted) & mask >= (place - at) & mask:
            table[at], table[place] = table[place], -1
            at = place
        place = (place + 1) & mask


@njit(cache=True, nogil=True)
def absorb(
    a: int, b: int, sizes: Longs, degrees: Longs, totals: Doubles,
    roots: Ints, keys: Doubles, links: Ints, table: Ints,
) -> None:  # fmt: skip
    """Give the edges of cluster b to a, and add up those to the same cluster."""
    sizes[a] += sizes[b]
    x, last = roots[b], roots[b]
    roots[b], degrees[b] = -1, 0
    while x >= 0:
        if links[x, CHILD] >= 0:  # the heap is read out as one list: children go to its end
            links[last, AFTER] = links[x, CHILD]
            while links[last, AFTER] >= 0:
                last = links[last, AFTER]
        following, edge, k = links[x, AFTER], x >> 1, links[x, TARGET]
        links[x, :TARGET] = -1
        erase(lookup(b, k, table, links), table, links)
        at = lookup(a, k, table, links)
        if k == a:
            roots[a] = removed(roots[a], x ^ 1, keys, links)
            degrees[a] -= 1
        elif table[at] < 0:
            links[x ^ 1, TARGET], table[at] = a, edge
            keys[x] = totals[edge] / sizes[k]
            roots[a] = meld(roots[a], x, keys, links)
            degrees[a] += 1
        else:
            same = table[at]
            y = 2 * same if links[2 * same, TARGET] == k else 2 * same + 1
            totals[same] += totals[edge]
            roots[a] = raised(roots[a], y, totals[same] / sizes[k], keys, links)
            roots[k] = removed(roots[k], x ^ 1, keys, links)
            roots[k] = raised(roots[k], y ^ 1, totals[same] / sizes[a], keys, links)
            degrees[k] -= 1
        x = following


@njit(cache=True, nogil=True)
def nearest(a: int, sizes: Longs, totals: Doubles, roots: Ints, keys: Doubles, links: Ints) -> int:
    """The half-edge of a cluster to the one that is most similar on average; keys that are too high are put right."""
    while True:
        x = int(roots[a])
        key = totals[x >> 1] / sizes[links[x, TARGET]]
        if keys[x] <= key:
            return x
        rest = without_root(x, keys, links)
        keys[x] = key
        roots[a] = meld(rest, x, keys, links)


@njit(cache=True, nogil=True)
def heaps(ends: Ints, totals: Doubles, sizes: Longs) -> tuple[Ints, Longs, Doubles, Ints, Ints]:
    """The heap of each cluster and how many edges it has, the keys and links of half-edges, and the hash table."""
    m, n_edges, capacity = len(sizes), len(ends), 2
    while capacity < 2 * n_edges:
        capacity *= 2
    roots, degrees, table = np.full(m, -1, np.int32), np.zeros(m, np.int64), np.full(capacity, -1, np.int32)
    keys, links = np.empty(2 * n_edges, np.float64), np.full((2 * n_edges, 4), -1, np.int32)
    for x in range(2 * n_edges):
        own, other = ends[x >> 1, x & 1], ends[x >> 1, 1 - (x & 1)]
        links[x, TARGET], keys[x] = other, totals[x >> 1] / sizes[other]
        roots[own] = meld(roots[own], x, keys, links)
        degrees[own] += 1
    for edge in range(n_edges):
        table[lookup(ends[edge, 0], ends[edge, 1], table, links)] = edge
    return roots, degrees, keys, links, table


@njit(cache=True, nogil=True)
def link_average(ends: Ints, totals: Doubles, sizes: Longs) -> tuple[Ints, Doubles]:
    """The merges of average link until no edge is left, and the mean similarity of each, as they were found.

    ``ends`` (n_edges, 2) are the clusters of each edge, ``totals`` the sums of similarities, ``sizes`` the labels of
    each cluster; the last two are used up. Merge j of m clusters makes node m + j. No mean is above one within.
    """
    m = len(sizes)
    roots, degrees, keys, links, table = heaps(ends, totals, sizes)
    nodes, children = np.arange(m).astype(np.int32), np.empty((max(m - 1, 0), 2), np.int32)
    means, done, start, depth = np.full(2 * m, np.inf), 0, 0, 0
    chain, steps = np.empty(m, np.int32), np.empty(m, np.int32)  # steps: the half-edge that led to a cluster
    while True:
        if depth == 0:
            while start < m and roots[start] < 0:
                start += 1
            if start == m:
                break
            chain[0], depth = start, 1
        a = chain[depth - 1]
        x = nearest(a, sizes, totals, roots, keys, links)
        back = steps[depth - 1] ^ 1
        if depth == 1 or totals[back >> 1] / sizes[links[back, TARGET]] < keys[x]:
            chain[depth], steps[depth] = links[x, TARGET], x
            depth += 1
            continue
        b = links[back, TARGET]
        depth -= 2
        mean = totals[back >> 1] / (sizes[a] * sizes[b])
        # A sum rounded up must not lift a merge above those it is made of.
        means[m + done] = min(mean, means[nodes[a]], means[nodes[b]])
        children[done, 0], children[done, 1] = nodes[a], nodes[b]
        if degrees[a] < degrees[b]:
            a, b = b, a
        absorb(a, b, sizes, degrees, totals, roots, keys, links, table)
        nodes[a] = m + done
        done += 1
    return children[:done], means[m : m + done]
