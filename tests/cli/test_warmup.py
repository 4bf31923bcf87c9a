import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from labelspace.cli.app import app
from labelspace.cli.console import MESSAGE, CompilationNotice
from labelspace.kernels.compilation import tell, watching


def test_warmup_says_where_kernels_are_and_a_second_run_that_nothing_was_to_do():
    first = CliRunner().invoke(app, ["warmup", "--method", "lexical", "--json"])
    assert first.exit_code == 0, first.output
    summary = json.loads(first.stdout)
    assert summary["methods"] == ["lexical"]
    assert summary["mb"] > 0
    assert any(Path(summary["folder"]).rglob("kernels.find_matches*.nbc"))
    second = CliRunner().invoke(app, ["warmup", "--method", "lexical"])
    assert second.stdout.startswith("nothing to do: the kernels for lexical are compiled\ncache: ")


NEEDED_MORE = """
import sys
from dataclasses import replace
from numba.core.dispatcher import Dispatcher
from labelspace import cli
from labelspace.data.source import write_dataset
from labelspace.data.synthetic import planted
from labelspace.server.label_search import LabelSearch

def signatures():
    modules = [module for name, module in sys.modules.items() if name.startswith("labelspace.kernels")]
    kernels = {kernel for module in modules for kernel in vars(module).values() if isinstance(kernel, Dispatcher)}
    return {(kernel.__name__, str(signature)) for kernel in kernels for signature in kernel.signatures}

def run(*args):
    sys.argv = ["labelspace", *args]
    try:
        cli.main()
    except SystemExit as done:
        assert done.code == 0, args

run("warmup", "--json")
compiled = signatures()
data = planted(n=90, d=300, l=30, texts=True, seed=3)
write_dataset(replace(data, X=None), "texts.jsonl")
write_dataset(replace(data, texts=None), "features.txt")
for method in ("blend", "label_tree", "pdsparse", "glas", "sleec"):
    for kind in ("texts.jsonl", "features.txt"):
        few = ["--set", "epochs=1"] if method == "glas" else []
        run("train", kind, "--method", method, "--out", method + kind, *few)
        run("predict", method + kind, *(["w12 w7"] if kind == "texts.jsonl" else ["--input", kind]))
LabelSearch(data.labels).find("labels", limit=5)
print("needed more:", sorted(signatures() - compiled))
"""


@pytest.mark.slow
def test_nothing_is_left_to_compile_after_it(tmp_path):
    done = subprocess.run([sys.executable, "-c", NEEDED_MORE], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "needed more: []"


def test_warmup_refuses_an_unknown_method():
    result = CliRunner().invoke(app, ["warmup", "--method", "nothing"])
    assert "nothing" in str(result.exception)


class Clock:
    """Each look at it takes a while."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds = 0.0, seconds

    def monotonic(self) -> float:
        self.now += self.seconds
        return self.now


@pytest.mark.parametrize(("seconds", "lines"), [(0.1, 0), (0.6, 1)])
def test_long_compilation_is_said_once_where_there_is_no_terminal(monkeypatch, capsys, seconds, lines):
    monkeypatch.setattr("labelspace.cli.console.time", Clock(seconds))
    with watching(CompilationNotice()):
        for name in ("labelspace.kernels.a", "labelspace.kernels.b", "labelspace.kernels.c"):
            tell(name, starts=True)
            tell(name, starts=False)
    assert capsys.readouterr().err == f"{MESSAGE}\n" * lines


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_spinner_counts_the_kernels(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("labelspace.cli.console.time", Clock(0.6))
    with watching(CompilationNotice()):
        for name in ("labelspace.kernels.first", "labelspace.kernels.second", "labelspace.kernels.third"):
            tell(name, starts=True)
            tell(name, starts=False)
    assert f"{MESSAGE}: 2 done" in screen.getvalue()
