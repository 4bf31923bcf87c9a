"""Tables on the command line: train, evaluate, predict, compare and data, on every format and with every mistake."""

import csv
import gzip
import json
import subprocess
import sys

import numpy as np
import pytest

from labelspace.errors import DataError
from labelspace.tagger import Tagger
from labelspace.types import Columns
from tests.models.variants import SMALL

FIELDS = ("id", "title", "price", "brand", "L0_category", "L1_category")
COLUMNS = ("--inputs", "title,price", "--outputs", "brand,L0_category,L1_category")
GOODS = {"Drinks": ["Tea", "Juice", "Soda"], "Food": ["Bread", "Rice", "Tea"]}  # Tea lies below both
BRANDS = ("Tata", "Coke", "Amul")
WORDS = (("leaf", "Tea"), ("mist", "NA"), ("haze", "NA"))  # words of titles, with what they say


def products(n, seed):
    """Rows whose title tells brand and category."""
    rng = np.random.default_rng(seed)
    for row in range(n):
        root = ("Drinks", "Food")[rng.integers(2)]
        leaf, brand = GOODS[root][rng.integers(3)], BRANDS[rng.integers(3)]
        title = f"{brand} {leaf} {root.lower()} pack{rng.integers(50)}"
        price = float(rng.integers(10, 99)) if row % 5 else None
        yield dict(zip(FIELDS, (f"p{row}", title, price, brand if row % 7 else "NA", root, leaf), strict=True))


def write(path, rows):
    rows = list(rows)
    plain = path.with_name(path.name.removesuffix(".gz"))
    if ".csv" in path.name:
        with plain.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    elif ".jsonl" in path.name:
        plain.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(rows), plain)
    if path != plain:
        path.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    return path


@pytest.fixture
def model(run, tmp_path):
    write(tmp_path / "products.csv", products(300, seed=0))
    assert run("train", "products.csv", *COLUMNS, "--method", "one_vs_rest", "--out", "model")[0] == 0
    return "model"


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "parquet.gz"])
def test_from_a_table_to_figures_and_tags(run, tmp_path, ending):
    train = write(tmp_path / f"products_train.{ending}", products(300, seed=0))
    test = write(tmp_path / f"products_test.{ending}", products(60, seed=1))
    code, out, err = run("train", train, *COLUMNS, "--method", "one_vs_rest", "--out", "m", "--json")
    assert code == 0, err
    assert json.loads(out)["n_labels"] == 3 + 2 + 5
    tagger = Tagger.load("m")
    assert tagger.columns_ == Columns(("title", "price"), (("brand",), ("L0_category", "L1_category")))
    names, edges = tagger.labels_.names, tagger.labels_.hierarchy.edges.tolist()
    assert [names[0], names[3], names[5]] == ["brand: Amul", "L0_category: Drinks", "L1_category: Bread"]
    tea = names.index("L1_category: Tea")
    assert [parent for child, parent in edges if child == tea] == [3, 4]
    figures = json.loads(run("evaluate", "m", test, "--json")[1])
    assert figures["n"] == 60
    assert figures["P@1"] == 100.0
    by_column = figures["by_column"]
    assert list(by_column) == ["brand", "L0_category", "L1_category"]
    assert [group["n_labels"] for group in by_column.values()] == [3, 2, 5]
    assert [group["n_na"] for group in by_column.values()] == [9, 0, 0]
    assert by_column["L0_category"]["accuracy"] == 100.0
    assert by_column["brand"]["accuracy"] > by_column["brand"]["accuracy_with_na"] == 85.0  # it never answers NA
    code, out, _ = run("predict", "m", "--input", test, "--k", 3)
    assert code == 0
    answers = [json.loads(line) for line in out.splitlines()]
    for row, answer in zip(products(60, seed=1), answers, strict=True):
        assert answer["id"] == row["id"]
        assert {tag["label"] for tag in answer["labels"]} >= {
            f"{name}: {row[name]}" for name in ("L0_category", "L1_category")
        }


