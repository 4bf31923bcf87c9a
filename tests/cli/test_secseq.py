"""The methods that write labels as codes, as a user of the command line meets them."""

import json
import sys
from pathlib import Path

import pytest

from labelspace.models.secseq.model import _Task

torch = pytest.importorskip("torch")

SMALL = ["--set", "hidden=8", "--set", "memory=8", "--set", "word=8", "--set", "epochs=2", "--set", "batch=8"]
CODED = [*SMALL, "--set", "width=3", "--set", "digits=2"]
LINES = [("bread", ["baking"]), ("bread dough", ["baking", "dough"]), ("fish", ["fish"]), ("grilled fish", ["fish"])]


@pytest.fixture
def texts(tmp_path):
    """A folder of texts, of which one is empty."""
    folder = tmp_path / "texts"
    folder.mkdir()
    rows = [{"text": text, "labels": labels} for text, labels in [*LINES * 4, ("", ["fish"])]]
    for name in ("train", "test"):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


@pytest.mark.parametrize("encoder", ["bag", "gru", "convolution"])
@pytest.mark.parametrize(
    "method", [["secseq", *CODED], ["secseq", *CODED, "--set", "target=sequence"], ["mlc2seq", *SMALL]]
)
def test_every_encoder_trains_and_tags(run, texts, encoder, method):
    code, out, err = run("train", texts, "--method", *method, "--set", f"encoder={encoder}", "--out", "model")
    assert code == 0, err
    assert "tokens: " in err
    code, out, _ = run("predict", "model", "bread", "", "--k", 2, "--json")
    assert code == 0
    assert [len(row["labels"]) for row in json.loads(out)["results"]] == [2, 2]


def test_train_tells_how_many_parameters_there_are_in_full(run, texts):
    _, out, _ = run("train", texts, "--method", "secseq", *CODED, "--set", "memory=600", "--out", "model")
    told = next(line for line in out.splitlines() if line.startswith("  parameters: "))
    assert int(told.split()[1].replace(",", "")) > 10**6
    assert told.count(",") == 2


def test_a_training_that_goes_on_is_told_from_where_it_stopped(run, texts, monkeypatch):
    args = ["train", texts, "--method", "secseq", *CODED, "--set", "epochs=4", "--out"]
    assert run(*args, "whole")[0] == 0
    epoch = _Task._epoch

    def cut(self, net, lesson, tree, number, tick):
        if number == 2:
            raise KeyboardInterrupt
        epoch(self, net, lesson, tree, number, tick)

    with monkeypatch.context() as patched:
        patched.setattr(_Task, "_epoch", cut)
        code, _, err = run(*args, "cut", "--checkpoint", "kept")
    assert (code, Path("cut").exists()) == (130, False)
    assert err.splitlines()[-1].startswith("error: stopped before it was done")
    code, _, err = run(*args, "cut", "--checkpoint", "kept")
    assert code == 0
    told = [line.split() for line in err.splitlines() if line.startswith("tokens: ")]
    assert 2 * int(told[0][1].replace(",", "")) == int(told[0][3].replace(",", ""))
    assert told[-1][1] == told[-1][3]
    for path in Path("whole").iterdir():
        assert path.read_bytes() == (Path("cut") / path.name).read_bytes()


def one_line(err):
    (line,) = [line for line in err.splitlines() if not line.startswith(("features: ", "codes: ", "tokens: "))]
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["digits=0"], "digits of secseq must be a whole number from 1 to 16, but is 0"),
        (["width=1"], "width of secseq must be a whole number of at least 2"),
        (["hidden=7"], "hidden of secseq must be an even number of at least 2, but is 7"),
        (["trees=0"], "trees of secseq must be a whole number of at least 1"),
        (["encoder=lstm"], "encoder of secseq must be one of bag, convolution, gru, but is 'lstm'"),
        (["encoder=gru", "features.ngrams=2"], "secseq reads texts itself, but features.ngrams is set"),
        (["rate=1e29"], "weights must stay finite while they are learned, but the length of a gradient is "),
        (["feature_rate=1e29"], "lower rate or feature_rate"),
    ],
)
def test_a_bad_setting_is_one_line_and_writes_nothing(run, texts, settings, message):
    given = [part for setting in settings for part in ("--set", setting)]
    code, out, err = run("train", texts, "--method", "secseq", *CODED, *given, "--out", "model")
    assert (code, out, Path("model").exists()) == (2, "", False)
    assert message in one_line(err)


def test_words_in_a_row_need_texts_and_names_need_letters(run, features):
    for setting, message in [
        ("encoder=gru", "encoder=gru reads words in a row, but X holds features; give texts, or set encoder=bag"),
        ("vectors=text", "text vectors need names that say something, but labels are numbered, as in '0'"),
    ]:
        code, out, err = run("train", features, "--method", "secseq", *CODED, "--set", setting, "--out", "model")
        assert (code, out, Path("model").exists()) == (2, "", False)
        assert message in one_line(err)


@pytest.fixture
def features(tmp_path):
    """A folder of ready-made features, of which a test file holds the same."""
    folder = tmp_path / "features"
    folder.mkdir()
    (folder / "train.txt").write_text("4 3 2\n0 0:1\n1 1:1\n0,1 0:1 1:1\n0 0:1 2:1\n", encoding="utf-8")
    return folder


def test_texts_without_words_are_told(run, tmp_path):
    (tmp_path / "empty.jsonl").write_text('{"text": "", "labels": ["a"]}\n' * 3, encoding="utf-8")
    code, _, err = run("train", "empty.jsonl", "--method", "secseq", "--set", "encoder=gru", "--out", "model")
    assert (code, Path("model").exists()) == (2, False)
    assert one_line(err).endswith("but of these 3 none does; give more or longer texts")


def test_memory_that_runs_out_is_one_line(run, texts, monkeypatch):
    def empty(*args, **kwargs):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 3072000000000 bytes.")

    monkeypatch.setattr(torch, "zeros", empty)
    code, _, err = run("train", texts, "--method", "secseq", *CODED, "--out", "model")
    assert (code, Path("model").exists()) == (1, False)
    assert one_line(err).endswith("or a smaller model")


@pytest.fixture
def no_torch(monkeypatch):
    """Let torch and all that needs it be gone."""

    def gone():
        for name in [name for name in sys.modules if name.startswith("labelspace.training.")]:
            if hasattr(sys.modules[name], "torch"):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "torch", None)

    return gone


def test_without_torch_a_line_says_what_to_install(run, texts, no_torch):
    assert run("train", texts, "--method", "secseq", *CODED, "--out", "model")[0] == 0
    no_torch()
    wanted = "error: this needs the package 'torch', which is not installed; run: pip install 'labelspace[neural]'\n"
    (texts / "train.jsonl").write_text("not JSON", encoding="utf-8")  # it is not read so far
    for method in ("secseq", "mlc2seq"):
        assert run("train", texts, "--method", method, "--out", "other") == (2, "", wanted)
    assert run("predict", "model", "bread") == (2, "", wanted)
    assert run("evaluate", "model", texts) == (2, "", wanted)
    assert run("codes", "model")[0] == run("tree", "model")[0] == run("methods")[0] == 0
