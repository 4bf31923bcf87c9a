"""Parameters that have an effect with some settings alone: given without them they are errors, and change nothing."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from docs.update_tables import parameters_markdown
from labelspace.data.synthetic import planted
from labelspace.errors import ParameterError
from labelspace.features.views import ViewTransformer
from labelspace.models.base import Model
from labelspace.models.glas.model import Glas
from labelspace.models.registry import METHODS, method
from labelspace.models.secseq.model import SeCSeq
from labelspace.report.parameters import method_json
from tests.checks import same_topk
from tests.models.test_contract import EXTRAS
from tests.models.variants import SMALL

DECLARED = [
    pytest.param(method(name), key, condition, id=f"{name}-{key}-{condition.key}")
    for name in METHODS
    for key, declared in method(name).params.items()
    for condition in declared.conditions
]
NOT_TRAINED = ("text2text", "mlc2seq")  # the one needs weights, the other is trained as secseq is
UNMET = sorted(
    {
        (cls.name, condition.key, str(condition.values))
        for cls, _, condition in (declared.values for declared in DECLARED)
        if cls.name not in NOT_TRAINED and (cls.name, condition.values) != ("poincare", ("labels",))
    }
)


def values_of(parameter):
    """Some values that a parameter may have, its default first."""
    words = parameter.constraint.text.replace(",", " ").split()
    candidates = [parameter.default, None, True, False, 3, 2, 0.4, 0, 1, "{text}", "{column}= {value}", *words]
    return [value for value in candidates if parameter.constraint.holds(value)]


def changed(cls, key):
    """Another value than the default."""
    return next(value for value in values_of(cls.params[key]) if value != cls.params[key].default)


def met(cls, key, settings=None):
    """Settings with which a parameter has an effect, and those have one too."""
    settings = {} if settings is None else settings
    for condition in cls.params[key].conditions:
        if condition.key not in settings:
            settings[condition.key] = next(filter(condition.holds, values_of(cls.params[condition.key])))
            met(cls, condition.key, settings)
    return settings


def unmet(cls, condition):
    """A value of the other parameter with which it has none."""
    return next(value for value in values_of(cls.params[condition.key]) if not condition.holds(value))


@pytest.mark.parametrize(("cls", "key", "condition"), DECLARED)
def test_a_parameter_without_effect_is_an_error(cls, key, condition):
    good, value = met(cls, key), changed(cls, key)
    assert getattr(cls(**{**good, key: value}), key) == value
    bad = {**good, condition.key: unmet(cls, condition), key: value}
    with pytest.raises(ParameterError, match="has an effect only with .*, but .* is .*; leave .* out, or set"):
        cls(**bad)
    assert key in cls.without_effect(bad)
    assert key not in cls.without_effect({**bad, key: cls.params[key].default})
    assert getattr(clone(cls().set_params(**bad)), key) == value, "a search may try it"
    needs = cls.params[key].needs
    assert needs in next(p["only_with"] for p in method_json(cls)["parameters"] if p["name"] == key)
    assert f"Only with {needs}. |" in parameters_markdown(cls)


def test_the_error_says_the_rule_the_value_and_the_remedy():
    with pytest.raises(
        ParameterError,
        match=r"^margin of glas has an effect only with loss=margin, but loss is bce; leave margin out, or set "
        r"loss=margin$",
    ):
        Glas(margin=0.5)
    with pytest.raises(ParameterError, match=r"^n_hardest .* with loss=margin and pairs=hardest, but pairs is all"):
        Glas(n_hardest=3, loss="margin", pairs="all")
    with pytest.raises(ParameterError, match=r"but patience is none; leave stop_by out, or set patience$"):
        Glas(stop_by="precision")
    Glas(margin=-1)  # an invalid value is told as such
    with pytest.raises(ParameterError, match="margin of glas must be above 0, but is -1"):
        Glas(margin=-1).check_params()


def test_what_an_override_makes_moot_in_a_preset_is_left_out():
    assert Glas.paper(loss="softmax").pairs == "hardest"
    assert Glas.paper(loss="softmax").stop_by == "precision"
    assert Glas.paper(loss="margin").pairs == "all"
    with pytest.raises(ParameterError, match="margin of glas has an effect only with loss=margin"):
        Glas.paper(loss="softmax", margin=0.5)
    model = SeCSeq.paper(target="set")
    assert (model.decoder, model.shared_embeddings, model.scores) == ("gated", False, "probability")
    assert SeCSeq.paper(decoder="gated").target == "sequence"


def test_a_search_and_a_saved_model_take_settings_without_effect(tmp_path):
    data = planted(n=60, d=30, l=5, seed=0)
    grid = {"tree": ["balanced", "kmeans"], "max_depth": [2, 3]}
    search = GridSearchCV(
        method("label_tree")(), grid, scoring=lambda model, X, Y: float(model.predict(X).multiply(Y).sum()), cv=2,
        error_score="raise",
    ).fit(data.X, data.Y)  # fmt: skip
    assert len(search.cv_results_["params"]) == 4
    model = method("label_tree")().set_params(max_depth=2).fit(data.X, data.Y)
    model.save(tmp_path / "model")
    assert Model.load(tmp_path / "model").max_depth == 2


@pytest.mark.slow
@pytest.mark.parametrize(("name", "key", "values"), UNMET)
def test_it_changes_nothing(name, key, values):
    """All parameters that one setting makes moot, changed at once, give the same model."""
    pytest.importorskip(EXTRAS.get(name, "numpy"))
    cls = method(name)
    named = [(k, c) for k, p in cls.params.items() for c in p.conditions if (c.key, str(c.values)) == (key, values)]
    value = unmet(cls, named[0][1])
    base = {**SMALL.get(name, {}), **met(cls, key), "epochs": 2, key: value}
    base = {k: v for k, v in base.items() if k in cls.params and k not in dict(named)}
    data = planted(n=80, d=60, l=8, texts=True, seed=1)
    top = []
    for given in (base, {**base, **{k: changed(cls, k) for k, _ in named}}):
        model = cls().set_params(**given)
        X = ViewTransformer(model.views(data)).fit_transform(data.texts)
        top.append(model.fit(X, data.Y, labels=data.labels).predict_topk(X, 5))
    assert same_topk(*top)
    assert np.isfinite(top[0].scores[:, 0]).any()