@pytest.mark.slow
def test_every_method_takes_the_flags(run, tmp_path):
    from labelspace.models.registry import methods

    write(tmp_path / "p.csv", products(80, seed=0))
    for name, kind in methods().items():
        params = SMALL.get(name, {}) | ({"epochs": 1} if "epochs" in kind.params else {})
        settings = [part for key, value in params.items() for part in ("--set", f"{key}={value}")]
        code, _, err = run("train", "p.csv", *COLUMNS, "--method", name, "--out", name, *settings)
        assert code == 0, (name, err)
        assert Tagger.load(name).columns_ is not None
        code, out, err = run("predict", name, "--input", "p.csv", "--k", 2)
        assert code == 0, (name, err)
        assert len(out.splitlines()) == 80


def test_a_column_that_is_mostly_empty_counts_all_rows_with_na(run, tmp_path):
    rows = [{**row, "L9": "Deep" if number < 30 else "NA"} for number, row in enumerate(products(300, seed=0))]
    write(tmp_path / "p.csv", rows)
    flags = ("--inputs", "title", "--outputs", "L9", "--method", "popular")
    assert run("train", "p.csv", *flags, "--out", "m")[0] == 0
    figures = json.loads(run("evaluate", "m", "p.csv", "--json")[1])
    column = figures["by_column"]["L9"]
    assert (figures["n"], column["n_na"]) == (30, 270)
    assert (column["accuracy"], column["accuracy_with_na"]) == (100.0, 10.0)  # it always answers


def test_text2text_may_answer_na(run, tmp_path):
    pytest.importorskip("tokenizers")
    pytest.importorskip("torch")
    rows = [{"title": f"{what} {i}", "L0": "a", "L1": level} for i in range(40) for what, level in WORDS]
    write(tmp_path / "p.csv", rows)
    small = ("embedding_dim=16", "n_heads=2", "hidden_dim=16", "epochs=8")
    settings = [part for value in small for part in ("--set", value)]
    flags = ("--inputs", "title", "--outputs", "L0,L1", "--method", "text2text", *settings)
    assert run("train", "p.csv", *flags, "--out", "m")[0] == 0
    figures = json.loads(run("evaluate", "m", "p.csv", "--json")[1])
    for group in (figures["by_column"]["L1"], figures["by_level"]["1"]):
        assert (group["n_na"], group["accuracy"], group["accuracy_with_na"]) == (80, 100.0, 100.0)
    code, out, _ = run("evaluate", "m", "p.csv")
    assert code == 0
    accuracies, f1 = (line.split() for line in out.splitlines() if line.split()[:1] == ["L1"])
    assert accuracies == ["L1", "100.00", "100.00", "100.00", "100.00", "1", "40", "80"]  # no tail, no figure of it
    assert f1 == ["L1", "100.00", "100.00", "100.00"]  # micro, macro, NA


def test_a_table_without_levels_is_told_how_to_have_them(run, tmp_path):
    write(tmp_path / "p.csv", products(30, seed=0))
    assert run("train", "p.csv", "--inputs", "title", "--outputs", "brand", "--method", "popular", "--out", "m")[0] == 0
    code, _, err = run("predict", "m", "tea", "--consistent")
    assert code == 2
    assert "name columns that are levels: --outputs 'department>aisle>shelf', and train again" in err


def test_folder_of_tables_and_compare(run, tmp_path):
    for name, n in (("train", 200), ("test", 40)):
        (tmp_path / "shop").mkdir(exist_ok=True)
        write(tmp_path / "shop" / f"{name}.csv", products(n, seed=n))
    code, out, err = run("compare", "shop", *COLUMNS, "--methods", "popular,neighbors", "--json", "--out", "c")
    assert code == 0, err
    assert [row["n"] for row in json.loads(out)["rows"]] == [40, 40]
    assert Tagger.load("c/models/popular").columns_ is not None
    assert json.loads(run("evaluate", "c/models/neighbors", "shop", "--json")[1])["n"] == 40
    one = json.loads(run("compare", "shop/train.csv", *COLUMNS, "--methods", "popular", "--json", "--out", "d")[1])
    assert (one["n_train"], one["n_test"]) == (160, 40)


