"""The command line: what it prints, where, and its exit codes."""

import functools
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from labelspace.data.label_files import write_hierarchy, write_labels
from labelspace.data.source import write_dataset
from labelspace.data.synthetic import planted
from labelspace.features import Tfidf
from labelspace.models import registry
from labelspace.report.parameters import shown
from labelspace.report.progress import StepProgress
from labelspace.tagger import Tagger
from labelspace.types import Dataset, LabelSpace

KEYS = (
    "P@1 P@3 P@5 nDCG@1 nDCG@3 nDCG@5 PSP@1 PSP@3 PSP@5 PSnDCG@1 PSnDCG@3 PSnDCG@5 R@5 RP@5 coverage@5 "
    "n n_labels predict_seconds latency_ms_p50 latency_ms_p99 model_mb"
).split()


@pytest.fixture(scope="module")
def written(data, tmp_path_factory):
    """Folders with the same documents as texts and as features, and a model of the texts once one is trained."""
    folder = tmp_path_factory.mktemp("written")
    for name, part in zip(("train", "test"), data, strict=True):
        ids = [f"{name}-{i}" for i in range(len(part))]
        texts = Dataset(part.Y, part.labels, texts=part.texts, ids=ids)
        write_dataset(texts, folder / "texts" / f"{name}.jsonl.gz")
        write_dataset(Dataset(part.Y, part.labels, X=part.X), folder / "features" / f"{name}.txt")
    labels = LabelSpace(data[0].labels.names, [[f"about {n}"] for n in range(40)])
    write_labels(folder / "texts" / "labels.jsonl", labels)
    write_hierarchy(folder / "texts" / "hierarchy.tsv", data[0].labels)
    return folder


@pytest.fixture
def texts(written, tmp_path):
    return shutil.copytree(written / "texts", tmp_path / "texts")


@pytest.fixture
def features(written, tmp_path):
    return shutil.copytree(written / "features", tmp_path / "features")


@pytest.fixture
def model(run, texts, written):
    if not (written / "model").exists():
        assert run("train", texts, "--method", "one_vs_rest", "--out", written / "model")[0] == 0
    shutil.copytree(written / "model", "model")
    return "model"


def one_line(err):
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def test_train_says_what_it_did_and_shows_progress_on_stderr(run, texts):
    code, out, err = run("train", texts, "--method", "one_vs_rest", "--out", "m", "--set", "C=2", "--seed", "3")
    assert code == 0
    assert "700 documents and 40 labels" in out
    assert "saved: m (" in out
    assert "labels: 40 of 40" in err
    saved = json.loads(Path("m/model.json").read_text())
    assert saved["model"]["params"]["C"] == 2
    assert saved["model"]["params"]["random_state"] == 3


@pytest.mark.slow
def test_train_has_a_default_method_and_folder(run, texts):
    code, out, _ = run("train", texts, "--json")
    assert code == 0
    assert json.loads(out)["model"] == "runs/texts-blend"


def saved_features(model):
    """Name and parameters of the features of each view of a saved model."""
    views = json.loads(Path(model, "model.json").read_text())["features"]["state"]["features_"]["dict"]
    return {view: (part["name"], part.get("params")) for view, part in views.items()}


def test_settings_reach_the_features(run, texts):
    by = ("--method", "neighbors", "--out", "m")
    assert run("train", texts, *by)[0] == 0
    assert saved_features("m")["words"][0] == "tfidf"
    assert run("train", texts, *by, "--set", "features.ngrams=2", "--set", "features.max_features=none")[0] == 0
    assert saved_features("m")["words"][1]["ngrams"] == 2
    assert run("train", texts, *by, "--features", "hashing", "--set", "features.bits=12")[0] == 0
    assert saved_features("m")["words"] == ("hashing", {"ngrams": 1, "bits": 12, "sublinear": True, "idf": True})


