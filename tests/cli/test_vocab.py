"""labelspace vocab import: what it prints and writes, and training on the labels that it made."""

import json
from pathlib import Path

import pytest

import labelspace
from tests.checks import digest

A = "http://example.org/"
CSV = f"uri,label_en,label_fi,notation,broader\n{A}1,animals,,,\n{A}2,cats,kissat,02,{A}1\n{A}3,dogs,koirat,03,{A}1\n"


@pytest.fixture
def pets(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text(CSV)
    return path


def test_import_says_what_it_made(run, pets):
    code, out, err = run("vocab", "import", pets)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{pets}: 3 concepts (csv), names in en (change it with --language)",
        f"{pets.with_suffix('')}/labels.jsonl: 3 labels",
        f"{pets.with_suffix('')}/hierarchy.tsv: 2 links to broader labels, 2 levels",
    ]
    assert (pets.with_suffix("") / "hierarchy.tsv").read_text() == "cats\tanimals\ndogs\tanimals\n"


def test_an_update_and_its_dry_run(run, pets, tmp_path):
    run("vocab", "import", pets, "--out", "out")
    pets.write_text(CSV.replace(f"{A}3,dogs", f"{A}4,fish").replace("cats", "house cats"))
    written = Path("out/labels.jsonl").read_bytes()
    code, out, _ = run("vocab", "import", pets, "--out", "out", "--dry-run", "--json")
    found = json.loads(out)
    assert code == 0
    assert {kind: found[kind] for kind in ("new", "renamed", "changed", "gone", "returned", "labels", "edges")} == {
        "new": 1, "renamed": 1, "changed": 0, "gone": 1, "returned": 0, "labels": 4, "edges": 3,
    }  # fmt: skip
    assert found["examples"]["renamed"] == ["cats -> house cats"]
    assert Path("out/labels.jsonl").read_bytes() == written
    _, out, _ = run("vocab", "import", pets, "--out", "out")
    assert out.splitlines()[1:4] == ["1 new: fish", "1 renamed: cats -> house cats", "1 gone (1 now): dogs"]
    assert "documents that name renamed labels by the old name must be changed" in out
    _, out, _ = run("vocab", "import", pets, "--out", "out")
    assert out.splitlines()[1] == "1 gone (0 now): dogs"


def test_notes_and_control_characters(run, tmp_path):
    (tmp_path / "a.txt").write_text("red\x1b[31m\n")
    (tmp_path / "a.csv").write_text(f"uri,label_en,label_fi\n{A}1,\x1b[31mred,\n{A}2,,sininen\n")
    assert "\x1b" not in "".join(run("vocab", "import", "a.txt", "--out", "b")[1:])
    run("vocab", "import", "a.csv", "--out", "b")
    code, out, err = run("vocab", "import", "a.csv", "--out", "c", "--language", "en")
    assert (code, err) == (0, "note: concepts named in a language other than en: 1\n")
    assert "\x1b" not in out


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("none.ttl", [], "a data file must exist, but none.ttl does not"),
        ("a.pdf", [], "a vocabulary must end with .nt"),
        ("a.txt", ["--format", "xml"], "--format must be one of"),
        ("a", ["--format", "list"], "--out must name the folder of the labels"),
    ],
)
def test_what_is_refused(run, tmp_path, name, options, said):
    (tmp_path / "a").write_text("cats\n")
    code, out, err = run("vocab", "import", name, *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_documents_may_name_labels_by_uri(run, pets, tmp_path):
    run("vocab", "import", pets, "--out", "data")
    words = {f"{A}2": "purring whiskers", f"<{A}3>": "barking leash", "animals": "zoo wildlife"}
    rows = [{"text": f"{text} {at}", "labels": [label]} for label, text in words.items() for at in range(8)]
    Path("data/train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("train", "data", "--method", "one_vs_rest", "--out", "model")[0] == 0
    _, out, _ = run("predict", "model", "whiskers", "--k", "1", "--json")
    assert json.loads(out)["results"][0]["labels"][0]["label"] == "cats"
    table = run("predict", "model", "a leash", "--k", "1")[1]
    assert ["dogs", "03", f"{A}3"] in [line.split()[:3] for line in table.splitlines()]


NEW = CSV.replace("cats", "house cats").replace("dogs,koirat,03", ",,") + f"{A}4,fish,,,{A}1\n"


@pytest.fixture
def pet_model(run, pets, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    run("vocab", "import", pets, "--out", "data")
    rows = [{"text": f"{name} {at}", "labels": [name]} for name in ("animals", "cats", "dogs") for at in range(8)]
    Path("data/train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("train", "data", "--method", "lexical", "--out", "model")[0] == 0
    Path("new.csv").write_text(NEW)
    return "model"


def test_a_new_edition_in_a_model_and_its_dry_run(run, pet_model):
    before = digest(Path(pet_model))
    code, dry, err = run("vocab", "update", pet_model, "new.csv", "--dry-run")
    assert code == 0
    assert err == ""
    assert digest(Path(pet_model)) == before
    code, out, _ = run("vocab", "update", pet_model, "new.csv")
    assert out.splitlines() == [
        "new.csv: 3 concepts (csv), names in en (change it with --language)",
        "1 added: fish",
        "1 renamed, the name before is a synonym: cats -> house cats",
        "1 deprecated without a replacement, retired: dogs",
        "3 labels in use; model is version 2",
    ]
    assert dry.splitlines()[:-1] == out.splitlines()[:-1]
    assert dry.splitlines()[-1] == "3 labels in use; nothing is written to model: --dry-run"
    tagger = labelspace.load(pet_model)
    assert {name for name, _ in tagger.tag("a fish and a cat")} == {"house cats", "fish"}
    assert tagger.tag("dogs") == []
    made = tagger.lineage_[-1]
    assert (made.made_by, made.data, made.new_labels) == ("labels", "new.csv", ("fish",))
    code, out, _ = run("vocab", "update", pet_model, "new.csv")
    assert out.splitlines()[-2:] == [
        "the labels are the same as before",
        "3 labels in use; nothing is written to model",
    ]
    assert run("rollback", pet_model)[0] == 0
    assert digest(Path(pet_model)) == before


def test_an_edition_as_json_and_what_is_refused(run, pet_model):
    found = json.loads(run("vocab", "update", pet_model, "new.csv", "--json", "--examples", "1")[1])
    assert (found["version"], found["n_in_use"], found["added"], found["retired"], found["gone"]) == (2, 3, 1, 1, 0)
    assert found["examples"]["renamed"] == ["cats -> house cats"]
    assert found["notes"] == {}
    Path("other.txt").write_text("bread\nfish cake\n")
    for arguments, said in [
        (("nothing", "new.csv"), "nothing"),
        ((pet_model, "none.ttl"), "none.ttl does not"),
        ((pet_model, "new.pdf"), "a vocabulary must end with"),
        ((pet_model, "other.txt"), "concepts of the model's labels, but has none of 4, by URI or name"),
    ]:
        code, out, err = run("vocab", "update", *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert said in err
