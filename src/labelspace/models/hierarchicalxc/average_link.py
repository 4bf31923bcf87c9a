"""Kernels of HierarchicalXC: average-link clustering of a sparse graph by nearest-neighbor chains.

The similarity of two clusters is the mean over pairs of their labels: the sum of similarities between them over the
product of their sizes. A merged cluster is no closer to a third one than the nearer of its two parts was, so two
clusters that are nearest to each other may be merged at once, in any order (a chain of nearest neighbors ends there).

An edge e between clusters is two half-edges, 2e and 2e + 1. Each cluster stores its half-edges in a pairing heap with
the key sum / size of the other cluster, which does not change when the cluster itself grows: a hub does not touch its
edges when it absorbs one label after another. When the other cluster grows the correct key falls; a key may be too high
until it reaches the root. A hash table maps two clusters to their edge, so a merge costs only the edges of the cluster
that has fewer.
"""

from typing import NamedTuple

import numpy as np

from labelspace.kernels.compiled import kernel, part
from labelspace.types import Doubles, Ints, Longs

# Columns of a half-edge: first child, next sibling, previous sibling or parent, and the cluster it leads to.
# One array, because they are read together.
CHILD, NEXT, PREVIOUS, TARGET = 0, 1, 2, 3


class Heaps(NamedTuple):
    """The heap root and the degree of each cluster, keys and links of the half-edges, and the hash table of edges."""

    roots: Ints
    degrees: Longs
    keys: Doubles
    links: Ints  # (half-edges, 4)
    table: Ints


@kernel()
def merge_heaps(x: int, y: int, keys: Doubles, links: Ints) -> int:
    """Merge two heaps, given by their roots (-1 is an empty heap), and return the new root."""
    if x < 0:
        return y
    if y < 0:
        return x
    if keys[x] < keys[y] or (keys[x] == keys[y] and y < x):
        x, y = y, x
    first = links[x, CHILD]
    links[y, NEXT], links[y, PREVIOUS], links[x, CHILD] = first, x, y
    if first >= 0:
        links[first, PREVIOUS] = y
    return x


@kernel()
def pop_root(x: int, keys: Doubles, links: Ints) -> int:
    """Remove the root x and return the new root: children are merged in pairs, then from the last pair to the first."""
    y, merged_pairs = links[x, CHILD], -1
    links[x, CHILD] = -1
    while y >= 0:
        z = links[y, NEXT]
        remaining = links[z, NEXT] if z >= 0 else -1
        links[y, NEXT] = -1
        if z >= 0:
            links[z, NEXT] = -1
        winner = merge_heaps(y, z, keys, links)
        links[winner, NEXT] = merged_pairs
        merged_pairs, y = winner, remaining
    root = -1
    while merged_pairs >= 0:
        remaining = links[merged_pairs, NEXT]
        links[merged_pairs, NEXT] = -1
        root = merge_heaps(root, merged_pairs, keys, links)
        merged_pairs = remaining
    if root >= 0:
        links[root, PREVIOUS] = -1
    return root


@kernel()
def cut(x: int, links: Ints) -> None:
    """Detach a half-edge that is not the root, with its subtree, from its heap."""
    previous, next_sibling = links[x, PREVIOUS], links[x, NEXT]
    if links[previous, CHILD] == x:
        links[previous, CHILD] = next_sibling
    else:
        links[previous, NEXT] = next_sibling
    if next_sibling >= 0:
        links[next_sibling, PREVIOUS] = previous
    links[x, NEXT], links[x, PREVIOUS] = -1, -1


@kernel()
def remove(root: int, x: int, keys: Doubles, links: Ints) -> int:
    """Remove half-edge x and return the new root."""
    if x == root:
        return pop_root(x, keys, links)
    cut(x, links)
    return merge_heaps(root, pop_root(x, keys, links), keys, links)


@kernel()
def increase_key(root: int, x: int, key: float, keys: Doubles, links: Ints) -> int:
    """Raise the key of x to at least ``key`` and return the new root."""
    if keys[x] >= key:
        return root
    keys[x] = key
    if x == root:
        return root
    cut(x, links)
    return merge_heaps(root, x, keys, links)