@pytest.mark.slow
def test_settings_reach_the_features_of_every_member_of_a_blend(run, texts):
    blend = ("--set", "members=neighbors:chars,label_tree,lexical", "--set", "n_folds=2", "--out", "b")
    assert run("train", texts, *blend, "--set", "features.min_df=3")[0] == 0
    made = saved_features("b")
    assert {view: name for view, (name, _) in made.items()} == {"chars": "tfidf", "words": "tfidf", "text": "text"}
    assert [made[view][1]["min_df"] for view in ("chars", "words")] == [3, 3]
    assert [made[view][1]["analyzer"] for view in ("chars", "words")] == ["char", "word"]
    assert run("train", texts, *blend, "--features", "hashing")[0] == 0
    assert {name for name, _ in saved_features("b").values()} == {"hashing", "text"}
    assert run("predict", "b", "w1 w2")[0] == 0


@pytest.mark.slow
def test_limits_are_planned_within_or_refused(run, data):
    few, texts = data[0].rows(range(200)), "few.jsonl"
    write_dataset(Dataset(few.Y, few.labels, texts=few.texts), texts)
    code, _, err = run("train", texts, "--max-latency-ms", "0.000001", "--out", "m")
    assert code == 2
    assert "nothing fits --max-latency-ms 1e-06" in err.splitlines()[-1]
    assert not Path("m").exists()
    code, _, err = run("train", texts, "--budget", "1m", "--method", "neighbors", "--out", "m")
    assert (code, err.splitlines()[-1]) == (
        2, "error: limits choose the members of blend, but the method is neighbors; leave it out, or the limits"
    )  # fmt: skip
    code, out, _ = run("train", texts, "--budget", "10m", "--optimize", "PSP@5", "--out", "m", "--json")
    plan = json.loads(out)["plan"]
    assert code == 0
    assert plan["members"].startswith("pdsparse:words+chars")
    assert plan.keys() == {"members", "n_folds", "cpu_seconds", "model_mb", "latency_ms", "left_out"}


def test_evaluate_json_is_one_object_with_the_declared_keys(run, texts, model):
    code, out, err = run("evaluate", model, texts, "--json")
    assert code == 0
    assert err == ""
    figures = json.loads(out)
    assert [key for key in figures if key in KEYS] == KEYS
    assert figures["P@1"] > 85
    assert figures["n"] == 200
    assert figures["model_mb"] > 0
    assert "by_level" in figures


def test_evaluate_needs_the_test_file_only(run, texts, model):
    (texts / "train.jsonl.gz").unlink()
    assert json.loads(run("evaluate", model, texts, "--json")[1])["n"] == 200


def test_evaluate_prints_a_table_and_takes_other_ks(run, texts, model):
    code, out, _ = run("evaluate", model, texts / "test.jsonl.gz", "--k", "1,10")
    assert code == 0
    assert "200 documents, 40 labels" in out
    assert "@10" in out
    assert "at most 25" in out


def test_evaluate_with_intervals_writes_a_page(run, texts, model):
    code, out, _ = run("evaluate", model, texts, "--ci", "--html", "pages/mine.html")
    assert code == 0
    assert "95 % intervals" in out
    assert "coverage at 90 % precision" in out
    assert "saved: pages/mine.html" in out
    page = Path("pages/mine.html").read_text()
    assert "on texts</h1>" in page
    assert "no reliability diagram" in page
    figures = json.loads(run("evaluate", model, texts, "--ci", "--html", "mine.html", "--json")[1])
    low, high = figures["ci"]["P@1"]
    assert low <= figures["P@1"] <= high
    assert figures["html"] == "mine.html"
    assert 0 < figures["coverage_at_precision_95"] <= figures["coverage_at_precision_90"] <= 100
    code, _, err = run("evaluate", model, texts, "--html", str(texts))
    assert code == 2
    assert len(err.splitlines()) <= 2
    assert "must be written to" in err


