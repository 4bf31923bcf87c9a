"""The command data synthetic: what it writes and prints."""


def test_it_writes_files_that_other_commands_read(run, tmp_path):
    code, out, err = run("data", "synthetic", "Wiki10-31K", "wiki", "--fraction", "0.02", "--seed", "4")
    assert (code, out.splitlines()) == (
        0,
        [
            "wiki/train.txt: 283 documents, 14,416 features, 619 labels",
            "wiki/test.txt: 132 documents, 14,416 features, 619 labels",
        ],
    )
    assert "write train.txt: 283 of 283" in err
    assert sorted(path.name for path in (tmp_path / "wiki").iterdir()) == ["test.txt", "train.txt"]
    code, out, _ = run("train", "wiki", "--method", "popular", "--out", "model")
    assert code == 0


def test_wrong_names_fractions_and_folders_are_one_line(run, tmp_path):
    (tmp_path / "file").write_text("text")
    for arguments, message in (
        (("Wiki", "new"), "error: the name must be one of Wiki10-31K, "),
        (("Wiki10-31K", "new", "--fraction", "0"), "error: fraction must be at least 0.0152 for this shape"),
        (("Wiki10-31K", "file", "--fraction", "0.02"), "error: synthetic data must be written to a new folder"),
    ):
        code, out, err = run("data", "synthetic", *arguments)
        assert (code, out, len(err.splitlines())) == (2, "", 1)
        assert err.startswith(message)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
