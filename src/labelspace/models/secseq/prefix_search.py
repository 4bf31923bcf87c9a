"""Beam search and sampling down the code tree, for targets ``set`` and ``label``.

What the decoder makes of a prefix does not depend on the document, so it is computed once for all prefixes; the kernels
of ``code_search`` then need the context vector of a document alone. Labels are leaves; labels that share a code are
children of its leaf, with the log-odds of their share.
"""

from typing import NamedTuple, Self

import numpy as np
import torch  # so import this module only after ``errors.require``

from labelspace.kernels.code_search import sample_codes, search_codes
from labelspace.labels.codes import CodeTree
from labelspace.models.secseq.decoder import CodeDecoder
from labelspace.types import Floats, Ints, TopK

NODE_BLOCK = 4096  # prefixes whose states are computed at once


class PrefixTable(NamedTuple):
    """The code tree with the decoder's gates and priors of every prefix, in the order of the kernels' arguments."""

    outputs: Floats  # (code_length, code_size, hidden_dim)
    gates: Floats  # (prefixes with several children, hidden_dim)
    gate_row: Ints  # (n_nodes,) the row of a prefix in ``gates``, or -1
    digit: Ints
    prior: Floats  # (n_nodes,)
    fixed_logit: Floats  # (n_nodes,) of nodes that are not scored
    first_child: Ints
    last_child: Ints
    label: Ints

    @classmethod
    def build(cls, decoder: CodeDecoder, tree: CodeTree, label_shares: Floats) -> Self:
        """Compute the states of all prefixes, level by level."""
        first_child, last_child, label, digit, fixed_logit = _add_labels(tree, label_shares)
        n_inner = tree.level_starts[-2]
        branching = np.flatnonzero(last_child[:n_inner] - first_child[:n_inner] > 1)
        gate_row, prior = np.full(len(first_child), -1, np.int32), np.zeros(len(first_child), np.float32)
        gate_row[branching] = np.arange(len(branching))
        gates = np.empty((len(branching), decoder.config.hidden_dim), np.float32)
        with torch.no_grad():
            p = decoder.initial_state(1)
            for level in range(tree.code_length):
                start, stop = tree.level_starts[level : level + 2]
                if start > branching.max(initial=-1):
                    break
                blocks, bias = torch.split(p, NODE_BLOCK), decoder.outputs[level].bias
                level_gates = np.concatenate([decoder.gates[level](block).numpy() for block in blocks])
                level_priors = np.concatenate([(decoder.priors[level](block) + bias).numpy() for block in blocks])
                nodes = np.arange(start, stop)[gate_row[start:stop] >= 0]
                gates[gate_row[nodes]] = level_gates[nodes - start]
                children = np.arange(tree.level_starts[level + 1], tree.level_starts[level + 2])
                prior[children] = level_priors[tree.parent[children] - start, digit[children]]
                digits = torch.from_numpy(digit[children].astype(np.int64))
                p = p[tree.parent[children] - start] + decoder.embed_digits(digits, level)
        has_documents = np.repeat(label_shares > 0, tree.code_length + 1)
        seen = np.bincount(tree.ancestors().ravel(), has_documents, tree.n_nodes) > 0
        prior[: tree.n_nodes][~seen] = -np.inf  # no training document has a label below
        code_size = decoder.config.code_size  # without the end token
        outputs = np.stack([layer.weight.detach().numpy()[:code_size] for layer in decoder.outputs])  # type: ignore[operator]
        return cls(outputs, gates, gate_row, digit, prior, fixed_logit, first_child, last_child, label)

    def beam_search(self, contexts: Floats, softmax: bool, beam_size: int, k: int) -> TopK:
        """The k best labels for context vectors (n, hidden_dim)."""
        top = TopK.empty(len(contexts), k)
        search_codes(contexts, *self, softmax, min(beam_size, len(self.label)), top.labels, top.scores)
        return top

    def sample(self, contexts: Floats, softmax: bool, n_samples: int, k: int, seed: int) -> TopK:
        """The k labels that are drawn most often for context vectors (n, hidden_dim)."""
        top = TopK.empty(len(contexts), k)
        sample_codes(contexts, *self, softmax, n_samples, seed, top.labels, top.scores)
        return top


def _add_labels(tree: CodeTree, label_shares: Floats) -> tuple[Ints, Ints, Ints, Ints, Floats]:
    """The code tree with labels as leaves: first and last child, label, digit, and logits of nodes not scored."""
    n_labels = np.diff(tree.label_starts)
    leaves = np.arange(tree.n_nodes - len(n_labels), tree.n_nodes)
    label = np.full(tree.n_nodes, -1, np.int32)
    label[leaves[n_labels == 1]] = tree.labels[tree.label_starts[:-1][n_labels == 1]]
    shared_leaves = leaves[n_labels > 1]
    sharing = tree.labels[np.repeat(n_labels, n_labels) > 1]  # labels that share a code
    first_child, last_child = tree.first_child.copy(), tree.last_child.copy()
    last_child[shared_leaves] = tree.n_nodes + np.cumsum(n_labels[n_labels > 1])
    first_child[shared_leaves] = last_child[shared_leaves] - n_labels[n_labels > 1]
    label, digit = np.append(label, sharing), np.append(tree.digit, np.zeros(len(sharing), np.int32))
    certain = np.full(tree.n_nodes, np.inf, np.float32)  # a digit without siblings
    shares = label_shares[sharing]
    with np.errstate(divide="ignore"):
        log_odds = np.log(shares / (1.0 - np.minimum(shares, 1.0)))
    log_odds[shares <= 0] = -np.inf
    return first_child, last_child, label, digit, np.append(certain, log_odds).astype(np.float32)