def test_a_blend_gives_probabilities_and_abstains_where_they_are_low(run, texts, model):
    members = "members=neighbors,label_tree"
    assert run("train", texts, "--set", members, "--set", "n_folds=2", "--out", "blend")[0] == 0
    assert 0 <= json.loads(run("evaluate", "blend", texts, "--json")[1])["ECE@5"] < 20
    text = "w1 w2 w3"
    every = json.loads(run("predict", "blend", text, "--json")[1])["results"][0]["labels"]
    bound = every[1]["score"] - 1e-6  # what is printed is rounded
    flag = ("--min-probability", str(bound))
    some = json.loads(run("predict", "blend", text, *flag, "--json")[1])["results"][0]["labels"]
    assert some == [tag for tag in every if tag["score"] >= bound]
    Path("lines.txt").write_text(text + "\n")
    streamed = json.loads(run("predict", "blend", "--input", "lines.txt", *flag)[1])
    assert streamed["labels"] == some
    wrong = one_line(run("predict", "blend", text, "--min-probability", "1.5")[2])
    assert "between 0 and 1, but min_probability is 1.5" in wrong
    assert "no label has a probability of at least 1" in run("predict", "blend", text, "--min-probability", "1")[1]
    wrong = one_line(run("predict", model, text, "--min-probability", "0.5")[2])
    assert "a probability needs a method that is calibrated, but one_vs_rest is not; train with --method" in wrong


def test_compare_sets_no_features_for_a_method_that_reads_texts(run, texts):
    settings = ("--set", "features.ngrams=2", "--set", "blend.members=neighbors", "--set", "blend.n_folds=2")
    out = run("compare", texts, "--methods", "popular,blend,lexical", *settings, "--json")[1]
    assert all("error" not in row for row in json.loads(out)["rows"])
    models = Path("runs/texts-compare/models")
    assert saved_features(models / "blend")["words"][1]["ngrams"] == 2
    assert saved_features(models / "lexical")["text"][0] == "text"


def test_predict_prints_names_synonyms_and_scores(run, data, model):
    text = data[1].texts[0]
    code, out, _ = run("predict", model, text, "--k", "2")
    assert code == 0
    assert "label " in out
    assert "about " in out
    assert len(json.loads(run("predict", model, text, "--k", "100000000", "--json")[1])["results"][0]["labels"]) == 40
    code, out, _ = run("predict", model, text, "", "--k", "2", "--json")
    results = json.loads(out)["results"]
    assert [r["text"] for r in results] == [text, ""]
    assert len(results[0]["labels"]) == 2
    assert 0 < results[0]["labels"][0]["score"] < 1


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv", "in.parquet", "in.jsonl.gz"])
def test_predict_streams_files_and_keeps_ids(run, data, model, name, monkeypatch):
    monkeypatch.setattr("labelspace.tagger.inputs.MAX_DOCUMENTS", 7)
    part = data[1].rows(range(20))
    ids = [f"doc {i}" for i in range(20)]
    write_dataset(Dataset(part.Y, part.labels, texts=part.texts, ids=ids), name)
    code, out, _ = run("predict", model, "--input", name, "--k", "3")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["id"] for line in lines] == ids
    assert all(len(line["labels"]) == 3 for line in lines)


def test_predict_reads_a_text_from_stdin(run, data, model, monkeypatch):
    text = data[1].texts[0]
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{text}\n"))
    _, from_stdin, _ = run("predict", model, "-", "--json")
    assert json.loads(from_stdin)["results"][0]["text"] == text
    assert run("predict", model, text, "--json")[1] == from_stdin


def test_predict_takes_plain_lines_and_stdin(run, data, model, monkeypatch):
    Path("in.txt").write_text("\n".join(data[1].texts[:3]) + "\n")
    _, from_file, _ = run("predict", model, "--input", "in.txt")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("in.txt").read_bytes())))
    _, from_stdin, _ = run("predict", model, "--input", "-")
    assert from_file == from_stdin
    assert [json.loads(line)["id"] for line in from_file.splitlines()] == ["0", "1", "2"]


def test_ready_made_features_go_all_the_way(run, features):
    assert run("train", features, "--method", "one_vs_rest", "--out", "m")[0] == 0
    figures = json.loads(run("evaluate", "m", features, "--json")[1])
    assert figures["P@1"] > 85
    code, out, _ = run("predict", "m", "--input", features / "test.txt", "--k", "1")
    assert code == 0
    assert len(out.splitlines()) == 200
    code, _, err = run("predict", "m", "a text")
    assert code == 2
    assert "trained on 600 ready-made features, but was given texts" in one_line(err)


