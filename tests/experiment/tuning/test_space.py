import pytest

from labelspace.errors import ParameterError
from labelspace.experiment import Recipe
from labelspace.experiment.tuning.ranges import LEFT_OUT, Choices, Range, declared_range, parse_range
from labelspace.experiment.tuning.space import search_space
from labelspace.models.registry import METHODS, method

WITHOUT, TORCH = {"popular", "random"}, {"secseq", "mlc2seq", "text2text"}
SEARCHABLE = [  # those that import torch are slow
    pytest.param(name, marks=[pytest.mark.slow] * (name in TORCH)) for name in METHODS if name not in WITHOUT
]


class Lowest:
    """Stands for a trial of Optuna that suggests the lowest number, or a named value, or the first one."""

    def __init__(self, **named):
        self.named, self.asked = named, []

    def suggest_float(self, key, low, high, log):
        self.asked.append(key)
        return low

    suggest_int = suggest_float

    def suggest_categorical(self, key, values):
        self.asked.append(key)
        return self.named.get(key, values[0])


@pytest.mark.parametrize("name", METHODS)
def test_every_value_of_a_declared_range_is_valid(name):
    for key, declared in method(name).params.items():
        searched = declared_range(key, declared)
        if searched is not None:
            assert key not in LEFT_OUT
            assert all(declared.constraint.holds(value) for value in searched.examples), key


@pytest.mark.parametrize("name", SEARCHABLE)
def test_what_is_said_of_a_range_is_what_search_takes(name):
    space = search_space(Recipe(name))
    again = search_space(Recipe(name), {key: searched.text for key, searched in space.ranges.items()})
    assert again.ranges == space.ranges


@pytest.mark.parametrize("name", SEARCHABLE)
def test_the_default_trial_is_the_default(name):
    space = search_space(Recipe(name))
    drawn = space.default_trial()
    assert space.changed(drawn) == {}
    assert space.with_values(drawn).tagger().model.get_params() == method(name)().get_params()


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_a_method_without_parameters_is_refused(name):
    with pytest.raises(ParameterError, match=f"a parameter to search, but {name} has none"):
        search_space(Recipe(name))


def test_a_parameter_is_drawn_only_where_it_has_an_effect():
    space = search_space(Recipe("glas"))
    margin, bce = Lowest(loss="margin", pairs="hardest"), Lowest(loss="bce")
    drawn = space.draw(margin)
    assert {"margin", "pairs", "n_hardest"} <= set(drawn) == set(margin.asked)
    assert margin.asked.index("loss") < margin.asked.index("pairs") < margin.asked.index("n_hardest")
    assert space.draw(bce).keys().isdisjoint({"margin", "pairs", "n_hardest"})
    space.with_values(drawn).check()


def test_what_is_fixed_and_has_no_effect_in_a_trial_is_left_out():
    space = search_space(Recipe("pdsparse", {"n_selected": 20}), {"per_label": None})
    assert space.with_values({"per_label": True}).params == {"per_label": True}
    assert space.with_values({"per_label": False}).params == {"per_label": False, "n_selected": 20}


def test_what_is_fixed_is_not_searched():
    space = search_space(Recipe("pdsparse", {"per_label": True, "C": 2.0}))
    assert set(space.ranges) == {"l1_weight", "threshold", "normalize"}


def test_search_narrows_or_takes_the_rest_too():
    assert set(search_space(Recipe("one_vs_rest"), {"C": "0.1:1"}).ranges) == {"C"}
    space = search_space(Recipe("one_vs_rest"), {"C": "0.1:1", "all": None})
    assert set(space.ranges) == {"C", "threshold", "normalize"}
    assert space.ranges["C"] == Range(0.1, 1.0)
    space = search_space(Recipe("one_vs_rest"), {"C": None, "features.ngrams": [1, 2]})
    assert space.text == "C=0.05:5:log; features.ngrams=1,2"
    assert space.with_values({"features.ngrams": 2}).feature_params == {"ngrams": 2}