def test_compare_takes_the_hierarchy_of_its_training_rows_only(run, tmp_path):
    rows = [
        {"title": f"tea {i}", "price": 1, "brand": "x", "L0_category": f"root {i}", "L1_category": "leaf"}
        for i in range(50)
    ]
    write(tmp_path / "p.jsonl", rows)
    assert run("compare", "p.jsonl", *COLUMNS, "--methods", "popular", "--out", "c")[0] == 0
    labels = Tagger.load("c/models/popular").labels_
    assert labels.hierarchy.parents.nnz == 40
    assert set(labels.hierarchy.edges[:, 1]) == set(np.flatnonzero(labels.counts == 1))


def test_data_stats_and_convert(run, tmp_path, model):
    stats = json.loads(run("data", "stats", "products.csv", *COLUMNS, "--json")[1])["parts"]["train"]
    assert (stats["documents"], stats["labels"], stats["hierarchy edges"]) == (300, 10, 6)
    assert run("data", "convert", "products.csv", "usual/train.jsonl", *COLUMNS)[0] == 0
    first = json.loads((tmp_path / "usual" / "train.jsonl").read_text().splitlines()[0])
    assert first["id"] == "p0"
    assert first["text"].startswith("title: ")
    assert {label.split(": ")[0] for label in first["labels"]} == {"L0_category", "L1_category"}  # the brand is NA
    assert "L1_category: Tea\tL0_category: Drinks\n" in (tmp_path / "usual" / "train.hierarchy.tsv").read_text()
    # The usual format gives the same figures to a model that learned from a table.
    figures = [json.loads(run("evaluate", model, data, "--json")[1]) for data in ("products.csv", "usual/train.jsonl")]
    assert figures[0]["P@3"] == figures[1]["P@3"] > 80


def test_predict_takes_texts_rows_and_usual_files(run, tmp_path, model):
    texts = json.loads(run("predict", model, "title: Tata Rice food; price: 50", "--k", 3, "--json")[1])["results"]
    (tmp_path / "usual.jsonl").write_text('{"id": "u", "text": "title: Tata Rice food; price: 50"}\n')
    (tmp_path / "rows.jsonl").write_text('{"price": 50.0, "title": " Tata Rice food"}\n{"title": null}\n')
    usual = json.loads(run("predict", model, "--input", "usual.jsonl", "--k", 3)[1])
    rows = [json.loads(line) for line in run("predict", model, "--input", "rows.jsonl", "--k", 3)[1].splitlines()]
    assert (usual["id"], [row["id"] for row in rows]) == ("u", ["0", "1"])
    assert texts[0]["labels"] == usual["labels"] == rows[0]["labels"]
    assert [(label["label"], label["score"]) for label in rows[1]["labels"]] == tags_of_nothing(model)


def tags_of_nothing(model):
    return [(name, round(score, 6)) for name, score in Tagger.load(model).tag("", k=3)]


def test_rows_from_the_standard_input(model, tmp_path):
    command = [sys.executable, "-m", "labelspace", "predict", str(tmp_path / model), "--input", "-", "--k", "1"]
    given = '{"id": 7, "title": "Coke Soda drinks", "price": "12"}\n'
    out = subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout
    assert json.loads(out)["id"] == "7"
    assert json.loads(out)["labels"][0]["label"] in ("brand: Coke", "L0_category: Drinks", "L1_category: Soda")


def test_the_library_takes_rows(model):
    tagger = Tagger.load(model)
    row = {"title": "Tata Rice food", "price": 50.0, "shelf": 3}
    assert tagger.tag(row, k=3) == tagger.tag("title: Tata Rice food; price: 50", k=3)
    assert tagger.tag_batch([row, "a text"], k=2)[0] == tagger.tag(row, k=2)
    with pytest.raises(DataError, match="a row must have some of the columns title, price, but row 1 has: titel; name"):
        tagger.tag_batch([row, {"titel": "x"}])
    with pytest.raises(DataError, match="a text must be a str, but the one of row 0 is of type dict"):
        Tagger("popular").fit(["ab cd", "ab cd"], [["x"], ["y"]]).tag(row)


def test_fitting_again_forgets_the_columns(model):
    tagger = Tagger.load(model).fit(["ab cd", "ab cd"], [["x"], ["y"]])
    assert tagger.columns_ is None


