"""The methods that write labels as codes, on the command line."""

import json
import sys
from pathlib import Path

import pytest

from labelspace.report.progress import StepProgress

torch = pytest.importorskip("torch")

SMALL = [part for key in ("hidden_dim", "decoder_dim", "batch_size") for part in ("--set", f"{key}=8")]
SMALL += ["--set", "epochs=2"]
WORDS = ["--set", "word_dim=8"]  # for encoders that read words
CODED = [*SMALL, "--set", "code_size=3", "--set", "code_length=2"]
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


@pytest.mark.parametrize(
    ("encoder", "method"),
    [
        ("bag", ["secseq", *CODED]),
        ("gru", ["secseq", *CODED, *WORDS, "--set", "target=sequence"]),
        ("convolution", ["secseq", *CODED, *WORDS]),
        ("gru", ["mlc2seq", *SMALL, *WORDS]),
    ],
)
def test_every_encoder_trains_and_tags(run, texts, encoder, method):
    code, out, err = run("train", texts, "--method", *method, "--set", f"encoder={encoder}", "--out", "model")
    assert code == 0, err
    assert "tokens: " in err
    code, out, _ = run("predict", "model", "bread", "", "--k", 2, "--json")
    assert code == 0
    assert [len(row["labels"]) for row in json.loads(out)["results"]] == [2, 2]


def test_train_prints_the_number_of_parameters_in_full(run, texts):
    _, out, _ = run("train", texts, "--method", "secseq", *CODED, "--set", "decoder_dim=600", "--out", "model")
    shown = next(line for line in out.splitlines() if line.startswith("  parameters: "))
    assert int(shown.split()[1].replace(",", "")) > 10**6
    assert shown.count(",") == 2


def test_an_interrupted_training_resumes_and_shows_from_where(run, texts, monkeypatch):
    args = ["train", texts, "--method", "secseq", *CODED, "--set", "epochs=4", "--out"]
    assert run(*args, "uninterrupted")[0] == 0
    show = StepProgress.__call__

    def interrupt(self, step, done, total):
        if step == "tokens" and 2 * done > total:
            raise KeyboardInterrupt
        show(self, step, done, total)

    with monkeypatch.context() as patched:
        patched.setattr(StepProgress, "__call__", interrupt)
        code, _, err = run(*args, "resumed", "--checkpoint", "checkpoints")
    assert (code, Path("resumed").exists()) == (130, False)
    assert err.splitlines()[-1] == "error: interrupted; nothing half-written is left"
    code, _, err = run(*args, "resumed", "--checkpoint", "checkpoints")
    assert code == 0
    shown = [line.split() for line in err.splitlines() if line.startswith("tokens: ")]
    assert 2 * int(shown[0][1].replace(",", "")) == int(shown[0][3].replace(",", ""))
    assert shown[-1][1] == shown[-1][3]
    for path in Path("uninterrupted").iterdir():
        assert path.read_bytes() == (Path("resumed") / path.name).read_bytes()


def one_line(err):
    (line,) = [
        line for line in err.splitlines() if not line.startswith(("note: ", "features: ", "codes: ", "tokens: "))
    ]
    assert line.startswith("error: ")
    return line


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["code_length=0"], "code_length of secseq must be an integer from 1 to 256, but is 0"),
        (["code_size=1"], "code_size of secseq must be an integer of at least 2"),
        (["hidden_dim=7"], "hidden_dim of secseq must be an even number of at least 2, but is 7"),
        (["n_estimators=0"], "n_estimators of secseq must be an integer of at least 1"),
        (["encoder=lstm"], "encoder of secseq must be one of bag, convolution, gru, but is 'lstm'"),
        (["learning_rate=1e29"], "weights must stay finite in training, but the norm of a gradient is "),
        (["feature_learning_rate=1e29"], "weights must stay finite in training, but the norm of a gradient is "),
    ],
)
def test_a_bad_setting_is_one_line_and_writes_nothing(run, texts, settings, message):
    given = [part for setting in settings for part in ("--set", setting)]
    code, out, err = run("train", texts, "--method", "secseq", *CODED, *given, "--out", "model")
    assert (code, out, Path("model").exists()) == (2, "", False)
    assert message in one_line(err)


def test_features_are_not_set_for_an_encoder_that_reads_words(run, texts):
    settings = [*SMALL, "--set", "encoder=gru", "--set", "features.ngrams=2"]
    code, _, err = run("train", texts, "--method", "mlc2seq", *settings, "--out", "model")
    assert (code, Path("model").exists()) == (2, False)
    assert "mlc2seq reads texts itself, but features.ngrams is set" in one_line(err)


@pytest.mark.parametrize(
    ("setting", "message"), [("encoder=gru", "features"), ("label_vectors=text", "labels are numbered, as in '0'")]
)
def test_an_encoder_of_words_needs_texts_and_text_vectors_need_names(run, features, setting, message):
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


def test_texts_without_words_are_an_error(run, tmp_path):
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
    expected = "error: this needs the package 'torch', which is not installed; run: pip install 'labelspace[neural]'\n"
    (texts / "train.jsonl").write_text("not JSON", encoding="utf-8")  # it is not read before the check
    for method in ("secseq", "mlc2seq"):
        assert run("train", texts, "--method", method, "--out", "other") == (2, "", expected)
    assert run("predict", "model", "bread") == (2, "", expected)
    assert run("evaluate", "model", texts) == (2, "", expected)
    assert run("codes", "model")[0] == run("tree", "model")[0] == run("methods")[0] == 0
