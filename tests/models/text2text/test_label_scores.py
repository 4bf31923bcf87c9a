import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from labelspace.models.text2text.config import T5Config  # noqa: E402
from labelspace.models.text2text.constrained_decoding import (  # noqa: E402
    ConstrainedDecoder,  # noqa: E402
    TokenEmbeddings,
    make_path_consistent,
)
from labelspace.models.text2text.t5 import T5  # noqa: E402
from labelspace.models.text2text.tokenization import SubwordTokenizer, Tokenization  # noqa: E402
from tests.models.text2text.small_targets import LABELS, NAMES  # noqa: E402


def target_probabilities(targets, **probabilities):
    """P (1, n_targets), by the two labels of each path."""
    P = np.zeros((1, len(targets.label_ids)))
    for key, probability in probabilities.items():
        upper, lower = key.split("_")
        path = [LABELS.index[f"L0: {upper}"], LABELS.index[f"L1: {lower}"]]
        P[0, targets.label_ids.tolist().index(path)] = probability
    return sp.csr_matrix(P)


def test_the_best_of_each_column_form_one_path(targets):
    P = target_probabilities(targets, Food_Tea=0.2, Food_Rice=0.35, Care_Tea=0.3, Care_Soap=0.15)
    sums = (P @ targets.label_shares).tocsr().astype(np.float32)
    assert sums.toarray()[0] == pytest.approx([0.55, 0.45, 0.5, 0.35, 0.15]), "tea is best, but rice is the best food"
    scores = make_path_consistent(sums.copy(), P, targets).toarray()[0]
    assert scores[[0, 1, 3, 4]] == pytest.approx([0.55, 0.45, 0.35, 0.15])
    assert scores[2] < scores[3]
    assert scores[2] == pytest.approx(0.35)


def test_consistent_scores_do_not_change(targets):
    P = target_probabilities(targets, Food_Tea=0.5, Food_Rice=0.2, Care_Tea=0.2, Care_Soap=0.1)
    sums = (P @ targets.label_shares).tocsr().astype(np.float32)
    assert (make_path_consistent(sums.copy(), P, targets) != sums).nnz == 0


def test_predicted_labels_follow_one_path(targets, monkeypatch):
    P = target_probabilities(targets, Food_Tea=0.2, Food_Rice=0.35, Care_Tea=0.3, Care_Soap=0.15).tocoo()
    monkeypatch.setattr(f"{ConstrainedDecoder.__module__}.beam_search", lambda *_: (P.row, P.col, P.data))
    tokenizer = SubwordTokenizer.train(["tea rice"] * 2, vocab_size=50)
    prompt = Tokenization.with_label_tokens(tokenizer, LABELS, targets, max_length=9)
    embeddings = TokenEmbeddings.of_all_tokens([torch.zeros(len(tokenizer) + 8, 8)])
    decoder = ConstrainedDecoder(T5(T5Config(8, 2, 4, 8, 1, 1)), embeddings, prompt, beam_size=4)
    top = decoder.predict_labels([[3]], k=5)
    assert [NAMES[label] for label in top.labels[0, :3]] == ["L0: Food", "L0: Care", "L1: Rice"]
