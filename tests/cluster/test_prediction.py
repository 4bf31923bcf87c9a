"""Predictions on a cluster of several machines, some of which are lost on the way."""

from pathlib import Path

import pytest

from labelspace import Tagger
from labelspace.cluster import RayExecutor
from labelspace.cluster.prediction import blocks
from labelspace.cluster.prediction.run import predict_block
from labelspace.data.source import write_dataset
from labelspace.report.progress import StepProgress
from labelspace.types import Dataset
from tests.cluster.losses import KilledOnce

pytest.importorskip("ray", reason="Ray is not installed: pip install 'labelspace[cluster]'")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "m"
    train = data[0]
    Tagger("neighbors").fit_dataset(Dataset(train.Y, train.labels, texts=train.texts)).save(folder)
    return folder


@pytest.fixture
def documents(data, run):
    """A folder with a file of 3000 documents, and one of 600."""
    part = data[1]
    for name, n in (("a.jsonl", 15), ("b.jsonl.gz", 3)):
        many = part.rows([row for _ in range(n) for row in range(len(part))])
        ids = [f"{name} {number}" for number in range(len(many))]
        write_dataset(Dataset(many.Y, many.labels, texts=many.texts, ids=ids), Path("in", name))
    return Path("in")


def files_of(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def test_what_is_lost_is_done_again(run, model, documents, three_nodes, monkeypatch):
    monkeypatch.setattr(blocks, "MIN_ROWS", 50)
    args = ("predict", model, "--input", documents, "--cluster", three_nodes.address, "--out")
    code, out, err = run(*args, "whole")
    assert code == 0, err
    assert "note: cluster: 3 machines with 3 CPUs" in err
    whole = files_of("whole")
    assert out == f"wrote whole: 3,600 documents in {len(whole) - 1} files\n"
    run("predict", model, "--input", documents / "a.jsonl", "--out", "a.jsonl")
    parts = [content for name, content in whole.items() if name.endswith(".jsonl")]
    assert b"".join(parts) == Path("a.jsonl").read_bytes()
    assert len(parts) > 12

    killed, losses, map_unordered = Path("killed").resolve(), [three_nodes.remove_one], RayExecutor.map_unordered

    def losing(self, task, *given):
        return map_unordered(self, KilledOnce(task, killed) if task is predict_block else task, *given)

    monkeypatch.setattr(RayExecutor, "map_unordered", losing)
    monkeypatch.setattr(StepProgress, "overall", lambda self, *given: losses and losses.pop()())
    code, _, err = run(*args, "out")
    assert code == 0, err
    assert killed.exists()
    assert not losses
    assert files_of("out") == whole
