"""Whatever is wrong, a command ends with one line on stderr and a code, and what it prints is safe to show."""

import errno
import io
import json
import subprocess
import sys
import unicodedata
import warnings
from pathlib import Path

import numpy as np
import pytest

from labelspace.cli import process
from labelspace.cli.console import print_json
from labelspace.cli.exit_codes import failure
from labelspace.features import Tfidf
from labelspace.tagger import Tagger

ESC = "\x1b[31mred\x1b[0m\x07 \x9b2J \u202eoverride [bold]b[/bold] \u2028 \x7f"
DEEP = "[" * 100_000 + "]" * 100_000
DATA_COMMANDS = (
    "train DATA --method popular --out new", "compare DATA --methods popular", "data stats DATA", "data check DATA",
    "data convert DATA converted.csv", "evaluate model DATA", "learn model DATA", "predict model --input DATA",
)  # fmt: skip
MODEL_COMMANDS = (
    *("evaluate MODEL good.jsonl", "predict MODEL text", "map MODEL", "tree MODEL", "codes MODEL"),
    *("learn MODEL good.jsonl", "learn MODEL --follow good.jsonl", "history MODEL", "rollback MODEL"),
    "info MODEL",
)


def fitted(names, **options):
    texts = [f"common word{i}" for i in range(len(names))]
    return Tagger(features=Tfidf(min_df=1), **options).fit(texts, [[name] for name in names])


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model"
    fitted(["a", "b"], method="neighbors").save(folder)
    return folder


@pytest.fixture
def files(model_folder, tmp_path):
    """Good and bad files and models in the folder that ``run`` uses."""
    (tmp_path / "model").symlink_to(model_folder)
    (tmp_path / "good.jsonl").write_text('{"text": "common word1", "labels": ["a"]}\n')
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\x00" * 40)
    (tmp_path / "deep.jsonl").write_text('{"text": "common", "labels": ' + DEEP + "}\n")
    (tmp_path / "array.jsonl").write_text("[1, 2]\n")
    (tmp_path / "deep_model").mkdir()
    (tmp_path / "deep_model" / "model.json").write_text(DEEP)
    return tmp_path


def control_characters(text):
    return [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]


def assert_one_line(code, err):
    lines = [line for line in err.splitlines() if not line.startswith(("features: ", "documents: "))]
    assert (code in (1, 2), len(lines), lines[0][:7]) == (True, 1, "error: "), err
    assert "internal error" not in err
    assert not control_characters(err)


@pytest.mark.parametrize("command", DATA_COMMANDS)
@pytest.mark.parametrize("data", ["missing.jsonl", "folder", "bytes.jsonl", "deep.jsonl", "array.jsonl", f"{ESC}.csv"])
def test_bad_data_is_one_line(run, files, command, data):
    code, _, err = run(*(part.replace("DATA", data) for part in command.split()))
    assert_one_line(code, err)


@pytest.mark.parametrize("command", DATA_COMMANDS[:-1])
def test_an_empty_file_is_one_line(run, files, command):
    code, _, err = run(*command.replace("DATA", "empty.jsonl").split())
    if code or "data" not in command:  # statistics of nothing are zeros
        assert_one_line(code, err)


@pytest.mark.parametrize("command", MODEL_COMMANDS)
@pytest.mark.parametrize("model", ["missing", "good.jsonl", "folder", "deep_model", ESC])
def test_a_bad_model_is_one_line(run, files, command, model):
    code, out, err = run(*(part.replace("MODEL", model) for part in command.split()))
    assert_one_line(code, err)
    assert out == ""


def in_a_kernel(error):
    """What Python makes of an error in compiled code that goes on."""
    raised = SystemError("a kernel returned a result with an exception set")
    raised.__cause__ = error
    return raised


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (RecursionError("deep"), "levels deep, but is nested deeper; check the file", 2),
        (MemoryError(), "the data must fit into memory, but it ran out; use fewer features", 1),
        (OSError(errno.ENOMEM, "no memory"), "the data must fit into memory, but it ran out", 1),
        (OSError(errno.EIO, "Input/output error"), "one is not (Input/output error); check the disk", 1),
        (OSError(errno.EACCES, "denied", "a\x1bfile"), "but a\\x1bfile is not (denied); check it", 2),
        (OSError("Could not load shared object libllvmlite.so"), "the installed packages must load, but one", 1),
        (ImportError("libopenblas.so: failed to map segment"), "(libopenblas.so: failed to map segment); free", 1),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "text must be valid Unicode, but is not", 2),
        (KeyboardInterrupt(), "interrupted; nothing half-written is left", 130),
        (in_a_kernel(KeyboardInterrupt()), "interrupted; nothing half-written is left", 130),
        (in_a_kernel(ValueError()), "internal error: SystemError: a kernel returned a result with an exception set", 1),
        (ZeroDivisionError("two\nlines " * 999), "internal error: ZeroDivisionError: two lines two lines", 1),
    ],
)
def test_every_error_is_one_line(run, monkeypatch, error, line, code):
    def broken(name):
        raise error

    monkeypatch.setattr("labelspace.models.registry.method", broken)
    monkeypatch.delenv("LABELSPACE_DEBUG", raising=False)
    found, out, err = run("methods", "popular")
    assert (found, out, err.count("\n"), err[:7]) == (code, "", 1, "error: ")
    assert line in err
    assert len(err) < 500
    assert not control_characters(err)


