"""Predictions for a folder of files, with tasks in this process: resumed, refused, started anew."""

import json
import os
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from labelspace import Tagger
from labelspace.cli.predict import cluster as predict_cluster
from labelspace.cluster.prediction import blocks
from labelspace.cluster.prediction import run as prediction_run
from labelspace.cluster.prediction.input_files import InputFile, list_inputs
from labelspace.cluster.prediction.output import OutputFolder
from labelspace.data.source import write_dataset
from labelspace.errors import ClusterError, DataError
from labelspace.types import Dataset

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'labelspace[cluster]'")


class Here:
    """Runs tasks in this process, the last first, and fails after so many."""

    n_cpus, fails_after = 2, 10**9

    def map_unordered(self, task, shared, items, whole_node=False):
        for position in reversed(range(len(items))):
            if task is prediction_run.predict_block:
                if not self.fails_after:
                    raise ClusterError("the cluster is gone")
                self.fails_after -= 1
            yield position, task(shared, items[position])


@pytest.fixture
def here(monkeypatch):
    executor = Here()

    @contextmanager
    def connected(address, task_memory, quiet):
        yield executor

    monkeypatch.setattr(predict_cluster, "cluster_executor", connected)
    for name in ("check_machines", "check_shared"):
        monkeypatch.setattr(prediction_run, name, lambda *given: None)
    monkeypatch.setattr(prediction_run, "alive_nodes", lambda: ["one"])
    monkeypatch.setattr(blocks, "MIN_ROWS", 10)
    return executor


