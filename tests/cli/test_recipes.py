import pytest

from labelspace.cli.arguments import parse_ks
from labelspace.cli.recipes import chosen_preset, compared_recipes, make_limits, make_recipe, parse_settings
from labelspace.errors import ParameterError
from labelspace.experiment import Limits


def test_settings_are_json_or_words():
    given = ["a=1", "b=0.5", "c=true", "d=True", "e=FALSE", "f=none", "g=null", "h=kmeans", "i=512,256", "j="]
    assert list(parse_settings(given).values()) == [1, 0.5, True, True, False, None, None, "kmeans", "512,256", ""]
    with pytest.raises(ParameterError, match="--set must be KEY=VALUE, but is 'C'"):
        parse_settings(["C"])


def test_features_settings_go_to_the_features():
    recipe = make_recipe("neighbors", ["power=2", "features.min_df=3"], "hashing", seed=4)
    assert (recipe.method, recipe.params, recipe.features) == ("neighbors", {"power": 2}, "hashing")
    assert (recipe.feature_params, recipe.seed) == ({"min_df": 3}, 4)


def test_settings_of_compare_go_to_the_method_they_name_and_features_to_those_that_read_a_matrix():
    names, settings = ["neighbors", "lexical"], ["neighbors.power=2", "lexical.stemming=none", "features.min_df=3"]
    neighbors, lexical = compared_recipes(names, settings, "tfidf", seed=0)
    assert (neighbors.params, neighbors.features, neighbors.feature_params) == ({"power": 2}, "tfidf", {"min_df": 3})
    assert (lexical.params, lexical.features, lexical.feature_params) == ({"stemming": "none"}, None, {})
    with pytest.raises(ParameterError, match="must name the method, but is 'power=2'"):
        compared_recipes(names, ["power=2"], None, seed=0)


def test_cutoff_ranks_are_integers():
    assert parse_ks("1,3,3,5") == (1, 3, 5)
    for wrong in ("", "0", "1,x", "2.5"):
        with pytest.raises(ParameterError, match="--k must be"):
            parse_ks(wrong)


def test_fast_and_best_are_presets():
    assert chosen_preset(None, fast=False, best=False) is None
    assert chosen_preset("paper", fast=False, best=False) == "paper"
    assert chosen_preset(None, fast=True, best=False) == chosen_preset("fast", fast=True, best=False) == "fast"
    with pytest.raises(ParameterError, match="name one preset, but name fast and best; give one"):
        chosen_preset(None, fast=True, best=True)


def test_limits_are_those_that_are_given():
    assert make_limits("2m", None, 0.5) == Limits(120.0, None, 0.5)
    assert not make_limits(None, None, None)
