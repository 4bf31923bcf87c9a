"""The paper's algorithms as parameters: all in which they differ from our defaults; lines are of the algorithms."""

from typing import Any

BOTH_ALGORITHMS: dict[str, Any] = {
    "embedding_dim": 1024,  # section 4
    "n_layers": 2,  # section 2.1: several linear layers with ReLU
    "hidden_bias": False,  # section 2.1: phi(x) = w'x
    "bias": False,  # section 2.1: h(x) = phi(x)'V
    "loss": "margin",  # eq. 1
    "pairs": "all",  # eq. 1: a sum over the sampled labels
    "all_labels": False,  # section 2.1: a sampled subset
    "n_hard_negatives": 0,
    "dropout": 0.0,
    "optimizer": "sgd",  # line 12, line 20
    "decay": False,
    "epochs": 10,  # section 4
    "patience": 1,  # section 4: until accuracy on held-out documents ceases to improve
    "stop_by": "precision",
    "batch_size": 4096,  # section 4
}
ALGORITHM_1 = BOTH_ALGORITHMS | {
    "normalize_document_embeddings": False,
    "normalize_label_embeddings": False,
    "regularizer": "none",
    "input_dropout": 0.0,
}
ALGORITHM_2 = BOTH_ALGORITHMS | {
    "weight_norm": True,  # section 3.1
    "reg_weight": 10.0,  # section 4
    "repeat_labels": True,  # lines 16 and 17: B x B
    "input_dropout": 0.2,  # section 4: keep probability 0.8
    "learning_rate": 0.003,  # eta_V, not given, nor is eta_w: chosen on validation documents
    "feature_learning_rate": 1.0,
}