@pytest.fixture(scope="module")
def model(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "m"
    train = data[0]
    Tagger("neighbors").fit_dataset(Dataset(train.Y, train.labels, texts=train.texts)).save(folder)
    return folder


@pytest.fixture
def documents(data, run):
    """A folder with two files; ids occur twice."""
    for name, rows in (("a.jsonl", range(100)), ("b.csv", range(90, 200))):
        part = data[1].rows(rows)
        ids = [f"doc {number}" for number in rows]
        write_dataset(Dataset(part.Y, part.labels, texts=part.texts, ids=ids), Path("in", name))
    return Path("in")


def files_of(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def joined(folder, ending):
    return b"".join(content for name, content in files_of(folder).items() if name.endswith(ending))


def test_the_files_are_those_of_the_whole_input(run, model, documents, here):
    for option in ((), ("--k", "2", "--exclude", "0")):
        run("predict", model, "--input", documents / "a.jsonl", "--out", "a.jsonl", *option)
        args = ("predict", model, "--input", documents, "--out", f"out{len(option)}", "--cluster", "local", *option)
        code, out, err = run(*args)
        assert code == 0, err
        assert out == f"wrote out{len(option)}: 210 documents in 16 files\n"
        assert joined(f"out{len(option)}", ".jsonl") == Path("a.jsonl").read_bytes()


def test_formats_of_the_output(run, model, documents, here):
    args = ("predict", model, "--input", documents, "--cluster", "local")
    run(*args, "--out", "same")
    run("predict", model, "--input", documents / "b.csv", "--out", "b.csv")
    header, *rows = Path("b.csv").read_text().splitlines(keepends=True)
    parts = [content.decode() for name, content in files_of("same").items() if name.endswith(".csv")]
    assert len(parts) > 4
    assert all(part.startswith(header) for part in parts)
    assert "".join(part.removeprefix(header) for part in parts) == "".join(rows)
    code, out, _ = run(*args, "--out", f"file://{os.getcwd()}/packed", "--out-format", "jsonl.gz", "--json")
    assert json.loads(out) == {"out": f"file://{os.getcwd()}/packed", "documents": 210, "files": 16, "files_kept": 0}
    assert {name.partition(".")[2] for name in files_of("packed")} == {"jsonl.gz", "json"}


def test_a_restart_goes_on_and_each_document_is_labeled_once(run, model, documents, here, monkeypatch):
    args = ("predict", model, "--input", documents, "--cluster", "local", "--out")
    run(*args, "whole")
    here.fails_after = 3
    code, _, err = run(*args, "out")
    assert (code, "the cluster is gone" in err) == (2, True)
    assert len(files_of("out")) == 4
    Path("out/.part-00000.jsonl.writing-1").write_text("what a process that was killed has left")
    here.fails_after, here.n_cpus = 10**9, 7  # another number of CPUs, but the same blocks
    done = []
    put = OutputFolder.put
    monkeypatch.setattr(OutputFolder, "put", lambda self, file: done.append(file.name) or put(self, file))
    code, out, err = run(*args, "out")
    assert code == 0, err
    assert out == "wrote out: 210 documents in 16 files, of which 3 were there\n"
    assert len(done) == 13
    assert files_of("out") == files_of("whole")
    ids = [json.loads(line)["id"] for line in joined("out", ".jsonl").splitlines()]
    assert ids == [f"doc {number}" for number in range(100)]
    assert run(*args, "out")[1] == "wrote out: 210 documents in 16 files, of which 16 were there\n"
    assert len(done) == 13


def test_other_predictions_in_the_folder_are_refused(run, model, documents, here):
    args = ("predict", model, "--input", documents, "--cluster", "local", "--out", "out")
    run(*args)
    remedy = "; give another --out, or start anew with --force"
    assert f"the same settings, but k was 5 and is 3{remedy}" in run(*args, "--k", "3")[2]
    before = files_of("out")
    (documents / "c.jsonl").write_text('{"text": "one more"}\n')
    assert f"c.jsonl is new{remedy}" in run(*args)[2]
    (documents / "c.jsonl").unlink()
    os.utime(documents / "b.csv", (1, 1))
    assert f"b.csv has changed{remedy}" in run(*args)[2]
    assert files_of("out") == before
    code, out, _ = run(*args, "--k", "3", "--force")
    assert (code, out) == (0, "wrote out: 210 documents in 16 files\n")
    Path("out/manifest.json").write_text("{")
    assert "out/manifest.json must be one of predictions, but cannot be read" in run(*args)[2]
    Path("out/manifest.json").unlink()
    assert f"an empty folder or one with a manifest.json, but {os.getcwd()}/out has files{remedy}" in run(*args)[2]
    Path("out/mine.txt").write_text("kept")
    assert run(*args, "--force")[0] == 0
    assert Path("out/mine.txt").read_text() == "kept"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--out", "out.csv"), "--out must be a folder with --cluster, but 'out.csv' is named like a file"),
        ((), "--cluster reads files and writes a folder of files, but has no --out FOLDER; add it"),
        (("--out", "in"), "--out must not be in the folder of --input, but"),
        (("--out", "in/out"), "--out must not be in the folder of --input, but"),
        (("--out", "in/a.jsonl/out"), "--out must not be in the folder of --input, but"),
        (("--out", "o", "--out-format", "xlsx"), "a file of predictions must end with"),
        (("--out", "sftp://host/out"), "--out must be a path, or in an object store"),
        (("--out", "o", "--min-probability", "7"), "a probability must lie between 0 and 1"),
        (("--out", "o", "--cluster", "ray:/head"), "a cluster must be local, auto"),
    ],
)
def test_what_cannot_be_done_is_refused(args, said, run, model, documents, here, monkeypatch):
    monkeypatch.setattr("fsspec.core.url_to_fs", lambda url: (type("Fs", (), {"protocol": "sftp"})(), "/out"))
    code, out, err = run("predict", model, "--input", documents, "--cluster", "local", *args)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_the_output_is_not_among_the_input_behind_links(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    for path in (real / "part-00000.jsonl", tmp_path / "in" / "a.jsonl"):
        path.parent.mkdir()
        path.write_text('{"text": "a"}\n')
    link.symlink_to(real)
    (tmp_path / "in" / "b.jsonl").symlink_to(real / "part-00000.jsonl")
    (real / "c.jsonl").symlink_to(tmp_path / "in" / "a.jsonl")
    (tmp_path / "in" / "linked").symlink_to(real)
    for given, out in (
        ("link/*.jsonl", "link"),  # the files are in the folder behind a link
        ("link/part-00000.jsonl", "real"),
        ("in/b.jsonl", "real"),  # a link leads there
        ("real/c.jsonl", "link"),  # a link is there
        ("in", "real/out"),  # a folder that a link leads to is read
    ):
        url, output = str(tmp_path / given), OutputFolder(str(tmp_path / out))
        with pytest.raises(DataError, match="--out must not be in the folder of --input, but"):
            prediction_run.check_apart(url, list_inputs(url), output)
    url = str(tmp_path / "in" / "a.jsonl")
    prediction_run.check_apart(url, list_inputs(url), OutputFolder(str(real)))


def test_ctrl_c_says_which_command_goes_on(run, model, documents, here, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("labelspace.cluster.prediction.predict_files", interrupted)
    args = ("predict", model, "--input", documents, "--cluster", "local", "--out", "out")
    assert "note: the same command goes on with what is left" in run(*args)[2]
    assert "note: the same command without --force goes on with what is left" in run(*args, "--force")[2]


def test_options_and_files_that_need_something_else(run, model, documents, here):
    assert "--force is for --cluster, but there is none" in run("predict", model, "a", "--force")[2]
    assert "--task-memory is for --cluster" in run("predict", model, "a", "--task-memory", "1GB")[2]
    to = ("--out", "out", "--cluster", "local")
    assert "--input is the standard input; write it to a file" in run("predict", model, "--input", "-", *to)[2]
    (documents / "notes.md").write_text("no documents")
    err = run("predict", model, "--input", documents, *to)[2]
    assert "files for a cluster must end with .jsonl, .csv, .tsv, .parquet" in err
    assert "in/notes.md; convert it" in err
    assert run("predict", model, "--input", documents / "*.csv", *to)[0] == 0


def test_labels_of_a_file_are_told_by_name(run, model, documents, here):
    names = Tagger.load(model).labels_.names
    Path("allowed.txt").write_text("\n".join(names[:9]))
    args = ("--input", documents / "a.jsonl", "--include", "allowed.txt")
    run("predict", model, *args, "--out", "a.jsonl")
    code, _, err = run("predict", model, *args, "--out", "out", "--cluster", "local")
    assert code == 0
    assert "was read as a file of 9 labels" in err
    assert joined("out", ".jsonl") == Path("a.jsonl").read_bytes()
    Path("allowed.txt").write_text("\n".join(names[:8]))
    assert "the same settings, but labels was" in run("predict", model, *args, "--out", "out", "--cluster", "local")[2]


def test_machines_without_room_or_files_are_refused(monkeypatch):
    looked_for = []
    executor, job = SimpleNamespace(n_cpus=6, check_room=lambda threads: None), SimpleNamespace(model="m")
    files = [InputFile("file/a.csv", 1, ""), InputFile("s3/b.csv", 1, "")]
    free = iter([{}, {"CPU": 1.0}])
    monkeypatch.setattr(
        prediction_run, "import_module", lambda name: SimpleNamespace(available_resources=lambda: next(free))
    )
    monkeypatch.setattr(prediction_run, "alive_nodes", lambda: ["one"])
    monkeypatch.setattr(prediction_run, "check_shared", lambda nodes, paths: looked_for.extend(paths))
    monkeypatch.setattr(
        prediction_run, "file_system", lambda path: (SimpleNamespace(protocol=path.partition("/")[0]), path)
    )
    prediction_run.check_machines(executor, job, files)
    assert looked_for == [os.path.join("m", "model.json"), "file/a.csv"]
    monkeypatch.setattr(prediction_run, "ROOM_SECONDS", 0.0)
    free = iter([{}] * 9)
    with pytest.raises(ClusterError, match="a CPU of the cluster must be free, but all 6 are in use; wait until"):
        prediction_run.check_machines(executor, job, files)


def test_another_model_at_the_same_path_is_refused(model, tmp_path):
    with pytest.raises(ClusterError, match="all machines must have the same model, but .* has a different one at"):
        prediction_run._loaded(str(model), "0" * 64, None)
    with pytest.raises(ClusterError, match="all machines must see the model, but .* has no"):
        prediction_run._loaded(str(tmp_path / "none"), "0" * 64, None)


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("id\n")
    output = OutputFolder(str(tmp_path / "out"))
    assert output.names() == set()

    def full(*given):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(DataError, match=r"must be written to .*out, but that failed \(No space left on device\)"):
            output.put(tmp_path / "a.csv")
    assert output.names() == set()
    output.put(tmp_path / "a.csv")
    assert output.names() == {"a.csv"}
    with pytest.raises(DataError, match="--out must be a folder, but .* is a file"):
        OutputFolder(str(tmp_path / "a.csv")).names()