@pytest.mark.parametrize("error", [KeyError("weights"), IndexError("9"), TypeError("str"), RuntimeError("shape")])
def test_an_unforeseen_error_does_not_blame_the_model(run, files, monkeypatch, error):
    def broken(*args, **options):
        raise error

    monkeypatch.setattr(Tagger, "answers", broken)
    code, out, err = run("predict", "model", "common")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"error: internal error: {type(error).__name__}: ")
    assert "this may be a bug of labelspace: please report it, with what LABELSPACE_DEBUG=1" in err


def test_a_message_of_the_library_names_flags(run, files):
    err = run("data", "stats", "good.jsonl", "--delimiter", "||")[2]
    assert err.startswith("error: --delimiter must be one character")
    assert "write for example --delimiter semicolon" in err


def test_the_traceback_is_shown_on_request(run, monkeypatch):
    monkeypatch.setattr("labelspace.models.registry.method", lambda name: 1 / 0)
    monkeypatch.setenv("LABELSPACE_DEBUG", "1")
    err = run("methods", "popular")[2]
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith(
        "error: internal error: ZeroDivisionError: division by zero; this may be a bug of labelspace: please report"
    )
    assert "LABELSPACE_DEBUG=1" in run("--help")[1]


def test_a_closed_pipe_needs_no_words():
    assert failure(BrokenPipeError(errno.EPIPE, "Broken pipe")) == ("", 1)


def test_a_warning_is_one_line(run, monkeypatch):
    def warned(name):
        warnings.warn(f"two\nlines {ESC}", RuntimeWarning, stacklevel=1)
        raise MemoryError

    monkeypatch.setattr("labelspace.models.registry.method", warned)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        err = run("methods", "popular")[2]
    assert err.startswith("warning: two lines \\x1b[31mred")
    assert (err.count("\n"), control_characters(err)) == (2, [])


def no_thread(thread):
    raise RuntimeError("can't start new thread")


def test_limits_that_libraries_do_not_survive_are_one_line(run, monkeypatch):
    monkeypatch.setattr(process, "memory_limit", lambda: 7 * 10**8)
    code, _, err = run("methods")
    assert (code, err) == (
        1,
        "error: a process must be allowed at least 1,000 MB of memory, but the limit is 700 MB; raise it: "
        "ulimit -v unlimited\n",
    )
    monkeypatch.setattr(process, "memory_limit", lambda: None)
    monkeypatch.setattr(process, "extra_threads", lambda: 3)
    monkeypatch.setattr("threading.Thread.start", no_thread)
    code, _, err = run("methods")
    assert (code, "must be able to start 3 threads, but is not; raise the limit" in err) == (1, True)


def test_threads_are_counted_by_the_settings(monkeypatch):
    for name in ("OPENBLAS_NUM_THREADS", "LABELSPACE_THREADS"):
        monkeypatch.setenv(name, "1")
    assert process.extra_threads() == 0
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    assert process.extra_threads() == 8


class Broken(io.StringIO):
    """A stream of a full disk."""

    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("command", [("methods",), ("methods", "--json"), ("predict", "model", "common", "--json")])
def test_a_full_disk_is_one_line(run, files, monkeypatch, command):
    monkeypatch.setattr(sys, "stdout", Broken())
    code, _, err = run(*command)
    assert (code, err.count("\n")) == (1, 1)
    assert "one is not (No space left on device); check the disk" in err


