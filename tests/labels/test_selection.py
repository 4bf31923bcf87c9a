from pathlib import Path

import numpy as np
import pytest

from labelspace.errors import DataError, ParameterError
from labelspace.labels.selection import branch, branch_label, select_labels, with_files
from labelspace.types import Hierarchy, LabelSpace

PATHS = ["food > bread > rye", "food > bread > white", "food > fish", "drink > tea", "12", "bread"]


@pytest.fixture
def space():
    return LabelSpace(PATHS).with_paths()


def names(space, **options):
    return [space.names[label] for label in np.flatnonzero(select_labels(space, **options).allowed)]


def test_nothing_said_is_no_selection(space):
    assert select_labels(space) is None
    assert select_labels(space, include=[], exclude=(), under=None) is None


def test_include_and_under_are_joined_and_exclude_wins(space):
    both = names(space, include="drink > tea", under=["food > bread"], exclude=["food > bread > rye"])
    assert sorted(both) == ["drink > tea", "food > bread", "food > bread > white"]
    rest = names(space, exclude=["drink > tea", "food"])
    assert sorted(rest) == sorted({*space.names} - {"drink > tea", "food"})


def test_a_name_wins_over_an_id_and_an_id_over_a_file(space, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("12", "2", "13"):
        (tmp_path / name).write_text("food > fish\n")
    assert names(space, include=["12"]) == ["12"], "a name, though no id and a file"
    by_id = select_labels(space, include=["2"])
    assert np.flatnonzero(by_id.allowed).tolist() == [2]
    assert by_id.notes == ["include '2' is no name, and was read as the id of 'food > fish'"]
    assert not by_id.reads_files
    assert with_files(["12", "2", "13", "14"], space) == ["12", "2", Path("13"), "14"]
    by_file = select_labels(space, include=[Path("13")])
    assert np.flatnonzero(by_file.allowed).tolist() == [2]
    assert by_file.notes == ["include '13' was read as a file of 1 labels"]
    assert by_file.reads_files


def test_text_is_never_read_as_a_file(space, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("a password\n")
    with pytest.raises(ParameterError, match="is none of 9 labels") as error:
        select_labels(space, include=[str(secret)])
    assert "password" not in str(error.value)


def test_a_file_has_names_and_ids(space, tmp_path):
    file = tmp_path / "labels.txt"
    file.write_bytes("\ufefffood > fish\r\n\n 3 \nbread".encode())
    assert names(space, include=[file]) == ["food > fish", "drink > tea", "bread"]
    file.write_text("food > fish\nfod\n")
    with pytest.raises(
        ParameterError, match=r"labels.txt:2: include must be the name or the id .* 'fod' is none of 9 "
    ):
        select_labels(space, include=[file])
    file.write_bytes(b"br\xe9ad\n")
    with pytest.raises(DataError, match="labels.txt:1: expected UTF-8 text"):
        select_labels(space, exclude=[file])


def test_a_long_file_is_refused(space, tmp_path, monkeypatch):
    monkeypatch.setenv("LABELSPACE_MAX_SELECTION_CHARACTERS", "20")
    file = tmp_path / "labels.txt"
    file.write_text("bread\n" * 4)
    with pytest.raises(DataError, match="at most 20 characters, but .* set LABELSPACE_MAX_SELECTION_CHARACTERS to al"):
        select_labels(space, include=[file])


def test_a_branch_is_named_by_the_end_of_its_path(space):
    assert branch_label(space, "food > bread") == space.index["food > bread"]
    assert branch_label(space, "bread") == space.index["bread"], "a label of this very name"
    assert branch_label(space, "bread > rye") == space.index["food > bread > rye"]
    assert branch_label(space, "fish") == space.index["food > fish"]
    twice = LabelSpace(["a > x > other", "a > y > other"]).with_paths()
    with pytest.raises(ParameterError, match="'other' is the end of 2: 'a > x > other', 'a > y > other'; write more"):
        branch_label(twice, "other")
    assert branch_label(twice, "y > other") == 1


def test_names_that_are_no_paths_are_found_by_the_way_up():
    edges = Hierarchy.from_edges([[1, 0], [2, 1], [2, 3]], 5)
    space = LabelSpace(["food", "bread", "rye", "grain", "tea"], hierarchy=edges)
    assert branch_label(space, "food > bread > rye") == branch_label(space, "grain > rye") == 2
    with pytest.raises(ParameterError, match="under must be a label of the hierarchy, but 'tea > rye' is none of 5"):
        branch_label(space, "tea > rye")


def test_a_branch_equals_the_ancestors_table():
    rng = np.random.default_rng(1)
    edges = [[child, rng.integers(child)] for child in range(1, 60)] + [[50, 7], [41, 3]]
    hierarchy = Hierarchy.from_edges(edges, 60)
    for label in (0, 3, 7, 59):
        expected = hierarchy.ancestors[:, [label]].toarray().ravel() > 0
        expected[label] = True
        assert np.array_equal(branch(hierarchy, label), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"include": ["Food > Fish"]}, "include must be the name or the id .*; did you mean 'food > fish'"),
        ({"exclude": ["ry"]}, "exclude must be .* but 'ry' is none of 9 labels; did you mean 'food > bread > rye'"),
        ({"include": ["zzzzzz"]}, "'zzzzzz' is none of 9 labels; see labels.jsonl in the model's folder"),
        ({"include": ["99"]}, "'99' is none of 9 labels"),
        ({"include": [3]}, "labels must be chosen by text, but one is 3; write its name, or its id as text"),
        ({"under": ["fisch"]}, "under must be a label of the hierarchy, but 'fisch' .*; did you mean 'food > fish'"),
        (
            {"include": ["bread"], "exclude": ["bread"]},
            "at least one label must be allowed, but none is by: 'bread', w",
        ),
    ],
)
def test_what_is_wrong_is_one_line(space, options, message):
    with pytest.raises(ParameterError, match=message) as error:
        select_labels(space, **options)
    assert "\n" not in str(error.value)


def test_under_needs_a_hierarchy():
    with pytest.raises(
        ParameterError, match="under needs a hierarchy of the labels, but .*; use include, or put a hie"
    ):
        select_labels(LabelSpace(["a", "b"]), under=["a"])


def test_the_summary_says_what_is_allowed(space):
    many = select_labels(space, include=PATHS[1:6], exclude=["12"])
    assert many.summary == (
        "4 of 9 labels are allowed: 'food > bread > white', 'food > fish', 'drink > tea' and 2 more, without '12'"
    )
    assert select_labels(space, exclude=["12"]).summary == "8 of 9 labels are allowed: all, without '12'"