def test_values_that_need_a_hierarchy_are_left_out_where_there_is_none():
    assert search_space(Recipe("label_tree"), has_hierarchy=False).ranges["tree"].values == ("balanced", "kmeans")
    assert "hierarchy" in search_space(Recipe("label_tree"), has_hierarchy=True).ranges["tree"].values


def test_the_text_none_is_meant_where_a_method_has_no_none():
    assert search_space(Recipe("lexical"), {"stemming": "none,english"}).ranges["stemming"].values == (
        "none",
        "english",
    )
    assert search_space(Recipe("glas"), {"all_labels": "none,true"}).ranges["all_labels"].values == (None, True)


def test_blend_searches_its_own_parameters():
    assert set(search_space(Recipe("blend")).ranges) == {"n_candidates", "boosting_rounds"}


@pytest.mark.parametrize(
    ("recipe", "search", "message"),
    [
        (Recipe("one_vs_rest"), {"D": "1:2"}, "no parameter 'D'"),
        (Recipe("one_vs_rest"), {"features.D": "1:2"}, "tfidf has no parameter 'D'"),
        (Recipe("one_vs_rest"), {"features.ngrams": "1,9"}, "ngrams of tfidf must be one of 1, 2, 3, but is 9"),
        (Recipe("one_vs_rest"), {"C": "-1:2"}, "C of one_vs_rest must be above 0, but is -1.0"),
        (Recipe("one_vs_rest"), {"C": "a:2"}, "LOW:HIGH with numbers, but is 'a:2'"),
        (Recipe("one_vs_rest"), {"C": "2:1"}, "LOW below HIGH, but is '2:1'"),
        (Recipe("one_vs_rest"), {"C": "1:inf"}, "LOW below HIGH, but is '1:inf'"),
        (Recipe("one_vs_rest"), {"C": "1:2:cubic"}, "must end with log or linear"),
        (Recipe("one_vs_rest"), {"C": "0:2:log"}, "must begin above 0"),
        (Recipe("one_vs_rest"), {"C": "[1,"}, "must be a JSON list"),
        (Recipe("one_vs_rest"), {"C": [[1]]}, "must list numbers"),
        (Recipe("one_vs_rest"), {"max_iter": "1.5:9"}, "with integers, but is '1.5:9'"),
        (Recipe("one_vs_rest"), {"max_iter": None}, "max_iter of one_vs_rest has no range of its own"),
        (Recipe("one_vs_rest"), {"all": "1:2"}, "--search all takes no values"),
        (Recipe("one_vs_rest", {"C": 1.0}), {"C": None}, "C is fixed by --set and searched by --search"),
        (Recipe("one_vs_rest", {"C": -1.0}), None, "C of one_vs_rest must be above 0"),
        (Recipe("glas"), {"margin": "0.1:1"}, "margin of glas has an effect only with loss=margin"),
        (Recipe("glas"), {"margin": "0.1:1", "loss": "bce,softmax"}, "has an effect only with loss=margin"),
        (Recipe("nonsense"), None, "no method 'nonsense'"),
    ],
)
def test_what_cannot_be_searched_is_refused(recipe, search, message):
    with pytest.raises(ParameterError, match=message):
        search_space(recipe, search)


def test_a_number_is_rounded_and_stays_in_its_range():
    class Fixed:
        def suggest_float(self, key, low, high, log):
            return 0.1234567

    assert Range(0.01, 1.0).draw(Fixed(), "C") == 0.1235
    assert Range(0.01, 0.12346).draw(Fixed(), "C") == 0.12346


def test_values_of_different_types_are_different():
    assert 1 not in Choices((True, None))
    assert 1 not in Range(1.5, 2.0)
    assert True not in Range(0.0, 2.0)
    assert 1.0 not in Range(1, 5, integer=True)
    assert parse_range("x", "1,true,1,none", integer=False).values == (1, True, None)