def test_a_model_of_texts_says_nothing_of_columns(tmp_path):
    Tagger("popular").fit(["ab cd", "ab cd"], [["x"], ["y"]]).save(tmp_path / "m")
    assert "columns" not in json.loads((tmp_path / "m" / "model.json").read_text())
    assert Tagger.load(tmp_path / "m").columns_ is None


def test_figures_by_column_for_people(run, model):
    out = run("evaluate", model, "products.csv")[1]
    assert "by column of the table" in out
    assert all(heading in out for heading in ("F1 with NA as a class", "F1 of NA", "tail macro F1"))
    assert "by level" not in out
    assert [line.split()[0] for line in out.splitlines() if "category" in line] == ["L0_category", "L1_category"] * 2


def test_the_hierarchy_file_beside_is_not_the_tables(run, tmp_path, model):
    (tmp_path / "hierarchy.tsv").write_text("brand: Tata\tbrand: Coke\n")
    assert set(json.loads(run("evaluate", model, "products.csv", "--json")[1])["by_level"]) == {"0", "1"}
    out = run("predict", model, "title: Coke Soda drinks", "--consistent", "--k", 3, "--json")[1]
    names = [tag["label"] for tag in json.loads(out)["results"][0]["labels"]]
    assert names.index("L0_category: Drinks") < names.index("L1_category: Soda")


def test_the_table_of_tags_does_not_say_a_value_twice(run, model):
    out = run("predict", model, "title: Tata Rice food; price: 50")[1]
    assert "L1_category: Rice" in out
    assert "synonym" not in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--inputs", "title"), "--inputs and --outputs go together, but --outputs is missing; write --inputs"),
        (("--outputs", "brand"), "--inputs and --outputs go together, but --inputs is missing; write --inputs"),
        (("--inputs", "title,", "--outputs", "brand"), "but one is empty in 'title,'; write --inputs"),
        (("--inputs", "title,title", "--outputs", "brand"), "but 'title' is named twice; remove one"),
        (("--inputs", "title", "--outputs", "brand,title"), "but 'title' is named twice; remove one"),
        (
            ("--inputs", "titel", "--outputs", "brand"),
            "must have the column 'titel', but has: id, title, price, brand, L0_category, L1_category; "
            "did you mean 'title'?",
        ),
        (("--inputs", "title", "--outputs", "L0_category>color"), "must have the column 'color', but has: id, title"),
    ],
)
def test_mistakes_in_the_flags(run, tmp_path, options, message):
    write(tmp_path / "p.csv", products(5, seed=0))
    for command in (("train", "p.csv"), ("data", "stats", "p.csv")):
        code, out, err = run(*command, *options)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1


def test_mistakes_in_the_files(run, tmp_path, model):
    def without(*names):
        rows = [{key: value for key, value in row.items() if key not in names} for row in products(5, seed=0)]
        return write(tmp_path / "part.csv", rows)

    code, _, err = run("predict", model, "--input", without("price"))
    assert code == 2
    assert "must have the column 'price', but has: id, title, brand" in err
    assert run("predict", model, "--input", without("brand", "L0_category", "L1_category"))[0] == 0
    code, _, err = run("evaluate", model, without("L1_category"))
    assert code == 2
    assert "must have the column 'L1_category', but has: id, title" in err
    assert "did you mean 'L0_category'?" in err
    nothing = [{**row, "brand": "NA", "L0_category": "", "L1_category": None} for row in products(5, seed=0)]
    code, _, err = run("train", write(tmp_path / "nothing.csv", nothing), *COLUMNS)
    assert code == 2
    assert "training needs labels, but no document of nothing.csv has any" in err.replace(str(tmp_path) + "/", "")


def test_predict_streams(run, tmp_path, model, monkeypatch):
    """Rows behind the batch in hand are not read: a broken one far behind leaves the tags before it."""
    rows = "".join(f'{{"id": "{i}", "title": "Tata Rice food", "price": {i}}}\n' for i in range(3000))
    (tmp_path / "long.jsonl").write_text(rows + "broken\n")
    code, out, err = run("predict", model, "--input", "long.jsonl", "--k", 1)
    assert code == 2
    assert "long.jsonl:3001" in err
    assert len(out.splitlines()) == 2048  # two complete batches