def strict_json(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_scores_that_are_no_numbers_are_null(run, tmp_path, monkeypatch):
    tagger = fitted(["a", "b"], method="neighbors")
    scores = np.array([[np.inf, np.nan]], np.float32)
    top = tagger.predict_topk(["common"], 2)
    monkeypatch.setattr(type(top), "__post_init__", lambda top: None, raising=False)
    monkeypatch.setattr(Tagger, "load", lambda path: tagger)
    monkeypatch.setattr(tagger.model, "_predict", lambda X, k, allowed: type(top)(top.labels, scores))
    code, out, _ = run("predict", "model", "common", "--json")
    assert [tag["score"] for tag in strict_json(out)["results"][0]["labels"]] == [None, None]
    (tmp_path / "in.txt").write_text("common\n")
    out = run("predict", "model", "--input", "in.txt")[1]
    assert (code, [tag["score"] for tag in strict_json(out)["labels"]]) == (0, [None, None])
    assert "nan" in run("predict", "model", "common")[1]


@pytest.mark.parametrize("method", ["label_tree", "poincare", pytest.param("secseq", marks=pytest.mark.slow)])
def test_no_control_character_of_a_name_reaches_the_terminal(run, tmp_path, method):
    if method == "secseq":
        pytest.importorskip("torch")
    names = [f"{ESC} {i}" for i in range(6)]
    rows = [{"text": f"common word{i % 6} {ESC}", "labels": [names[i % 6]]} for i in range(24)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out_name = "out \x1b[31m"
    settings = ("--set", "epochs=1") if method != "label_tree" else ()
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps({"label": n, "alt": [f"{ESC} x"]}) + "\n" for n in names))
    show = {
        "label_tree": ("tree", "--format", "text"),
        "poincare": ("map", "--out", f"{ESC}.html"),
        "secseq": ("codes", "--prefix", "0"),
    }
    command, *rest = show[method]
    good = [
        ("train", "in.jsonl", "--method", method, "--out", out_name, *settings),
        ("predict", out_name, f"common word1 {ESC}"),
        ("predict", out_name, f"common word1 {ESC}", "--json"),
        ("predict", out_name, "--input", "in.jsonl"),
        ("evaluate", out_name, "in.jsonl", "--k", "1"),
        ("data", "stats", "in.jsonl"),
        ("data", "convert", "in.jsonl", f"{ESC}.jsonl"),
        (command, out_name, *rest),
        (command, out_name, "--json"),
        ("compare", "in.jsonl", "--methods", "popular", "--out", f"{ESC} compared", "--k", "1"),
    ]
    bad = [
        ("compare", "in.jsonl", "--methods", f"popular,{ESC}", "--out", "compared"),
        ("predict", out_name, "--input", f"{ESC}.csv"),
        ("train", "in.jsonl", "--method", ESC),
        ("train", "in.jsonl", "--set", f"{ESC}=1"),
        ("methods", ESC),
        (ESC,),
        ("train", "in.jsonl", f"--{ESC}"),
    ]
    for args in good + bad:
        code, out, err = run(*args)
        assert control_characters(out + err) == [], args
        assert code == (2 if args in bad else 0), err
        assert "internal error" not in err


def test_a_table_with_hostile_headers_is_escaped(run, tmp_path):
    column = f"L0 {ESC}".replace("\u2028", "")
    rows = [{"title": f"word{i % 3} common", column: f"{ESC}{i % 3}"} for i in range(12)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ("--inputs", "title", "--outputs", column)
    for code, *args in (
        (0, "train", "t.jsonl", *flags, "--method", "popular", "--out", "m"),
        (0, "evaluate", "m", "t.jsonl", "--k", "1"),
        (0, "data", "stats", "t.jsonl", *flags),
        (2, "data", "stats", "t.jsonl", "--inputs", "title", "--outputs", f"{ESC}missing"),
    ):
        found, out, err = run(*args)
        assert control_characters(out + err) == [], args
        assert found == code, err


SHELL = {
    "predict MODEL --input - <&-": (2, "error: - must be readable, but is not"),
    "--version >&-": (1, "error: stdout must be open, but is closed; write it to a file"),
    "--version >/dev/full": (1, "error: files and the output must be readable and writable, but one is not"),
    "wibble 2>&-": (2, ""),
    "wibble 2>/dev/full": (2, ""),
    "--version <&- >&- 2>&-": (1, ""),
}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a Unix shell")
@pytest.mark.parametrize("command", SHELL)
def test_closed_streams_are_one_line(model_folder, command):
    line = f"{sys.executable} -m labelspace {command.replace('MODEL', str(model_folder))}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    code, start = SHELL[command]
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(start)
    assert done.stderr.count("\n") == bool(start)


def test_invalid_bytes_in_arguments_are_printed_whatever_the_encoding(run, files, monkeypatch):
    for flags in ((), ("--json",)):
        stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", stdout)
        assert run("predict", "model", "\udcff é common", *flags)[0] == 0
        printed = stdout.buffer.getvalue().decode()
        assert "\\udcff é common" in printed
    assert strict_json(printed)["results"][0]["text"] == "\udcff é common"


def test_json_for_a_terminal_of_another_encoding_is_still_json(monkeypatch):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", stdout)
    print_json({"label": "café 🙂", "score": float("inf")})
    stdout.flush()
    assert strict_json(stdout.buffer.getvalue().decode("ascii")) == {"label": "café 🙂", "score": None}
