"""From the target probabilities of constrained decoding to label scores, whose best labels lie on one path."""

import numpy as np
import scipy.sparse as sp
import torch

from labelspace.models.text2text.constrained_decoding import TokenEmbeddings, beam_search
from labelspace.models.text2text.prompt import Prompt, pad
from labelspace.models.text2text.subwords import Tokens
from labelspace.models.text2text.t5 import T5
from labelspace.models.text2text.targets import Targets
from labelspace.types import Csr, Doubles, Ints, TopK


def predict_labels(
    net: T5, embeddings: TokenEmbeddings, prompt: Prompt, documents: Tokens, beam_size: int, k: int
) -> TopK:
    """The best labels of documents, scored by the sum of the probabilities of the targets that carry them."""
    tokens, is_token = pad(documents)
    with torch.no_grad():
        encoded = net.encode(embeddings.embed(tokens), torch.from_numpy(is_token))
        beams = [beam_search(net, embeddings, encoded, trie, beam_size) for trie in prompt.tries]
    rows = np.concatenate([document for document, _, _ in beams])
    columns = np.concatenate([target + prompt.targets.group_starts[i] for i, (_, target, _) in enumerate(beams)])
    probabilities = np.concatenate([probability for _, _, probability in beams])
    shape = (len(documents), len(prompt.targets.label_ids))
    return labels_of_targets(sp.csr_matrix((probabilities, (rows, columns)), shape=shape), prompt.targets, k)


def labels_of_targets(P: Csr, targets: Targets, k: int) -> TopK:
    """The best labels of documents by the probabilities of their targets (n, n_targets)."""
    scores = (P @ targets.label_shares).tocsr().astype(np.float32)
    return TopK.from_sparse(make_path_consistent(scores, P, targets), k)


def make_path_consistent(scores: Csr, P: Csr, targets: Targets) -> Csr:
    """Label scores (n, n_labels), changed so that the best labels of a group's columns form one existing path.

    The path is chosen from the root down, by the target probabilities P (n, n_targets): of the targets, those with the
    best label of the first column remain, then those with the best of the second; a target with NA is dropped as long
    as there are others. In each column, a label that scores better than the one on the path gets a score just below
    it, and 0 where the path has no label.
    """
    rows = np.repeat(np.arange(len(scores.indptr) - 1), np.diff(scores.indptr))
    for label_ids, span in targets.by_group():
        if label_ids.shape[1] == 1:
            continue
        group = P[:, span].tocoo()
        document, target, probability = group.row, group.col, group.data
        for column in label_ids.T:
            label = column[target]
            known = label < scores.shape[1]  # not NA
            best = _best_label(document[known], label[known], probability[known], *scores.shape)
            remain = (label == best[document]) | (best[document] < 0)
            document, target, probability = document[remain], target[remain], probability[remain]
            in_column = np.isin(scores.indices, column)
            on_path = in_column & (scores.indices == best[rows])
            limit = np.zeros(scores.shape[0], np.float32)
            limit[rows[on_path]] = np.nextafter(scores.data[on_path], np.float32(0))
            others = in_column & ~on_path
            scores.data[others] = np.minimum(scores.data[others], limit[rows[others]])
    return scores


def _best_label(document: Ints, label: Ints, probability: Doubles, n: int, n_labels: int) -> Ints:
    """The label with the largest sum of probabilities in each of n documents, -1 where there is none."""
    keys, which = np.unique(document.astype(np.int64) * n_labels + label, return_inverse=True)
    sums = np.bincount(which, probability).astype(np.float32)
    order = np.lexsort((-keys, sums))  # the best is last; ties go to the smallest id
    best = np.full(n, -1, np.int32)
    best[keys[order] // n_labels] = keys[order] % n_labels
    return best