def test_compare_prints_a_table_and_survives_a_failure(run, texts):
    (texts / "hierarchy.tsv").unlink()
    tree = ("--set", "label_tree.tree=hierarchy")
    code, out, err = run("compare", texts, "--methods", "popular,label_tree,neighbors", *tree)
    assert code == 2
    assert "label_tree failed: tree='hierarchy' needs a hierarchy" in out
    assert "replaces" not in err
    rows = json.loads(Path("runs/texts-compare/results.json").read_text())["rows"]
    assert [row["method"] for row in rows] == ["popular", "label_tree", "neighbors"]
    assert run("predict", "runs/texts-compare/models/neighbors", "w1 w2")[0] == 0
    assert "note: replaces the comparison at runs/texts-compare" in run("compare", texts, "--methods", "popular")[2]


@pytest.mark.parametrize(
    ("methods", "setting"), [("popular,nonsense", "popular.x=1"), ("one_vs_rest", "one_vs_rest.C=0")]
)
def test_compare_refuses_before_it_starts(run, texts, methods, setting):
    code, out, err = run("compare", texts, "--methods", methods, "--set", setting)
    assert (code, out) == (2, "")
    one_line(err)
    assert not Path("runs").exists()


def test_compare_at_another_k(run, texts):
    code, out, _ = run("compare", texts, "--methods", "popular,neighbors", "--k", "7")
    assert code == 0
    assert "P@7" in out
    assert "P@7" in Path("runs/texts-compare/report.html").read_text()


def test_json_lines_are_detected_without_an_extension(run, data, model, monkeypatch):
    line = json.dumps({"id": "x7", "text": data[1].texts[0]}) + "\n"
    Path("in.ndjson").write_text(line)
    code, out, _ = run("predict", model, "--input", "in.ndjson", "--k", "1")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line.encode())))
    assert run("predict", model, "--input", "-", "--k", "1")[:2] == (code, out)
    assert json.loads(out)["id"] == "x7"


@pytest.mark.slow
def test_features_of_a_test_file_may_be_narrower(run, data):
    train, test = data
    for name, part in (("train", train), ("test", test.rows(range(3)))):
        write_dataset(Dataset(part.Y, part.labels, X=part.X), f"narrow/{name}.jsonl")
    assert run("train", "narrow", "--out", "m")[0] == 0
    assert json.loads(run("evaluate", "m", "narrow", "--json")[1])["n"] == 3


def test_convert_says_what_it_read_and_wrote(run):
    Path("n.jsonl").write_text('{"text": "x", "labels": [0]}\n{"text": "y", "labels": [1]}\n')
    Path("n.labels.jsonl").write_text('{"label": "b"}\n{"label": "a", "alt": ["feline"]}\n')
    Path("labels.jsonl").write_text('{"label": "of another file"}\n')
    code, out, err = run("data", "convert", "n.jsonl", "out.csv")
    assert code == 0
    assert out == "out.csv: 2 documents, 2 labels\nout.labels.jsonl: label names\n"
    assert err == "note: labels of n.jsonl are those of n.labels.jsonl\n"
    assert Path("out.csv").read_text().split()[1:] == ["0,x,b", "1,y,a"]
    assert Path("out.labels.jsonl").read_text() == Path("n.labels.jsonl").read_text()
    Path("n.labels.jsonl").unlink()
    code, out, err = run("data", "convert", "n.jsonl", "out.csv")
    assert out == "out.csv (replaced): 2 documents, 2 labels\n"
    assert "are those of" not in run("data", "convert", "out.csv", "out.txt")[2]  # its label file was not there then
    assert err == "note: labels.jsonl is not read with n.jsonl; if it belongs to it, name it n.labels.jsonl\n"


def test_train_says_which_labels_are_read_and_which_model_is_replaced(run, texts, model):
    _, _, err = run("train", "texts", "--method", "popular", "--out", model)
    lines = [line for line in err.splitlines() if line.startswith("note: ")]
    assert lines[0] == "note: labels of train.jsonl.gz are those of texts/labels.jsonl and texts/hierarchy.tsv"
    assert re.fullmatch(r"note: replaces the model at model \(one_vs_rest, 40 labels, saved 20\d\d-.*\)", lines[1])
    _, out, err = run("train", texts, "--method", "popular", "--out", model, "--json")
    assert err == ""
    assert json.loads(out)["replaced"].startswith("popular, 40 labels, saved ")
    Path(model, "model.json").write_text('{"format": 1}')
    assert (
        "note: replaces the model at model (not readable, saved "
        in run("train", texts, "--out", model, "--method", "popular")[2]
    )  # noqa: E501
    assert "replace" not in run("train", texts, "--method", "popular", "--out", "new")[2]


