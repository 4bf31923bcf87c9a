"""Complete-link clustering of sparse similarities: the lists of neighbors are cut down in place.

A cluster is known by a slot, the number of its smallest label. Two clusters are as similar as their least similar
labels, so the neighbors of a merged cluster are those that both had. Each entry that a merge looks at is dropped or
stands beside one that is: all merges together take time and memory in proportion to the entries given.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from labelspace.kernels.beam_search import first_at_least
from labelspace.kernels.topk import push, sift_down
from labelspace.types import Floats, Ints, Longs


@njit(cache=True, nogil=True)
def place_of(indices: Ints, start: int, length: int, wanted: int) -> int:
    """Where a number stands in a sorted stretch of ``indices``, or -1."""
    place = first_at_least(indices, start, start + length, wanted)
    return place if place < start + length and indices[place] == wanted else -1


@njit(cache=True, nogil=True)
def intersect(data: Floats, indices: Ints, indptr: Longs, lengths: Longs, a: int, b: int) -> None:
    """Merge cluster b into a: the neighbors of both stay, at the lower similarity, and all else becomes 0.

    An entry of 0 is dead; it keeps its place, by which lists stay sorted, until its own cluster is merged.
    """
    i, j, write = indptr[a], indptr[b], indptr[a]
    end_i, end_j = i + lengths[a], j + lengths[b]
    while i < end_i or j < end_j:
        of_a = j == end_j or (i < end_i and indices[i] <= indices[j])
        of_b = i == end_i or (j < end_j and indices[j] <= indices[i])
        k = indices[i] if of_a else indices[j]
        left, right = data[i] if of_a else np.float32(0.0), data[j] if of_b else np.float32(0.0)
        i, j = i + of_a, j + of_b
        if k in (a, b):
            continue
        lowest = min(left, right)
        if left > 0:
            data[place_of(indices, indptr[k], lengths[k], a)] = lowest
        if right > 0:
            data[place_of(indices, indptr[k], lengths[k], b)] = 0.0
        if lowest > 0:
            indices[write], data[write] = k, lowest
            write += 1
    lengths[a], lengths[b] = write - indptr[a], 0


@njit(cache=True, nogil=True)
def with_room(values: Floats, pairs: Longs, used: int) -> tuple[Floats, Longs]:
    """The arrays of a heap, or where they are full some of twice their length."""
    if used < len(values):
        return values, pairs
    more_values, more_pairs = np.empty(2 * used, np.float32), np.empty(2 * used, np.int64)
    more_values[:used], more_pairs[:used] = values, pairs
    return more_values, more_pairs


@njit(cache=True, nogil=True)
def link_complete(
    data: Floats, indices: Ints, indptr: Longs, similarities: Floats, pairs: Longs
) -> tuple[Ints, Floats, Ints]:
    """The merges of complete link as long as similarities are positive.

    ``data``, ``indices`` and ``indptr`` are a symmetric CSR matrix without a diagonal, which is used up; ``pairs`` its
    entries a < b as a * 2^32 + b with their ``similarities``, highest first, and of equals the smallest pair first. Of
    equally similar clusters those with the smallest slots are merged first. Returned are the merges, their similarities
    and of each slot the node that stands there at the end, or -1.
    """
    n = len(indptr) - 1
    lengths, nodes = np.diff(indptr), np.arange(n).astype(np.int32)
    children, joined = np.empty((max(n - 1, 0), 2), np.int32), np.empty(max(n - 1, 0), np.float32)
    # Pairs whose similarity fell since they were listed. The root of such a heap is its lowest: hence the signs.
    fallen, fallen_pairs = np.empty(1024, np.float32), np.empty(1024, np.int64)
    size, at, done = 0, 0, 0
    while at < len(pairs) or size > 0:
        listed = size == 0
        if size > 0 and at < len(pairs):
            higher, same = similarities[at] > -fallen[0], similarities[at] == -fallen[0]
            listed = higher or (same and pairs[at] < -fallen_pairs[0])
        if listed:
            similarity, pair = similarities[at], pairs[at]
            at += 1
        else:
            similarity, pair = -fallen[0], -fallen_pairs[0]
            size -= 1
            fallen[0], fallen_pairs[0] = fallen[size], fallen_pairs[size]
            sift_down(fallen, fallen_pairs, 0, size)
        a, b = pair >> 32, pair & 0xFFFFFFFF
        place = place_of(indices, indptr[a], lengths[a], b)
        if place < 0 or data[place] <= 0:
            continue
        if data[place] < similarity:
            fallen, fallen_pairs = with_room(fallen, fallen_pairs, size)
            size = push(fallen, fallen_pairs, size, -data[place], -pair)
            continue
        intersect(data, indices, indptr, lengths, a, b)
        children[done, 0], children[done, 1], joined[done] = nodes[a], nodes[b], similarity
        nodes[a], nodes[b] = n + done, -1
        done += 1
    return children[:done], joined[:done], nodes


@njit(cache=True, nogil=True)
def join_smallest_first(sizes: Longs) -> Ints:
    """The merges that join all of some trees, each time the two with the fewest labels: a low tree over all labels."""
    n = len(sizes)
    children = np.empty((max(n - 1, 0), 2), np.int32)
    weights, names = np.empty(n, np.float64), np.empty(n, np.int64)
    size = 0
    for i in range(n):
        size = push(weights, names, size, float(sizes[i]), -i)  # of equals the lowest number, the oldest, is the root
    for done in range(n - 1):
        total = 0.0
        for side in range(2):
            total += weights[0]
            children[done, side] = -names[0]
            size -= 1
            weights[0], names[0] = weights[size], names[size]
            sift_down(weights, names, 0, size)
        size = push(weights, names, size, total, -(n + done))
    return children


@njit(cache=True, nogil=True)
def labels_below(merges: Ints, own: Longs) -> Longs:
    """How many labels each node holds after some merges of nodes that hold ``own`` labels: these, then the new."""
    n = len(own)
    sizes = np.empty(n + len(merges), np.int64)
    sizes[:n] = own
    for j in range(len(merges)):
        sizes[n + j] = sizes[merges[j, 0]] + sizes[merges[j, 1]]
    return sizes


@njit(cache=True, nogil=True)
def levels(parent: Ints) -> Ints:
    """How many steps each node is from the root, node 0, where parents have smaller numbers than their children."""
    steps = np.zeros(len(parent), np.int32)
    for node in range(1, len(parent)):
        steps[node] = steps[parent[node]] + 1
    return steps


@njit(cache=True, nogil=True)
def depths_below(children: Ints) -> Ints:
    """How many merges each node is from the root, of a binary tree given as merges."""
    n = len(children) + 1
    depths = np.zeros(2 * n - 1, np.int32)
    for j in range(n - 2, -1, -1):
        depths[children[j, 0]] = depths[children[j, 1]] = depths[n + j] + 1
    return depths


@njit(cache=True, nogil=True)
def breadth_first(children: Ints) -> Ints:
    """The nodes of a binary tree given as merges, level by level, the two children of a node side by side."""
    n = len(children) + 1
    order = np.empty(2 * n - 1, np.int32)
    order[0] = 2 * n - 2
    found = 1
    for i in range(2 * n - 1):
        if order[i] >= n:
            order[found], order[found + 1] = children[order[i] - n, 0], children[order[i] - n, 1]
            found += 2
    return order


@njit(cache=True, nogil=True)
def unfold(
    head: int, children: Ints, similarity: Floats, sizes: Longs, items: Ints, reach: Floats, before: Longs, top: int
) -> int:
    """Write the subtrees along the heavy path below ``head`` to items[top:], in their order; the new end is returned.

    The path goes from each node to the child with more labels and ends at a label. ``reach`` is at which similarity a
    subtree was joined to the path, ``before`` how many labels stand in front of it.
    """
    n = len(children) + 1
    node, length = head, 1
    while node >= n:
        left, right = children[node - n, 0], children[node - n, 1]
        node = left if sizes[left] >= sizes[right] else right
        length += 1
    node, low, high = head, top, top + length - 1
    while node >= n:
        left, right = children[node - n, 0], children[node - n, 1]
        if sizes[left] >= sizes[right]:
            items[high], reach[high] = right, similarity[node - n]
            node, high = left, high - 1
        else:
            items[low], reach[low] = left, similarity[node - n]
            node, low = right, low + 1
    items[low], reach[low] = node, np.inf
    for i in range(top, top + length):
        before[i + 1] = before[i] + sizes[items[i]]
    return top + length


@njit(cache=True, nogil=True)
def halving(before: Longs, first: int, last: int) -> int:
    """Where to cut the items first..last, at least one on each side, so that their labels are halved best."""
    double = before[first] + before[last]
    low, high = first + 1, last - 1
    while low < high:
        middle = (low + high) // 2
        if 2 * before[middle] < double:
            low = middle + 1
        else:
            high = middle
    if low > first + 1 and double - 2 * before[low - 1] <= abs(2 * before[low] - double):
        return low - 1
    return low


@njit(cache=True, nogil=True)
def refold(children: Ints, similarity: Floats) -> tuple[Ints, Floats]:
    """Fold every heavy path of a binary tree into a weight-balanced tree; merges and their similarities."""
    n = len(children) + 1
    sizes = labels_below(children, np.ones(n, np.int64))
    items, reach = np.empty(2 * n, np.int32), np.empty(2 * n, np.float32)
    before = np.zeros(2 * n + 1, np.int64)
    folded, folded_similarity = np.empty((n - 1, 2), np.int32), np.empty(n - 1, np.float32)
    stack = np.empty((n, 3), np.int64)  # stretches of items that are to become one node, and its number
    top = unfold(2 * n - 2, children, similarity, sizes, items, reach, before, 0)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, top, 2 * n - 2
    waiting, free = 1, 2 * n - 3
    while waiting > 0:
        waiting -= 1
        first, last, node = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2]
        folded_similarity[node - n] = min(reach[first], reach[last - 1])  # the highest node of a path is at an end
        cut = halving(before, first, last)
        for side in range(2):
            start, stop = (first, cut) if side == 0 else (cut, last)
            if stop - start == 1:
                head = items[start]
                if head < n:
                    folded[node - n, side] = head
                    continue
                start, stop = top, unfold(head, children, similarity, sizes, items, reach, before, top)
                top = stop
            folded[node - n, side] = free
            stack[waiting, 0], stack[waiting, 1], stack[waiting, 2] = start, stop, free
            waiting, free = waiting + 1, free - 1
    return folded, folded_similarity
