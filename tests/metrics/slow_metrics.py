"""Second implementations of the metrics: plain loops over sets, the definitions word for word."""

from math import log, log2


def truths(Y):
    return [{int(label) for label in row.nonzero()[0]} for row in Y.toarray()]


def pairs_of(Y, topk, k):
    """(true set, first k labels) of each document that has labels."""
    pairs = zip(truths(Y), topk.labels[:, :k].tolist(), strict=True)
    return [(true, listed) for true, listed in pairs if true]


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def dcg(gains):
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def precision(Y, topk, k):
    return mean(sum(label in true for label in listed) / k for true, listed in pairs_of(Y, topk, k))


def recall(Y, topk, k):
    return mean(sum(label in true for label in listed) / len(true) for true, listed in pairs_of(Y, topk, k))


def r_precision(Y, topk, k):
    return mean(sum(label in true for label in listed) / min(k, len(true)) for true, listed in pairs_of(Y, topk, k))


def ndcg(Y, topk, k):
    pairs = pairs_of(Y, topk, k)
    return mean(dcg([label in true for label in listed]) / dcg([1] * min(k, len(true))) for true, listed in pairs)


def coverage(Y, topk, k):
    pairs = pairs_of(Y, topk, k)
    occurring = set().union(*(true for true, _ in pairs))
    covered = set().union(*(true & set(listed) for true, listed in pairs))
    return len(covered) / len(occurring)


def inverse_propensity(counts, n_documents, A, B):
    C = max(log(n_documents) - 1, 0) * (B + 1) ** A
    return [1 / (1 / (1 + C * (count + B) ** -A)) for count in counts]


def gains(true, listed, weights):
    return [weights[label] if label in true else 0 for label in listed]


def best_gains(true, weights, k):
    return sorted((weights[label] for label in true), reverse=True)[:k]


def psp(Y, topk, weights, k):
    pairs = pairs_of(Y, topk, k)
    gain = sum(sum(gains(true, listed, weights)) for true, listed in pairs)
    return gain / sum(sum(best_gains(true, weights, k)) for true, _ in pairs)


def psndcg(Y, topk, weights, k):
    pairs = pairs_of(Y, topk, k)
    gain = sum(dcg(gains(true, listed, weights)) for true, listed in pairs)
    return gain / sum(dcg(best_gains(true, weights, k)) for true, _ in pairs)


def psndcg_of_xclib(Y, topk, weights, k):
    """Each document's gain over the discounts of min(k, its labels), averaged; the ideal gain likewise."""
    pairs = pairs_of(Y, topk, k)
    gain = mean(dcg(gains(true, listed, weights)) / dcg([1] * min(k, len(true))) for true, listed in pairs)
    return gain / mean(dcg(best_gains(true, weights, k)) / dcg([1] * min(k, len(true))) for true, _ in pairs)


def f1(hits, predicted, true):
    return 2 * hits / (predicted + true) if predicted + true else 0.0


def label_counts(pairs, label):
    hits = sum(label in true and label in listed for true, listed in pairs)
    predicted = sum(label in listed for _, listed in pairs)
    return hits, predicted, sum(label in true for true, _ in pairs)


def micro_f1(pairs, labels):
    counts = [label_counts(pairs, label) for label in labels]
    return f1(*(sum(three[i] for three in counts) for i in range(3)))


def macro_f1(pairs, labels):
    counts = [label_counts(pairs, label) for label in labels]
    scores = [f1(*three) for three in counts if three[1] + three[2]]
    return mean(scores) if scores else 0.0


def with_ancestors(labels, parents):
    """Labels and everything above them; parents: label -> its parents."""
    closed, waiting = set(), [label for label in labels if label >= 0]
    while waiting:
        label = waiting.pop()
        closed.add(label)
        waiting += parents.get(label, [])
    return closed
