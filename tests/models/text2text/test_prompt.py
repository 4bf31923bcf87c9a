import numpy as np
import pytest
import scipy.sparse as sp

torch = pytest.importorskip("torch")
pytest.importorskip("tokenizers")

from labelspace.models.text2text.constrained_decoding import Vectors  # noqa: E402
from labelspace.models.text2text.prompt import Prompt, disambiguated, led_by_paths, padded  # noqa: E402
from labelspace.models.text2text.subwords import Pieces  # noqa: E402
from labelspace.models.text2text.t5 import T5, Shape  # noqa: E402
from labelspace.models.text2text.targets import build_targets  # noqa: E402
from labelspace.types import Hierarchy, LabelSpace  # noqa: E402

NAMES = ["L0: Food", "L0: Care", "L1: Tea", "L1: Rice", "L1: Soap"]
LABELS = LabelSpace(NAMES, hierarchy=Hierarchy.from_edges([[2, 0], [2, 1], [3, 0], [4, 1]], 5))
ROWS = [["L0: Food", "L1: Tea"], ["L0: Food", "L1: Rice"], ["L0: Care", "L1: Tea"], ["L0: Care", "L1: Soap"]]


@pytest.fixture(scope="module")
def answers():
    Y = sp.csr_matrix(np.array([[name in row for name in NAMES] for row in ROWS], np.float32))
    return build_targets(Y, LABELS)[0]


def chances_of(answers, **chances):
    """The chance of each answer, by the second label of its path."""
    found = np.zeros((1, len(answers.names)))
    for key, chance in chances.items():
        upper, lower = key.split("_")
        row = [LABELS.index[f"L0: {upper}"], LABELS.index[f"L1: {lower}"]]
        found[0, answers.names.tolist().index(row)] = chance
    return sp.csr_matrix(found)


def test_the_best_of_each_column_are_led_by_one_path(answers):
    given = chances_of(answers, Food_Tea=0.2, Food_Rice=0.35, Care_Tea=0.3, Care_Soap=0.15)
    plain = (given @ answers.carries).tocsr().astype(np.float32)
    assert plain.toarray()[0] == pytest.approx([0.55, 0.45, 0.5, 0.35, 0.15]), "tea is best, but rice is the best food"
    led = led_by_paths(plain.copy(), given, answers).toarray()[0]
    assert led[[0, 1, 3, 4]] == pytest.approx([0.55, 0.45, 0.35, 0.15])
    assert led[2] < led[3]
    assert led[2] == pytest.approx(0.35)


def test_a_question_is_answered_by_one_path(answers, monkeypatch):
    given = chances_of(answers, Food_Tea=0.2, Food_Rice=0.35, Care_Tea=0.3, Care_Soap=0.15).tocoo()
    monkeypatch.setattr(f"{Question.__module__}.best_answers", lambda *_: (given.row, given.col, given.data))
    pieces = Pieces.learned(["tea rice"] * 2, vocabulary=50)
    question = Prompt.in_names(pieces, LABELS, answers, np.ones(4, np.float32), length=9)
    net = T5(Shape(8, 2, 4, 8, 1, 1))
    vectors = Vectors.of_all([torch.zeros(len(pieces) + 8, 8)])
    top = question.answer(net, vectors, [[3]], beam=4, listed=5)
    assert [NAMES[label] for label in top.labels[0, :3]] == ["L0: Food", "L0: Care", "L1: Rice"]


def test_scores_that_agree_stay_as_they_are(answers):
    given = chances_of(answers, Food_Tea=0.5, Food_Rice=0.2, Care_Tea=0.2, Care_Soap=0.1)
    plain = (given @ answers.carries).tocsr().astype(np.float32)
    assert (led_by_paths(plain.copy(), given, answers) != plain).nnz == 0


def test_tokens_are_dropped_from_the_text_alone(answers):
    pieces = Pieces.learned(["tea rice soap task input output label brand"] * 2, vocabulary=200)
    question = Prompt.quantize_int16(pieces, LABELS, answers, np.ones(4, np.float32), length=5)
    tokens, there = padded(question.documents(["tea rice soap", "tea"]))
    dropped = question.dropped(tokens, there, 0.999, np.random.default_rng(0))
    head = len(question.head)
    assert (dropped[:, :head] == tokens[:, :head]).all()
    assert (dropped[0, head : head + 3] == 2).all()
    assert dropped[0, head + 3 :].tolist() == tokens[0, head + 3 :].tolist()
    assert dropped[1, head + 1 :].tolist() == tokens[1, head + 1 :].tolist()


def test_equal_spellings_get_endings_that_no_other_has():
    spelled = [[5, 6]] * 30 + [[5, 6, 2], [7]]
    found = disambiguated(spelled, n_tokens=6)
    assert len(set(map(tuple, found))) == 32
    assert [tokens for tokens in found if tokens[:2] != [5, 6]] == [[7]]
    assert found[0] == [5, 6]
    assert found[-2] == [5, 6, 2]
    assert max(map(len, found)) == 5  # 3 of one more, 16 of two more, 10 of three more


def test_a_long_text_is_cut_and_what_follows_it_is_not(answers):
    pieces = Pieces.learned(["tea rice soap"] * 2, vocabulary=200)
    question = Prompt.quantize_int16(pieces, LABELS, answers, np.ones(4, np.float32), length=2)
    (tokens,) = question.documents(["tea rice soap tea rice"])
    assert len(tokens) == len(question.head) + 2 + len(question.tail)
    assert tokens[-len(question.tail) :] == question.tail


def test_names_are_tokens_of_their_own_where_a_net_learns_from_nothing(answers):
    pieces = Pieces.learned(["tea rice"] * 2, vocabulary=50)
    question = Prompt.in_names(pieces, LABELS, answers, np.ones(4, np.float32), length=9)
    (part,) = question.parts
    assert part.tree.digits == 2
    assert part.tokens.tolist() == [*(len(pieces) + np.arange(5)), len(pieces) + len(NAMES) + 2], (
        "two columns may be NA"
    )


def test_a_document_without_a_token_has_one_that_says_nothing():
    tokens, there = padded([[], [4, 5]])
    assert tokens.tolist() == [[0, 0], [4, 5]]
    assert there.tolist() == [[True, False], [True, True]]
