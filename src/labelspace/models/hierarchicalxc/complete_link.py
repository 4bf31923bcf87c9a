"""Kernels of HierarchicalXC: complete-link clustering of sparse similarities, and the trees that it makes.

A cluster is identified by a slot, the number of its smallest label. The similarity of two clusters is that of their
least similar labels, so a merged cluster has the neighbors that both parts had, and neighbor lists shrink in place.
Each entry that a merge reads is dropped or is next to a dropped one: all merges together take time and memory in
proportion to the number of entries.
"""

import numpy as np

from labelspace.kernels.beam_search import lower_bound
from labelspace.kernels.compiled import kernel, part
from labelspace.kernels.topk import push, sift_down
from labelspace.types import Floats, Ints, Longs


@kernel()
def find_entry(indices: Ints, start: int, length: int, column: int) -> int:
    """Return the index of a column in a sorted range of ``indices``, or -1."""
    pos = lower_bound(indices, start, start + length, column)
    return pos if pos < start + length and indices[pos] == column else -1


@part()
def merge_neighbors(data: Floats, indices: Ints, indptr: Longs, lengths: Longs, a: int, b: int) -> None:
    """Merge cluster b into a: common neighbors stay, with the lower similarity, and all others become 0.

    An entry of 0 is dead; it stays in its list, which remains sorted, until its cluster is merged.
    """
    i, j, out = indptr[a], indptr[b], indptr[a]
    end_i, end_j = i + lengths[a], j + lengths[b]
    while i < end_i or j < end_j:
        in_a = j == end_j or (i < end_i and indices[i] <= indices[j])
        in_b = i == end_i or (j < end_j and indices[j] <= indices[i])
        k = indices[i] if in_a else indices[j]
        similarity_a = data[i] if in_a else np.float32(0.0)
        similarity_b = data[j] if in_b else np.float32(0.0)
        i += in_a
        j += in_b
        if k in (a, b):
            continue
        lowest = min(similarity_a, similarity_b)
        if similarity_a > 0:
            data[find_entry(indices, indptr[k], lengths[k], a)] = lowest
        if similarity_b > 0:
            data[find_entry(indices, indptr[k], lengths[k], b)] = 0.0
        if lowest > 0:
            indices[out], data[out] = k, lowest
            out += 1
    lengths[a], lengths[b] = out - indptr[a], 0


@kernel()
def complete_linkage(
    data: Floats, indices: Ints, indptr: Longs, similarities: Floats, pairs: Longs
) -> tuple[Ints, Floats, Ints]:
    """Return the merges of complete link as long as similarities are positive.

    ``data``, ``indices`` and ``indptr`` are a symmetric CSR matrix without a diagonal, which is overwritten; ``pairs``
    are its entries a < b as a * 2^32 + b with their ``similarities``, highest first, ties by the smaller pair; they are
    overwritten too. Among equally similar clusters, those with the smallest slots are merged first. Returns the merges,
    their similarities and the final node of each slot, or -1.
    """
    n = len(indptr) - 1
    lengths, nodes = np.diff(indptr), np.arange(n).astype(np.int32)
    children, merge_similarities = np.empty((max(n - 1, 0), 2), np.int32), np.empty(max(n - 1, 0), np.float32)
    # Heap of pairs whose similarity fell since they were listed; negated, because the root is the lowest. Each was in
    # the list before, so there is room for the heap where the list has been read.
    lowered, lowered_pairs = similarities, pairs
    size, next_pair, n_merges = 0, 0, 0
    while next_pair < len(pairs) or size > 0:
        from_list = size == 0
        if size > 0 and next_pair < len(pairs):
            is_higher, is_tie = similarities[next_pair] > -lowered[0], similarities[next_pair] == -lowered[0]
            from_list = is_higher or (is_tie and pairs[next_pair] < -lowered_pairs[0])
        if from_list:
            similarity, pair = similarities[next_pair], pairs[next_pair]
            next_pair += 1
        else:
            similarity, pair = -lowered[0], -lowered_pairs[0]
            size -= 1
            lowered[0], lowered_pairs[0] = lowered[size], lowered_pairs[size]
            sift_down(lowered, lowered_pairs, 0, size)
        a, b = pair >> 32, pair & 0xFFFFFFFF
        pos = find_entry(indices, indptr[a], lengths[a], b)
        if pos < 0 or data[pos] <= 0:
            continue
        if data[pos] < similarity:
            size = push(lowered, lowered_pairs, size, -data[pos], -pair)
            continue
        merge_neighbors(data, indices, indptr, lengths, a, b)
        children[n_merges, 0], children[n_merges, 1], merge_similarities[n_merges] = nodes[a], nodes[b], similarity
        nodes[a], nodes[b] = n + n_merges, -1
        n_merges += 1
    return children[:n_merges], merge_similarities[:n_merges], nodes


