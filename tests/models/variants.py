"""The settings under which the contract is tested: of each method a small one, and others that take other paths."""

from labelspace.models.registry import method

SMALL = {
    "fastxml": {"n_estimators": 10},
    "poincare": {"embedding_dim": 16, "epochs": 2},
    "glas": {"embedding_dim": 64, "epochs": 2},
    "annexml": {"n_estimators": 3},
    "blend": {"n_folds": 2, "boosting_rounds": 40},
    "neuralxc": {"input_layers": 64, "output_layers": 64, "epochs": 2},
    "hierarchicalxc": {"input_layers": 64, "epochs": 2},
    "secseq": {"code_size": 8, "hidden_dim": 64, "decoder_dim": 32, "epochs": 2},
    "mlc2seq": {"hidden_dim": 64, "decoder_dim": 32, "beam_size": 4, "epochs": 2},
    "xmlcnn": {"n_filters": 32, "hidden_dim": 64, "word_dim": 32, "epochs": 2},
    "treespace": {"hidden_dim": 64, "n_estimators": 2, "epochs": 2},
    "sleec": {"embedding_dim": 16, "n_label_neighbors": 20, "n_neighbors": 10},
    "text2text": {"embedding_dim": 32, "hidden_dim": 32, "n_heads": 2, "epochs": 1},
}
"""What is trained for every test: with defaults that would take minutes."""

CONVERGED = {name: {"epochs": None} for name in SMALL if "epochs" in SMALL[name]} | {
    "poincare": {"embedding_dim": 50, "epochs": None},
    "text2text": {"embedding_dim": 64, "hidden_dim": 64, "dropout": 0.0, "token_dropout": 0.1, "epochs": 10},
}
"""What is trained with instead where it matters what was learned."""

OTHERS = {
    "neighbors": [{"n_neighbors": 5, "power": 1.0}],
    "one_vs_rest": [{"normalize": False, "threshold": 0.0}],
    "pdsparse": [
        {"per_label": True},
        {"normalize": True, "average": False, "patience": None, "max_iter": 6, "post_max_iter": 2},
    ],
    "label_tree": [
        {"tree": "kmeans", "branching_factor": 4, "max_leaf_size": 5, "n_estimators": 2},
        {"max_leaf_size": 5, "branching_factor": 4, "loss": "logistic", "hard_negatives": 4},
    ],
    "fastxml": [{"n_estimators": 4, "propensity": True, "alpha": 0.8, "normalize": True, "max_leaf_size": 5}],
    "leml": [{"embedding_dim": 8, "sparse": True, "l1_weight": 0.01}, {"bias": False, "normalize": False}],
    "lexical": [{"stemming": "none"}],
    "semantic": [{"reg_weight": 1.0, "label_text": 0.0}],
    "network": [{"hidden_dim": 32, "input_dropout": 0.2}],
    "glas": [
        {"embedding_dim": 32, "loss": "softmax", "regularizer": "spread_out", "n_layers": 2, "weight_norm": True},
        {"embedding_dim": 32, "loss": "margin", "regularizer": "gravity", "patience": 2, "epochs": 6},
        {"embedding_dim": 32, "all_labels": False, "n_negatives": 10, "n_hard_negatives": 3, "activation": "linear"},
    ],
    "poincare": [
        {"embedding_dim": 8, "geometry": "euclidean", "n_estimators": 2, "patience": 1},
        {
            "embedding_dim": 8,
            "optimizer": "adam",
            "projection": "clip",
            "all_labels": False,
            "n_negatives": 10,
            "epochs": 4,
        },
        {"embedding_dim": 8, "route": "labels", "n_clusters": 3, "epochs": 4},
        {
            "embedding_dim": 8,
            "geometry": "cosine",
            "loss": "neighbors",
            "negatives": "per_document",
            "n_negatives": 10,
            "route": "vote",
            "stop_by": "votes",
            "epochs": 4,
        },
    ],
    "annexml": [{"n_estimators": 2, "n_partitions": 3, "embedding_dim": 8, "normalize": False, "sharpness": 0.0}],
    "neuralxc": [
        {"input_layers": "48,32", "output_layers": "48,32", "regressor": 40, "training": "pretrained", "epochs": 4}
    ],
    "hierarchicalxc": [{"input": "features", "similarity": "counts", "balance": "always"}],
    "secseq": [
        {
            "code_size": 4,
            "hidden_dim": 32,
            "decoder_dim": 16,
            "n_estimators": 2,
            "target": "label",
            "patience": 1,
            "epochs": 4,
        },
        {
            "code_size": 8,
            "hidden_dim": 32,
            "decoder_dim": 16,
            "word_dim": 16,
            "encoder": "gru",
            "target": "sequence",
            "epochs": 2,
            "beam_size": 4,
        },
        {
            "code_size": 8,
            "hidden_dim": 32,
            "word_dim": 16,
            "encoder": "convolution",
            "decoding": "sampling",
            "epochs": 2,
            "n_samples": 20,
        },
        {
            "code_size": 8,
            "hidden_dim": 32,
            "decoder_dim": 16,
            "beam_size": 4,
            "target": "sequence",
            "decoder": "lstm",
            "shared_outputs": True,
            "constrained": False,
            "masked_softmax": False,
            "scores": "count",
            "max_sequence": 8,
            "epochs": 10,
        },
    ],  # fmt: skip
    "xmlcnn": [
        {
            "filter_widths": "1,3",
            "n_filters": 70,
            "n_chunks": 1,
            "hidden_dim": 32,
            "word_dim": 15,
            "batch_norm": False,
            "patience": 3,
            "epochs": 8,
        }
    ],
    "treespace": [{"hidden_dim": 32, "space": "poincare", "consistency_weight": 0.1, "n_estimators": 1, "epochs": 4}],
    "sleec": [{"embedding_dim": 8, "n_clusters": 3, "n_estimators": 2, "l1": 0.01, "weight_sparsity": 0.5}],
    "text2text": [{"embedding_dim": 32, "hidden_dim": 32, "n_heads": 2, "n_layers": 2, "epochs": 2, "patience": 1}],
    "blend": [{"members": "neighbors:bigrams,label_tree:chars,lexical", "n_folds": 1, "boosting_rounds": 20}],
}
"""Further settings of each method."""