def test_train_says_what_the_documents_lack(run):
    rows = ["bake bread,a", "grill fish,", ",b", 'bake fish,"a, b"', 'grill bread,"a, b"']
    Path("few.csv").write_text("\n".join(["text,labels", *rows]) + "\n")
    _, out, err = run("train", "few.csv", "--method", "neighbors", "--out", "m")
    assert [line for line in err.splitlines() if line.startswith("note: ")] == [
        "note: few.csv: labels separated by ','",
        "note: 1 of 5 training documents have no label",
        "note: 1 of 5 training documents are empty",
    ]
    assert run("train", "few.csv", "--method", "neighbors", "--out", "m", "--json")[2] == ""


def test_evaluate_on_the_training_documents_says_so(run, texts, model):
    code, _, err = run("evaluate", model, texts / "train.jsonl.gz")
    assert code == 0
    assert "note: about 100 % of these documents were in the training data; the figures say how well" in err
    assert json.loads(run("evaluate", model, texts / "train.jsonl.gz", "--json")[1])["seen_in_training"] == 100
    assert "training data" not in run("evaluate", model, texts)[2]
    Path("other.csv").write_text("text,labels\nw1 w2,unheard|label 1\n")
    assert (
        "note: 1 labels of these documents are unknown to the model, and count as missed"
        in run("evaluate", model, "other.csv")[2]
    )


def test_predict_says_where_the_model_reads_nothing(run, data, model, features):
    known = data[1].texts[0]
    code, out, err = run("predict", model, known, " ", "zzz yyy")
    assert code == 0
    assert err.splitlines() == [
        "note: text 2 is empty; its labels are those of every such text",
        "note: text 3 has no word that the model knows; its labels are those of every such text",
    ]
    _, out, err = run("predict", model, known, "", "zzz", "--json")
    assert [row.get("note") for row in json.loads(out)["results"]] == [
        None,
        "is empty",
        "has no word that the model knows",
    ]
    assert err == ""
    Path("in.txt").write_text(f"{known}\n\n{known}\n")
    _, out, err = run("predict", model, "--input", "in.txt")
    assert ["note" in json.loads(line) for line in out.splitlines()] == [False, True, False]
    assert err == "note: 1 of 3 documents are empty; their labels are those of every such document\n"
    assert run("train", features, "--method", "one_vs_rest", "--out", "m")[0] == 0
    Path("rows.txt").write_text("2 600 40\n0 1:1\n0 \n")
    _, out, err = run("predict", "m", "--input", "rows.txt")
    assert ["note" in json.loads(line) for line in out.splitlines()] == [False, True]


def test_predict_of_a_file_name_points_to_input(run, data, model):
    Path(data[1].texts[0].split()[0]).write_text("a file")
    assert (
        "is the name of a file, and was tagged as a text; to tag the file: --input"
        in run("predict", model, data[1].texts[0].split()[0])[2]
    )  # noqa: E501
    assert run("predict", model, "long " * 5000)[0] == 0


def test_the_version_is_shown(run):
    assert run("--version")[1].startswith("labelspace 0.")


def test_methods_lists_every_method(run):
    code, out, _ = run("methods")
    assert code == 0
    first = out[: out.index("methods of the literature")]
    named = [line.split()[0] for line in first.splitlines() if line[:2].strip() or line[2:3].strip()]
    assert "blend (default)" in first
    assert [name for name in named if name in registry.METHODS] == list(registry.RECOMMENDED)
    assert all(name in out for name in registry.METHODS)
    listed = json.loads(run("methods", "--json")[1])
    assert {m["name"] for m in listed["methods"] if m["recommended"]} == set(registry.RECOMMENDED)
    assert {m["name"] for m in listed["methods"]} >= {"popular", "random", "neighbors", "one_vs_rest"}
    assert next(m for m in listed["methods"] if m["name"] == "one_vs_rest")["defaults"]["C"] == 0.5