@part()
def hash_slot(a: int, b: int, table: Ints) -> int:
    """Return the hash of the edge between two clusters: the first slot to probe."""
    pair = np.uint64(min(a, b)) << np.uint64(32) | np.uint64(max(a, b))
    hashed = (pair ^ (pair >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return int(np.int64((hashed ^ (hashed >> np.uint64(32))) & np.uint64(len(table) - 1)))


@kernel()
def find_slot(a: int, b: int, table: Ints, links: Ints) -> int:
    """Return the slot of the edge between two clusters, or the empty slot where the edge would be stored."""
    slot = hash_slot(a, b, table)
    while table[slot] >= 0:
        source, target = links[2 * table[slot], TARGET], links[2 * table[slot] + 1, TARGET]
        if (source == a and target == b) or (source == b and target == a):
            break
        slot = (slot + 1) & (len(table) - 1)
    return slot


@part()
def delete_slot(empty: int, table: Ints, links: Ints) -> None:
    """Empty a slot; entries that were pushed past it by linear probing move back."""
    mask = len(table) - 1
    table[empty] = -1
    slot = (empty + 1) & mask
    while table[slot] >= 0:
        home = hash_slot(links[2 * table[slot], TARGET], links[2 * table[slot] + 1, TARGET], table)
        if (slot - home) & mask >= (slot - empty) & mask:
            table[empty], table[slot] = table[slot], -1
            empty = slot
        slot = (slot + 1) & mask


@part()
def merge_clusters(a: int, b: int, sizes: Longs, totals: Doubles, heaps: Heaps) -> None:
    """Merge cluster b into a: move the edges of b to a, and sum edges that lead to the same cluster."""
    roots, degrees, keys, links, table = heaps
    sizes[a] += sizes[b]
    x, last = roots[b], roots[b]
    roots[b], degrees[b] = -1, 0
    while x >= 0:
        if links[x, CHILD] >= 0:  # traverse the heap as one list: append the children
            links[last, NEXT] = links[x, CHILD]
            while links[last, NEXT] >= 0:
                last = links[last, NEXT]
        next_sibling, edge, k = links[x, NEXT], x >> 1, links[x, TARGET]
        links[x, :TARGET] = -1
        delete_slot(find_slot(b, k, table, links), table, links)
        slot = find_slot(a, k, table, links)
        if k == a:
            roots[a] = remove(roots[a], x ^ 1, keys, links)
            degrees[a] -= 1
        elif table[slot] < 0:
            links[x ^ 1, TARGET], table[slot] = a, edge
            keys[x] = totals[edge] / sizes[k]
            roots[a] = merge_heaps(roots[a], x, keys, links)
            degrees[a] += 1
        else:
            kept = table[slot]
            y = 2 * kept if links[2 * kept, TARGET] == k else 2 * kept + 1
            totals[kept] += totals[edge]
            roots[a] = increase_key(roots[a], y, totals[kept] / sizes[k], keys, links)
            roots[k] = remove(roots[k], x ^ 1, keys, links)
            roots[k] = increase_key(roots[k], y ^ 1, totals[kept] / sizes[a], keys, links)
            degrees[k] -= 1
        x = next_sibling


@part()
def nearest_edge(a: int, sizes: Longs, totals: Doubles, heaps: Heaps) -> int:
    """Return the half-edge to the cluster of highest mean similarity; correct keys that are too high on the way."""
    roots, keys, links = heaps.roots, heaps.keys, heaps.links
    while True:
        x = int(roots[a])
        key = totals[x >> 1] / sizes[links[x, TARGET]]
        if keys[x] <= key:
            return x
        remaining = pop_root(x, keys, links)
        keys[x] = key
        roots[a] = merge_heaps(remaining, x, keys, links)


@part()
def build_heaps(ends: Ints, totals: Doubles, sizes: Longs) -> Heaps:
    """Build the heaps of all clusters from the edges."""
    m, n_edges = len(sizes), len(ends)
    capacity = 2  # of the hash table: at least two slots for each edge
    while capacity < 2 * n_edges:
        capacity *= 2
    roots, degrees = np.full(m, -1, np.int32), np.zeros(m, np.int64)
    table = np.full(capacity, -1, np.int32)
    keys, links = np.empty(2 * n_edges, np.float64), np.full((2 * n_edges, 4), -1, np.int32)
    for x in range(2 * n_edges):
        source, target = ends[x >> 1, x & 1], ends[x >> 1, 1 - (x & 1)]
        links[x, TARGET], keys[x] = target, totals[x >> 1] / sizes[target]
        roots[source] = merge_heaps(roots[source], x, keys, links)
        degrees[source] += 1
    for edge in range(n_edges):
        table[find_slot(ends[edge, 0], ends[edge, 1], table, links)] = edge
    return Heaps(roots, degrees, keys, links, table)


@kernel()
def average_linkage(ends: Ints, totals: Doubles, sizes: Longs) -> tuple[Ints, Doubles]:
    """Return the merges of average link until no edge remains, and the mean similarity of each, in order of the chains.

    ``ends`` (n_edges, 2) are the clusters of each edge, ``totals`` the sums of similarities, ``sizes`` the number of
    labels per cluster; the last two are overwritten. Merge j of m clusters makes node m + j. No mean is above the mean
    of a merge below it.
    """
    m = len(sizes)
    heaps = build_heaps(ends, totals, sizes)
    roots, degrees, keys, links, _ = heaps
    nodes, children = np.arange(m).astype(np.int32), np.empty((max(m - 1, 0), 2), np.int32)
    means = np.full(2 * m, np.inf)
    chain, edges_taken = np.empty(m, np.int32), np.empty(m, np.int32)  # edges_taken: half-edge to each cluster
    n_merges, start, depth = 0, 0, 0
    while True:
        if depth == 0:
            while start < m and roots[start] < 0:
                start += 1
            if start == m:
                break
            chain[0], depth = start, 1
        a = chain[depth - 1]
        x = nearest_edge(a, sizes, totals, heaps)
        back = edges_taken[depth - 1] ^ 1
        if depth == 1 or totals[back >> 1] / sizes[links[back, TARGET]] < keys[x]:
            chain[depth], edges_taken[depth] = links[x, TARGET], x
            depth += 1
            continue
        b = links[back, TARGET]
        depth -= 2
        mean = totals[back >> 1] / (sizes[a] * sizes[b])
        # Rounding must not lift a merge above the merges below it.
        means[m + n_merges] = min(mean, means[nodes[a]], means[nodes[b]])
        children[n_merges, 0], children[n_merges, 1] = nodes[a], nodes[b]
        if degrees[a] < degrees[b]:
            a, b = b, a
        merge_clusters(a, b, sizes, totals, heaps)
        nodes[a] = m + n_merges
        n_merges += 1
    return children[:n_merges], means[m : m + n_merges]