_CODES = {"hidden_dim": 32, "decoder_dim": 16, "word_dim": 16, "epochs": 2, "beam_size": 4, "max_sequence": 8}
_PRESET_SIZES = {
    "fastxml": {"n_estimators": 4},
    "leml": {"embedding_dim": 16},
    "pdsparse": {},
    "glas": {"embedding_dim": 32, "batch_size": 16},
    "poincare": {"embedding_dim": 8, "n_estimators": 2, "epochs": 2},
    "annexml": {"n_estimators": 2, "embedding_dim": 8},
    "neuralxc": {"input_layers": "48,32", "output_layers": "48,32", "regressor": 40},
    "hierarchicalxc": {"input_layers": "48,32"},
    "secseq": {**_CODES, "code_size": 8},
    "mlc2seq": _CODES,
    "xmlcnn": {"n_filters": 8, "hidden_dim": 16, "word_dim": 8, "epochs": 2},
    "treespace": {"hidden_dim": 32, "root_dim": 8, "embedding_dim": 16},
    "sleec": {"embedding_dim": 16, "max_iter": 5},
}
PRESETS = {
    name: [{**preset, **sizes} for preset in method(name).presets.values()] for name, sizes in _PRESET_SIZES.items()
}
"""The methods as published: they keep the contract, whatever they learn in so few steps."""

_SMALL_T5 = {"prompt": "{text} :", "epochs": 1, "batch_size": 50, "max_length": 16}
PRETRAINED = {
    "own": _SMALL_T5,
    "transformers": {**_SMALL_T5, "engine": "transformers", "beam_size": 3, "patience": 1},
    "paper": {**method("text2text").presets["paper"], **_SMALL_T5, "one_sequence": False},  # labels are of no table
}
"""Settings of text2text with a ``pretrained`` T5, which the tests write: ``text2text/t5_folder.py``."""
