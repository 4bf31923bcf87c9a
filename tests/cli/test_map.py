"""``labelspace map``, on a method whose label points are known."""

import json
from pathlib import Path

import numpy as np
import pytest

from labelspace.models import registry
from labelspace.models.baselines import Popular
from labelspace.models.registry import create
from labelspace.tagger import Tagger


class Hyperbolic(Popular):
    """Has points: frequent labels are near the center, and labels without documents have none."""

    name = "hyperbolic"

    def label_points(self):
        share = np.where(self.share_ > 0, self.share_, np.nan)
        return np.stack([0.9 - 0.8 * share, 0 * share], axis=1).astype(np.float32)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(registry.METHODS, "hyperbolic", f"{__name__}:Hyperbolic")


@pytest.fixture
def tagger(run):
    texts = ["bread", "bread dough", "fish", "fish"]
    Tagger("hyperbolic").fit(texts, [["baking", "</script>"], ["baking"], ["fish", "baking"], ["fish"]]).save("model")
    return "model"


def embedded(path):
    page = Path(path).read_text(encoding="utf-8")
    return json.loads(page.split('id="data">')[1].split("</script>")[0])


def test_a_tagger_is_drawn_to_the_default_file(run, tagger):
    code, out, err = run("map", tagger)
    assert code == 0
    assert err == ""
    assert out == "map.html: 3 labels, Spearman's correlation of norm and frequency: -1.000\n"
    assert embedded("map.html")["names"] == ["</script>", "baking", "fish"]
    assert "Labels of model" in Path("map.html").read_text(encoding="utf-8")


def test_json_and_another_file(run, tagger):
    code, out, _ = run("map", tagger, "--out", "pages/mine.html", "--json")
    assert code == 0
    assert json.loads(out) == {"map": "pages/mine.html", "n_labels": 3, "n_left_out": 0, "spearman": -1.0}
    assert embedded("pages/mine.html")["counts"] == [1, 3, 2]


# ---- the table of norms


def test_the_table_has_label_norm_and_frequency_by_norm(run, tagger):
    code, out, err = run("map", tagger, "--table")
    assert (code, err) == (0, "")
    assert out == "label\tnorm\tfrequency\nbaking\t0.300000\t3\nfish\t0.500000\t2\n</script>\t0.700000\t1\n"
    assert not Path("map.html").exists()


def test_the_table_as_json_and_in_a_file(run, tagger):
    code, out, _ = run("map", tagger, "--table", "--json")
    table = json.loads(out)
    assert code == 0
    assert table.pop("labels")[1] == {"label": "fish", "norm": 0.5, "frequency": 2}
    assert table == {"n_labels": 3, "n_left_out": 0, "spearman": -1.0, "n_documents": 4}
    code, out, _ = run("map", tagger, "--table", "--out", "tables/norms.tsv")
    assert (code, out) == (0, "tables/norms.tsv: 3 labels, Spearman's correlation of norm and frequency: -1.000\n")
    assert Path("tables/norms.tsv").read_text(encoding="utf-8") == run("map", tagger, "--table")[1]
    code, out, _ = run("map", tagger, "--table", "--out", "norms.tsv", "--json")
    assert json.loads(out) == {"table": "norms.tsv", "n_labels": 3, "n_left_out": 0, "spearman": -1.0}


def test_control_characters_in_names_are_escaped_in_the_table(run):
    names = [["two\tcells\nred \x1b[31m"], ["plain"]]
    Tagger("hyperbolic").fit(["bread", "bread"], names).save("model")
    _, out, _ = run("map", "model", "--table")
    assert sorted(out.splitlines()[1:]) == ["plain\t0.500000\t1", r"two\tcells\nred \x1b[31m" + "\t0.500000\t1"]
    _, out, _ = run("map", "model", "--table", "--json")
    assert "\x1b" not in out
    assert {row["label"] for row in json.loads(out)["labels"]} == {names[0][0], "plain"}


def test_labels_without_a_point_are_not_in_the_table(run):
    create("hyperbolic").fit(np.eye(3), np.array([[1, 0, 0], [1, 0, 1], [0, 0, 1]])).save("bare")
    _, out, _ = run("map", "bare", "--table")
    assert [line.split("\t")[0] for line in out.splitlines()] == ["label", "0", "2"]


# ---- what is drawn, and where


def test_a_bare_model_without_names_is_drawn_by_number(run):
    create("hyperbolic").fit(np.eye(3), np.array([[1, 0, 0], [1, 0, 1], [0, 0, 1]])).save("bare")
    code, out, _ = run("map", "bare")
    assert code == 0
    assert out == "map.html: 2 labels, Spearman's correlation of norm and frequency: undefined\n"
    assert embedded("map.html")["names"] == ["0", "2"]


def test_a_method_without_points_says_which_has_them(run):
    Tagger("popular").fit(["bread", "bread"], [["baking"], ["fish"]]).save("popular")
    code, _, err = run("map", "popular")
    assert code == 2
    assert err.startswith(
        "error: a map needs a point in the Poincaré ball for each label, but popular has none; train with --method"
    )
    assert not Path("map.html").exists()


def test_a_path_that_cannot_be_written_is_rejected_and_nothing_is_left(run, tagger):
    Path("folder").mkdir()
    Path("file").write_text("mine")
    for out in ("folder", "file/map.html"):
        code, _, err = run("map", tagger, "--out", out)
        assert code == 2
        assert err.count("\n") == 1
        assert f"written to {out}, but that failed" in err
    assert sorted(path.name for path in Path().iterdir()) == ["file", "folder", "model"]
    assert Path("file").read_text() == "mine"


def test_a_failed_write_leaves_the_old_page(run, tagger, monkeypatch):
    Path("map.html").write_text("old")
    monkeypatch.setattr("labelspace.report.map.map_page", lambda *_: "a lone surrogate \ud800")
    assert run("map", tagger)[0] == 2
    assert Path("map.html").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["map.html", "model"]


def test_a_real_model_is_drawn(run):
    texts = ["bread", "bread dough", "fish", "grilled fish"] * 10
    names = [["baking", "food"], ["baking", "food"], ["fish", "food"], ["fish", "grilling"]] * 10
    Tagger("poincare", embedding_dim=2, epochs=5).fit(texts, names).save("model")
    code, out, _ = run("map", "model", "--json")
    assert code == 0
    assert json.loads(out)["n_labels"] == 4
    assert embedded("map.html")["names"] == ["baking", "fish", "food", "grilling"]
