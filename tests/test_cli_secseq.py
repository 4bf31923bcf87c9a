"""The methods that write labels as codes, as a user of the command line meets them."""

import json
from pathlib import Path

import pytest

from labelspace.models.secseq import _Task

pytest.importorskip("torch")

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