@kernel()
def merge_smallest_first(sizes: Longs) -> Ints:
    """Return the merges that join several trees into one, always the two with the fewest labels (Huffman)."""
    n = len(sizes)
    children = np.empty((max(n - 1, 0), 2), np.int32)
    heap_sizes, heap_nodes = np.empty(n, np.float64), np.empty(n, np.int64)
    size = 0
    for i in range(n):
        size = push(heap_sizes, heap_nodes, size, float(sizes[i]), -i)  # ties: the oldest node is the root
    for merge in range(n - 1):
        total = 0.0
        for side in range(2):
            total += heap_sizes[0]
            children[merge, side] = -heap_nodes[0]
            size -= 1
            heap_sizes[0], heap_nodes[0] = heap_sizes[size], heap_nodes[size]
            sift_down(heap_sizes, heap_nodes, 0, size)
        size = push(heap_sizes, heap_nodes, size, total, -(n + merge))
    return children


@kernel()
def subtree_sizes(merges: Ints, leaf_sizes: Longs) -> Longs:
    """Return the number of labels below each node: first ``leaf_sizes`` of the initial nodes, then one per merge."""
    n = len(leaf_sizes)
    sizes = np.empty(n + len(merges), np.int64)
    sizes[:n] = leaf_sizes
    for j in range(len(merges)):
        sizes[n + j] = sizes[merges[j, 0]] + sizes[merges[j, 1]]
    return sizes


@kernel()
def breadth_first_order(children: Ints) -> Ints:
    """Return the nodes of a binary tree given as merges, level by level, siblings next to each other."""
    n = len(children) + 1
    order = np.empty(2 * n - 1, np.int32)
    order[0] = 2 * n - 2
    size = 1
    for i in range(2 * n - 1):
        if order[i] >= n:
            order[size], order[size + 1] = children[order[i] - n, 0], children[order[i] - n, 1]
            size += 2
    return order


@kernel()
def flatten_heavy_path(
    head: int, children: Ints, similarity: Floats, sizes: Longs, items: Ints, joins: Floats, offsets: Longs, start: int
) -> int:
    """Append the subtrees along the heavy path below ``head`` to items[start:], from left to right; return the new end.

    The path goes from each node to the child with more labels and ends at a label. ``joins`` are the
    similarities at which the subtrees join the path, ``offsets`` the number of labels before each.
    """
    n = len(children) + 1
    node, length = head, 1
    while node >= n:
        left, right = children[node - n, 0], children[node - n, 1]
        node = left if sizes[left] >= sizes[right] else right
        length += 1
    node, low, high = head, start, start + length - 1
    while node >= n:
        left, right = children[node - n, 0], children[node - n, 1]
        if sizes[left] >= sizes[right]:
            items[high], joins[high] = right, similarity[node - n]
            node, high = left, high - 1
        else:
            items[low], joins[low] = left, similarity[node - n]
            node, low = right, low + 1
    items[low], joins[low] = node, np.inf
    for i in range(start, start + length):
        offsets[i + 1] = offsets[i] + sizes[items[i]]
    return start + length


@kernel()
def balanced_cut(offsets: Longs, first: int, last: int) -> int:
    """Return where to split the items first..last, at least one on each side, so that their labels are halved best."""
    twice_center = offsets[first] + offsets[last]
    low = lower_bound(offsets, first + 1, last - 1, (twice_center + 1) // 2)
    if low > first + 1 and twice_center - 2 * offsets[low - 1] <= abs(2 * offsets[low] - twice_center):
        return low - 1
    return low


@kernel()
def balance_heavy_paths(children: Ints, similarity: Floats) -> tuple[Ints, Floats]:
    """Rebuild every heavy path of a binary tree as a weight-balanced tree; return merges and their similarities."""
    n = len(children) + 1
    sizes = subtree_sizes(children, np.ones(n, np.int64))
    items, joins = np.empty(2 * n, np.int32), np.empty(2 * n, np.float32)
    offsets = np.zeros(2 * n + 1, np.int64)
    balanced, balanced_similarity = np.empty((n - 1, 2), np.int32), np.empty(n - 1, np.float32)
    stack = np.empty((n, 3), np.int64)  # ranges of items that become one node, and that node
    n_items = flatten_heavy_path(2 * n - 2, children, similarity, sizes, items, joins, offsets, 0)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n_items, 2 * n - 2
    stack_size, next_node = 1, 2 * n - 3
    while stack_size > 0:
        stack_size -= 1
        first, last, node = stack[stack_size, 0], stack[stack_size, 1], stack[stack_size, 2]
        balanced_similarity[node - n] = min(joins[first], joins[last - 1])  # top of a path
        cut = balanced_cut(offsets, first, last)
        for side in range(2):
            start, stop = (first, cut) if side == 0 else (cut, last)
            if stop - start == 1:
                head = items[start]
                if head < n:
                    balanced[node - n, side] = head
                    continue
                start = n_items
                n_items = stop = flatten_heavy_path(head, children, similarity, sizes, items, joins, offsets, start)
            balanced[node - n, side] = next_node
            stack[stack_size, 0], stack[stack_size, 1], stack[stack_size, 2] = start, stop, next_node
            stack_size, next_node = stack_size + 1, next_node - 1
    return balanced, balanced_similarity
