"""The blocks of docs/migrating.md, run as a user would run them."""

import re
import shlex
from pathlib import Path

import pytest
import scipy.sparse as sp

from labelspace.data.synthetic import planted

PAGE = (Path(__file__).parents[1] / "docs" / "migrating.md").read_text(encoding="utf-8")
URI = "http://example.org/p{}"
ANIMALS = ("cat", "dog", "horse", "fish")


def block(name):
    """The lines of the block with this mark."""
    found = re.search(rf"<!-- run: {name} -->\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, name
    return found[1]


def run_all(run, name):
    """Run all commands of a block; returns what each printed on stdout."""
    printed = []
    for line in block(name).splitlines():
        program, *words = shlex.split(line)
        assert program == "labelspace"
        code, out, err = run(*words)
        assert code == 0, f"{line}: {err}"
        printed.append(out)
    return printed


def vocabulary():
    skos, rdf = "http://www.w3.org/2004/02/skos/core#", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    lines = []
    for number, animal in enumerate(ANIMALS):
        uri = f"<{URI.format(number)}>"
        lines.append(f"{uri} <{rdf}type> <{skos}Concept> .\n")
        lines.append(f'{uri} <{skos}prefLabel> "{animal}s"@en .\n')
        lines.append(f'{uri} <{skos}notation> "{number}.1" .\n')
    return "".join(lines)


def documents(n):
    for i in range(n):
        first, second = i % 4, (i * 3 + 1) % 4
        text = f"document {i} about a {ANIMALS[first]} and one {ANIMALS[second]} in the house"
        yield text, sorted({first, second})


def test_five_commands_of_an_annif_user(run, tmp_path):
    (tmp_path / "vocabulary.nt").write_text(vocabulary())
    (tmp_path / "corpus").mkdir()
    for name, n in (("train", 60), ("test", 12)):
        rows = (f"{text}\t{' '.join(f'<{URI.format(i)}>' for i in labels)}\n" for text, labels in documents(n))
        (tmp_path / "corpus" / f"{name}.tsv").write_text("".join(rows))
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "one.txt").write_text("the dog barks")
    *_, figures, tags, wrote = run_all(run, "annif")
    assert "12 documents, 4 labels" in figures
    assert "cats" in tags
    assert URI.format(0) in tags
    assert "1 documents" in wrote
    assert URI.format(1) in (tmp_path / "subjects.annif.jsonl").read_text()


def test_the_script_of_a_pecos_user(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = planted(n=400, d=200, l=20, seed=1)
    for name, part in (("trn", data.rows(range(300))), ("tst", data.rows(range(300, 400)))):
        sp.save_npz(f"X.{name}.npz", part.X)
        sp.save_npz(f"Y.{name}.npz", part.Y)
    exec(compile(block("pecos"), "migrating.md", "exec"), {})
    assert float(capsys.readouterr().out) > 50
    assert sp.load_npz("predictions.npz").shape == (100, 20)
    assert (tmp_path / "runs" / "tree" / "model.json").exists()


def test_the_commands_of_a_fasttext_user(run, tmp_path):
    for name, n in (("train", 60), ("valid", 12)):
        rows = (f"{' '.join(f'__label__{ANIMALS[i]}' for i in labels)} {text}\n" for text, labels in documents(n))
        (tmp_path / f"questions.{name}.txt").write_text("".join(rows))
    _, figures, converted = run_all(run, "fasttext")
    assert "12 documents, 4 labels" in figures
    assert "60 documents, 4 labels" in converted


@pytest.mark.parametrize("name", ["annif", "pecos", "fasttext"])
def test_blocks_are_there(name):
    assert block(name).strip()
