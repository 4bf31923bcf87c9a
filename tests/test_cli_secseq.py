"""The methods that write labels as codes, as a user of the command line meets them."""

import json

import pytest

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
