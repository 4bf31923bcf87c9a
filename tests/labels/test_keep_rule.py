import numpy as np

from labelspace.labels.hierarchy import ancestor_probabilities
from labelspace.labels.keep_rule import KeepRule, omitted
from labelspace.types import LabelSpace, TopK

SPACE = LabelSpace(["food > bread > rye", "food > bread > white", "food > fish"]).with_paths()
RYE, WHITE, FISH, BREAD, FOOD = (
    SPACE.index[name] for name in ("food > bread > rye", "food > bread > white", "food > fish", "food > bread", "food")
)


def ranked(**scores):
    return TopK(np.array([[globals()[name] for name in scores]]), np.array([list(scores.values())]))


def test_labels_too_unsure_give_way_to_the_nearest_ancestor_that_is_sure_enough():
    top = ranked(RYE=0.5, WHITE=0.4, FISH=0.1)
    judged = ancestor_probabilities(top, SPACE.hierarchy, 5)
    assert judged.labels.tolist() == [[FOOD, BREAD, RYE, WHITE, FISH]]
    assert np.allclose(judged.scores, [[0.73, 0.7, 0.5, 0.4, 0.1]])
    rule = KeepRule(0.6, most=9, precision=0.9)
    answer = rule.kept(judged)
    assert answer.labels.tolist() == [[FOOD, BREAD, -1, -1, -1]]
    rye, white, fish = omitted(top, judged, answer, rule, SPACE)[0]
    assert (rye.label, round(rye.score, 3)) == (RYE, 0.5)
    below = "is below 0.6, the threshold for a precision of 0.9"
    assert rye.reason == f"its probability 0.500 {below}; replaced by its ancestor 'food > bread'"
    assert white.reason == f"its probability 0.400 {below}; replaced by its ancestor 'food > bread'"
    assert fish.reason == f"its probability 0.100 {below}; replaced by its ancestor 'food'"


def test_reasons_without_ancestors():
    top = ranked(RYE=0.9, FISH=0.8, WHITE=0.3)
    for rule, expected in [
        (KeepRule(0.85), ["its probability 0.800 is below 0.85", "its probability 0.300 is below 0.85"]),
        (
            KeepRule(0.5, most=1),
            ["the answer has 1 labels that are ranked before it", "its probability 0.300 is below 0.5"],
        ),
        (KeepRule(np.inf, 0, 0.97), ["no threshold reaches a precision of 0.97 on held-out documents"] * 3),
    ]:
        answer = rule.kept(top)
        assert [found.reason for found in omitted(top, top, answer, rule, LabelSpace(SPACE.names))[0]] == expected


def test_padding_is_not_left_out():
    top = TopK.from_scores([[0.9, -np.inf, 0.2]], k=3)
    rule = KeepRule(0.5)
    assert [found.label for found in omitted(top, top, rule.kept(top), rule, LabelSpace(list("abc")))[0]] == [2]