def test_methods_shows_one_method_with_its_parameters(run):
    code, out, err = run("methods", "one_vs_rest")
    assert (code, err) == (0, "")
    method = registry.method("one_vs_rest")
    assert out.startswith(f"one_vs_rest: {method.title}\n")
    assert "docs/methods/one_vs_rest.md" in out
    for name, declared in method.params.items():
        (row,) = (line for line in out.splitlines() if line.split()[:1] == [name])
        assert row.split()[1] == shown(declared.default)
        assert declared.meaning.split()[0] in row


@pytest.mark.parametrize("name", registry.METHODS)
def test_the_parameters_of_every_method_as_json(run, name):
    code, out, _ = run("methods", name, "--json")
    listing = json.loads(out)
    assert code == 0
    assert listing["name"] == name
    defaults = {row["name"]: row["default"] for row in listing["parameters"]}
    assert defaults == registry.method(name).defaults()
    assert all(row["type"] and row["constraint"] and row["meaning"] for row in listing["parameters"])


def test_an_unknown_method_is_one_line(run):
    code, out, err = run("methods", "label_three")
    assert (code, out) == (2, "")
    assert "there is no method 'label_three'; did you mean 'label_tree'?" in one_line(err)


def test_data_stats_counts(run, texts, features):
    code, out, _ = run("data", "stats", texts)
    assert code == 0
    assert "hierarchy depth" in out
    assert "labels per document" in out
    parts = json.loads(run("data", "stats", features, "--json")[1])["parts"]
    assert parts["train"]["documents"] == 700
    assert parts["test"]["features"] == 600


def test_data_convert_round_trip(run, texts, features):
    assert run("data", "convert", features / "train.txt", "there.csv.gz")[0] == 0
    assert run("data", "convert", "there.csv.gz", "back.txt")[0] == 0
    body = Path("back.txt").read_text().split("\n", 1)[1]
    assert body == (features / "train.txt").read_text().split("\n", 1)[1]


def test_data_convert_of_a_folder_shares_labels_and_features(run, texts):
    code, out, _ = run("data", "convert", texts, "out", "--to", "txt.gz")
    assert code == 0
    assert "out/train.txt.gz: 700 documents" in out
    assert run("train", "out", "--method", "one_vs_rest", "--out", "m")[0] == 0
    assert json.loads(run("evaluate", "m", "out", "--json")[1])["P@1"] > 85
    assert "--to jsonl.gz" in one_line(run("data", "convert", texts, "out2")[2])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("train", "nowhere"), "nowhere does not exist"),
        (("train", "texts", "--method", "magic"), "there is no method 'magic'"),
        (("train", "texts", "--set", "color=1"), "blend has no parameter 'color'"),
        (("train", "texts", "--set", "color"), "--set must be KEY=VALUE"),
        (("train", "texts", "--set", "features.color=1"), "tfidf has no parameter 'color'; its parameters are: ngrams"),
        (
            ("train", "texts", "--method", "lexical", "--features", "hashing"),
            "lexical reads texts itself, but features is",
        ),
        (
            ("train", "texts", "--method", "lexical", "--set", "features.min_df=3"),
            "but features.min_df is set; leave it",
        ),
        (
            ("train", "texts", "--method", "text2text", "--features", "tfidf"),
            "text2text reads texts itself, but features",
        ),
        (("train", "texts", "--method", "popular", "--set", "features.color=1"), "tfidf has no parameter 'color'"),
        (("train", "texts", "--method", "popular", "--features", "magic"), "one of tfidf, hashing"),
        (("train", "texts", "--out", "texts"), "holds other files"),
        (("train", "--bogus"), "No such option: --bogus"),
        (("train",), "Missing argument 'DATA'"),
        (("evaluate", "nowhere", "texts"), "does not exist; give the folder"),
        (("evaluate", "model", "texts", "--k", "1,x"), "--k must be integers of at least 1 separated by commas"),
        (("evaluate", "model", "texts", "--k", "1,5000"), "k must be at most the number of labels, but is 5000"),
        (("evaluate", "model", "features"), "reads texts, but the data holds ready-made features"),
        (("evaluate", "model", "only"), "must have a test file, but has none"),
        (("train", "texts", "--method", "popular", "--set", "features.ngrams=9"), "ngrams of tfidf must be"),
        (("predict", "model"), "either texts or --input FILE"),
        (("predict", "model", "x", "--input", "y"), "either texts or --input FILE"),
        (("predict", "model", "--input", "nowhere.csv"), "nowhere.csv does not; check the path"),
        (("predict", "model", "--input", "bad.jsonl"), "bad.jsonl:2:"),
        (("compare", "texts", "--methods", "popular", "--set", "C=1"), "write popular.KEY=VALUE"),
        (("train", "unlabelled.csv"), "no document of unlabelled.csv has any; name the column of the labels: --labels"),
        (("compare", "texts", "--methods", ","), "must name at least one method"),
        (
            ("compare", "texts", "--methods", "popular", "--out", "bad.jsonl"),
            "--out must lie in a folder that can be written",
        ),
        (("data", "convert", "texts/train.jsonl.gz", "x.xml"), "must end with .txt"),
        (("wibble",), "No such command 'wibble'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(run, texts, features, model, tmp_path, args, message):
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\nnot json\n')
    (tmp_path / "unlabelled.csv").write_text("text,size\na b,x\n")
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "train.jsonl").write_text('{"text": "a b", "labels": ["x"]}\n')
    code, _, err = run(*args)
    assert code == 2
    assert message in one_line(err)


