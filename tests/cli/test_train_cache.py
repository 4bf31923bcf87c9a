import json
from pathlib import Path

import pytest

from labelspace.cli import train as training_cache
from labelspace.data.source import write_dataset
from labelspace.types import Dataset


@pytest.fixture
def train_file(data, tmp_path):
    path = tmp_path / "train.jsonl"
    write_dataset(Dataset(data[0].Y, data[0].labels, data[0].texts), path)
    return path


def train(run, path, *options, method="label_tree"):
    return run("train", path, "--method", method, "--out", "model", "--set", "tune=false", *options)


def test_what_it_took_is_printed(run, train_file):
    code, out, err = train(run, train_file, "--cache", "cache", "--max-memory", "4GB")
    assert code == 0
    assert "  peak memory: " in out
    assert " MB of 4,000 MB; " in out
    assert "  cache: 1 MB of documents kept in cache, and up to " in out
    assert "unchanged" not in err
    code, _, err = train(run, train_file, "--cache", "cache", "--max-memory", "4GB")
    assert code == 0
    assert f"note: {train_file} is unchanged: its documents are those in cache\n" in err


def test_what_it_took_is_in_the_json_object(run, train_file):
    code, out, err = train(run, train_file, "--cache", "cache", "--json")
    assert (code, err) == (0, "")
    cache = json.loads(out)["cache"]
    assert cache["folder"] == "cache"
    assert 0 < cache["peak_memory_mb"] < cache["peak_resident_mb"] < cache["max_memory_mb"]
    assert cache["kept_mb"] == 1


def test_reading_is_shown(run, train_file, monkeypatch):
    monkeypatch.setattr(training_cache, "MB", 10_000)
    monkeypatch.setattr(training_cache, "SHOWN", 10_000)
    _, _, err = train(run, train_file, "--cache", "cache")
    size = train_file.stat().st_size // 10_000
    assert f"reading (MB): {size} of {size}" in err


def test_more_memory_than_allowed_is_said(run, train_file, monkeypatch):
    monkeypatch.setattr("labelspace.data.cache.scratch.peak_memory", lambda: 700 * 10**6)
    monkeypatch.setattr("labelspace.data.cache.scratch.STATM", Path("/nowhere"))  # no figure without pages of files
    code, out, err = train(run, train_file, "--cache", "cache", "--max-memory", "600MB")
    assert code == 0
    assert "peak memory: 700 MB of 600 MB; 700 MB with" in out
    assert "note: 100 MB more than --max-memory were needed" in err


def test_where_a_cache_is_of_little_use_that_is_said(run, train_file, monkeypatch):
    monkeypatch.setattr("labelspace.data.cache.scratch.can_drop_pages", lambda: False)
    monkeypatch.setattr("labelspace.data.cache.scratch.is_in_memory", lambda folder: True)
    code, _, err = train(run, train_file, "--cache", "cache")
    assert code == 0
    assert "note: --max-memory is enforced only on Linux" in err
    assert "note: cache is on a disk in memory (tmpfs)" in err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--max-memory", "4GB"], "--max-memory limits a training with a cache, but there is none; add --cache DIR"),
        (["--cache", "cache", "--max-memory", "much"], "--max-memory must be a size such as 500MB or 4GB"),
        (["--cache", "cache", "--max-memory", "10MB"], "at least 250 MB of memory, but has 10 MB"),
        (["--cache", "."], "a cache must be a new or empty folder, but . holds other files"),
    ],
)
def test_wrong_options_are_refused(options, problem, run, train_file):
    code, _, err = train(run, train_file, *options)
    assert code == 2
    assert problem in err


def test_other_methods_are_refused_with_those_that_can(run, train_file, tmp_path):
    code, _, err = run("train", train_file, "--method", "neighbors", "--cache", "cache")
    assert code == 2
    assert "a cache needs a method that trains without the documents in memory, but neighbors does not" in err
    for name in ("label_tree", "glas", "network", "secseq"):
        assert name in err
    assert not (tmp_path / "cache").exists()