def test_no_command_shows_the_help(run):
    code, out, err = run()
    assert code == 0
    assert "train" in out
    assert err == ""


def test_the_demo_goes_from_data_to_tags(run, monkeypatch, data):
    train, test = data
    named = LabelSpace(train.labels.names, [[f"description {n}"] for n in range(40)], hierarchy=train.labels.hierarchy)
    parts = tuple(Dataset(part.Y, named, texts=part.texts) for part in (train, test))
    monkeypatch.setattr("labelspace.data.icd10.icd10", lambda seed: parts)
    monkeypatch.setattr("labelspace.cli.demo.DEMO_TEXTS", test.texts[:3])
    code, out, _ = run("demo")
    assert code == 0
    assert "saved to runs/demo" in out
    assert sum(line.rstrip().endswith("score") for line in out.splitlines()) == 3
    assert "description" in out
    assert "5. why the second has its fourth label" in out
    assert "remainder" in out
    assert "Next, try:" in out


def python(*args, **kwargs):
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=120, check=False, **kwargs)


def test_importing_and_help_load_nothing_heavy():
    heavy = "{'numpy', 'scipy', 'numba', 'sklearn', 'pyarrow', 'torch'}"
    done = python("-c", f"import sys, labelspace; print(sorted({heavy} & set(sys.modules)))")
    assert done.stdout.strip() == "[]", done.stderr
    done = python("-c", f"import sys, labelspace.cli; print(sorted({heavy} & set(sys.modules)))")
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.slow
def test_the_module_runs_and_a_closed_pipe_is_no_error(tmp_path):
    assert python("-m", "labelspace", "methods").returncode == 0
    (tmp_path / "many.txt").write_text("a line\n" * 20_000)
    Tagger(features=Tfidf(min_df=1)).fit(["a line"], [["x"]]).save(tmp_path / "m")
    command = f"{sys.executable} -m labelspace predict {tmp_path}/m --input {tmp_path}/many.txt | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120)
    assert json.loads(done.stdout)["id"] == "0"
    assert done.stderr == ""


@pytest.mark.slow
def test_an_interrupt_ends_with_one_line_and_leaves_nothing(tmp_path):
    data = planted(n=400, d=200, l=30, texts=True, seed=1)
    write_dataset(Dataset(data.Y, data.labels, texts=data.texts), tmp_path / "train.jsonl")
    command = [sys.executable, "-m", "labelspace", "train", "train.jsonl", "--method", "poincare", "--out", "m"]
    command += ["--set", "epochs=1000000", "--set", "n_estimators=3"]  # would not end by itself
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # ignored in the background of a shell
    with subprocess.Popen(command, cwd=tmp_path, preexec_fn=heard, **pipes) as process:
        while not process.stderr.readline().startswith("batches: "):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "error: interrupted; nothing half-written is left"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.jsonl"]


@pytest.mark.slow
def test_blend_resumes_tells_little_and_as_json_nothing(run, tmp_path, monkeypatch):
    data = planted(n=120, d=100, l=10, texts=True, seed=1)
    write_dataset(Dataset(data.Y, data.labels, texts=data.texts), tmp_path / "train.jsonl")
    settings = ["--set", "members=neighbors,label_tree", "--set", "boosting_rounds=3", "--set", "n_folds=5"]
    train = ["train", tmp_path / "train.jsonl", *settings, "--checkpoint", "kept", "--out"]
    show = StepProgress.overall

    def interrupt(self, phase, step, share, seconds_left):
        if phase == "fold 4 of 5":
            raise KeyboardInterrupt
        show(self, phase, step, share, seconds_left)

    with monkeypatch.context() as patched:
        patched.setattr(StepProgress, "overall", interrupt)
        code, _, err = run(*train, "resumed")
    assert (code, len(os.listdir("kept"))) == (130, 1 + 3 * 2)
    assert err.splitlines()[-2:] == [
        "note: the same command resumes the training: what is finished is in kept",
        "error: interrupted; nothing half-written is left",
    ]
    code, out, err = run(*train, "resumed")
    assert (code, os.listdir("kept")) == (0, [])
    told = [line for line in err.splitlines() if line.endswith((" done)", " left)"))]
    assert told[0].startswith("fold 4 of 5: neighbors (")
    assert len(told) <= 4
    code, out, err = run(*train, "whole", "--json")
    assert (code, err, json.loads(out)["method"]) == (0, "", "blend")
    for path in Path("whole").iterdir():
        assert path.read_bytes() == (Path("resumed") / path.name).read_bytes()


def test_force_replaces_a_folder_with_other_files_but_not_one_that_nobody_means(run, texts, monkeypatch):
    Path("notes").mkdir()
    Path("notes", "a.txt").write_text("mine")
    train = ("train", texts, "--method", "popular", "--out")
    code, _, err = run(*train, "notes")
    assert code == 2
    assert "notes holds other files; give another folder, or save with force" in err
    assert Path("notes", "a.txt").read_text() == "mine"
    code, _, err = run(*train, "notes", "--force")
    assert code == 0
    assert "note: replaces notes and the 1 files and folders in it\n" in err
    assert not Path("notes", "a.txt").exists()
    Path("repository", ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(Path("home").absolute()))
    Path("home").mkdir()
    Path("home", "letter").write_text("x")
    for folder in (".", "repository", "home"):
        assert "force must not replace a working folder, a home or a repository" in run(*train, folder, "--force")[2]
    assert Path("home", "letter").exists()


def test_documents_without_labels_are_counted_where_asked(run, model):
    rows = [{"text": "w1 w2 w3", "labels": ["label 1"]}, {"text": "w4 w5", "labels": []}]
    Path("u.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    skipped, counted = (
        json.loads(run("evaluate", model, "u.jsonl", "--unlabelled", how, "--json")[1]) for how in ("skip", "count")
    )
    assert (skipped["n"], skipped["unlabelled"], counted["n"], counted["unlabelled"]) == (1, "skip", 2, "count")
    assert counted["P@5"] == pytest.approx(skipped["P@5"] / 2, abs=1e-4)
    assert "1 without labels counted with a score of 0" in run("evaluate", model, "u.jsonl", "--unlabelled", "count")[1]


def test_a_preset_or_a_curve_that_a_method_does_not_have_is_refused(run, texts, model):
    code, _, err = run("train", texts, "--method", "popular", "--preset", "paper")
    assert (code, err) == (2, "error: popular has no preset 'paper'; its presets are: none\n")
    code, _, err = run("evaluate", model, "texts", "--curve")
    assert code == 2
    assert "--curve needs metrics by epoch, but one_vs_rest recorded none; train a method that has it" in err
