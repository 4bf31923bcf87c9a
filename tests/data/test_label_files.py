"""labels.jsonl and hierarchy.tsv, and how the label space of a data file is settled."""

import json

import pytest

from labelspace.data.label_files import (
    label_files,
    read_hierarchy,
    read_labels,
    unread_fields,
    unread_label_files,
    write_hierarchy,
    write_labels,
)
from labelspace.data.source import open_source, read_dataset
from labelspace.errors import DataError
from labelspace.types import Concept, Hierarchy, LabelSpace


def data_file(tmp_path, *labels):
    path = tmp_path / "a.jsonl"
    rows = [f'{{"text": "document {i}", "labels": {row}}}\n' for i, row in enumerate(labels)]
    path.write_text("".join(rows), encoding="utf-8")
    return path


def marked(dataset):
    return [{dataset.labels.names[label] for label in dataset.Y[row].indices} for row in range(len(dataset))]


def test_names_and_synonyms_round_trip(tmp_path):
    space = LabelSpace(['näme "quoted"', "tab\tand\nline", "日本"], [["a", "b"], [], ["にほん"]])
    write_labels(tmp_path / "labels.jsonl", space)
    back = read_labels(tmp_path / "labels.jsonl")
    assert (back.names, back.synonyms) == (space.names, space.synonyms)


def test_without_synonyms(tmp_path):
    (tmp_path / "labels.jsonl").write_text('{"label": "a"}\n{"label": "b", "alt": []}\n{"label": "c", "alt": null}\n')
    space = read_labels(tmp_path / "labels.jsonl")
    assert (space.names, space.synonyms) == (["a", "b", "c"], None)


def test_descriptions_also_as_definitions(tmp_path):
    path = tmp_path / "labels.jsonl"
    lines = ['{"label": "a", "description": "One\\n two."}', '{"label": "b", "definition": "Three."}', '{"label": "c"}']
    path.write_text("\n".join(lines))
    space = read_labels(path)
    write_labels(path, space)
    assert [text.description for text in read_labels(path).described()] == ["One two.", "Three.", None]
    path.write_text('{"label": "a", "gloss": "One."}\n')
    assert unread_fields(path) == ["gloss"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"name": "b"}', r"expected 'label' to be a name, but it is None; write \{\"label\": \"name\"\}"),
        ('{"label": ""}', r"expected 'label' to be a name, but it is ''"),
        ('{"label": "a"}', r"expected each label once, but 'a' is in line 1 too; rename or merge the two"),
        ('{"label": "b", "alt": "c"}', r"expected 'alt' to be a list of names, but it is 'c'; write"),
        ('{"label": "b", "alt": [1]}', r"expected 'alt' to be a list of names, but it is '\[1\]'"),
        ('{"label": "b", "description": 7}', r"expected 'description' to be a text, but the line is"),
        ('{"label": "b", "description": "\\u001b[2J"}', r"expected a description without control characters"),
        ('{"label": "b", "description": "' + "a" * 10_001 + '"}', r"expected a description of at most 10,000 char"),
        ('{"label": "b", "description": "c", "definition": "d"}', r"expected 'description' or 'definition', but there"),
        ("", r"expected a JSON object, but the line is blank; remove the line"),
        ("b", r"expected a JSON object, but the line is not JSON"),
    ],
)
def test_malformed_labels(tmp_path, line, message):
    (tmp_path / "labels.jsonl").write_text('{"label": "a"}\n' + line + "\n")
    with pytest.raises(DataError, match=r"labels\.jsonl:2: " + message):
        read_labels(tmp_path / "labels.jsonl")


def test_a_graph_with_two_parents_round_trips(tmp_path):
    path = tmp_path / "hierarchy.tsv"
    path.write_text("# pets\n\ncat\tpet\r\ncat\tfeline\npet\tanimal\nfeline\tanimal\ncat\tpet\n")
    space = read_hierarchy(path, LabelSpace(["animal", "cat"], [["beast"], []]))
    assert list(space.names) == ["animal", "cat", "pet", "feline"]
    assert list(space.synonyms) == [["beast"], [], [], []]
    assert space.hierarchy.edges.tolist() == [[1, 2], [1, 3], [2, 0], [3, 0]]
    assert space.hierarchy.levels.tolist() == [0, 2, 1, 1]
    write_hierarchy(path, space)
    assert read_hierarchy(path, space).hierarchy.edges.tolist() == space.hierarchy.edges.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a\tb\nb\tc\nc\ta\nd\ta\n",
            "(a -> b -> c -> a|b -> c -> a -> b|c -> a -> b -> c) is one; remove one of these edges",
        ),
        ("a\ta\n", "a hierarchy must have no cycle, but a -> a is one"),
        ("x\ty\nx\tb\nb\tx\n", "(x -> b -> x|b -> x -> b) is one"),
    ],
)
def test_a_cycle_is_named(tmp_path, text, message):
    (tmp_path / "hierarchy.tsv").write_text(text)
    with pytest.raises(
        DataError, match=r"hierarchy\.tsv: a hierarchy must have no cycle, but .*" + message.split("but ")[-1]
    ):
        read_hierarchy(tmp_path / "hierarchy.tsv", LabelSpace(["q"]))


@pytest.mark.parametrize("line", ["alone", "a\tb\tc", "\tb", "a\t", "a b"])
def test_malformed_edges(tmp_path, line):
    (tmp_path / "hierarchy.tsv").write_text("a\tb\n" + line + "\n")
    with pytest.raises(DataError, match=r"hierarchy\.tsv:2: expected child<TAB>parent, but found .*; write two names"):
        read_hierarchy(tmp_path / "hierarchy.tsv", LabelSpace(["a"]))


@pytest.mark.parametrize("names", [["#a", "b"], ["a\tb", "c"], ["a", "b\n"]])
def test_names_that_would_not_read_back_are_refused(tmp_path, names):
    space = LabelSpace(names, hierarchy=Hierarchy.from_edges([[0, 1]], 2))
    with pytest.raises(DataError, match=r"must not contain tabs or line ends, .* but there is the edge .*; rename"):
        write_hierarchy(tmp_path / "hierarchy.tsv", space)
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_write(tmp_path):
    with pytest.raises(DataError, match=r"a hierarchy is needed to write .*, but the label space has none; leave"):
        write_hierarchy(tmp_path / "hierarchy.tsv", LabelSpace(["a"]))


def test_names_alone_are_sorted(tmp_path):
    dataset = read_dataset(data_file(tmp_path, '["c", "a"]', "[]", '["b", "a", "a"]'))
    assert list(dataset.labels.names) == ["a", "b", "c"]
    assert dataset.Y.toarray().tolist() == [[1, 0, 1], [0, 0, 0], [1, 1, 0]]


def test_ids_alone_are_numbered(tmp_path):
    dataset = read_dataset(data_file(tmp_path, "[4]", "[0, 2]"))
    assert list(dataset.labels.names) == ["0", "1", "2", "3", "4"]
    assert marked(dataset) == [{"4"}, {"0", "2"}]


def test_labels_beside_come_first_and_new_names_after(tmp_path):
    (tmp_path / "a.labels.jsonl").write_text('{"label": "z", "alt": ["last"]}\n{"label": "a"}\n')
    dataset = read_dataset(data_file(tmp_path, '["m", "a"]', '[0, "z", "b"]'))
    assert list(dataset.labels.names) == ["z", "a", "b", "m"]
    assert list(dataset.labels.synonyms) == [["last"], [], [], []]
    assert marked(dataset) == [{"m", "a"}, {"z", "b"}]
    assert dataset.Y.data.tolist() == [1, 1, 1, 1]  # the id 0 and the name "z" are one label


def test_ids_go_through_the_names_of_their_own_file(tmp_path):
    (tmp_path / "a.labels.jsonl").write_text('{"label": "a"}\n{"label": "z"}\n{"label": "unused"}\n')
    dataset = read_dataset(data_file(tmp_path, "[0]", "[1]"), labels=LabelSpace(["z", "a"]))
    assert list(dataset.labels.names) == ["z", "a"]
    assert dataset.Y.toarray().tolist() == [[0, 1], [1, 0]]


def test_given_labels_keep_their_ids(tmp_path):
    given = LabelSpace(["z", "a"])
    dataset = read_dataset(data_file(tmp_path, '["new", "a"]'), labels=given)
    assert list(dataset.labels.names) == ["z", "a", "new"]
    assert dataset.Y.toarray().tolist() == [[0, 1, 1]]
    assert read_dataset(data_file(tmp_path, '["a"]'), labels=given).labels is given


def test_a_hierarchy_beside_is_read_unless_one_is_given(tmp_path):
    (tmp_path / "a.hierarchy.tsv").write_text("a\troot\n")
    path = data_file(tmp_path, '["a"]', '["b"]')
    dataset = read_dataset(path)
    assert list(dataset.labels.names) == ["a", "b", "root"]
    assert dataset.labels.hierarchy.edges.tolist() == [[0, 2]]
    assert dataset.Y.shape == (2, 3)
    (tmp_path / "a.hierarchy.tsv").write_text("rubbish")
    again = read_dataset(path, labels=dataset.labels)
    assert again.labels is dataset.labels


def test_names_that_are_paths_give_a_hierarchy_unless_a_file_does(tmp_path):
    path = data_file(tmp_path, '["a > b > c"]', '["a > d"]')
    dataset = read_dataset(path)
    assert list(dataset.labels.names) == ["a > b > c", "a > d", "a > b", "a"]
    assert dataset.labels.hierarchy.levels.tolist() == [2, 1, 1, 0]
    assert dataset.Y.toarray().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]
    other = tmp_path / "other"
    other.mkdir()
    unseen = read_dataset(data_file(other, '["a > b > new"]', '["a > d"]'), labels=dataset.labels)
    assert unseen.labels.hierarchy.edges.tolist() == [[0, 2], [1, 3], [2, 3], [4, 2]]  # below "a > b"
    (tmp_path / "a.hierarchy.tsv").write_text("a > d\troot\n")
    assert list(read_dataset(path).labels.names) == ["a > b > c", "a > d", "root"]


def test_feature_files_have_paths_too(tmp_path):
    (tmp_path / "a.labels.jsonl").write_text('{"label": "a > b"}\n{"label": "a > c"}\n')
    (tmp_path / "a.txt").write_text("2 3 2\n0 0:1\n1 2:1\n")
    dataset = read_dataset(tmp_path / "a.txt")
    assert dataset.labels.hierarchy.edges.tolist() == [[0, 2], [1, 2]]
    assert dataset.Y.shape == (2, 3)


@pytest.mark.parametrize(
    ("labels", "given", "message"),
    [
        (
            ['["a"]', "[2]"],
            LabelSpace(["a", "b"]),
            r"a\.jsonl:2: expected a label id below 2, .*, but one is 2; correct it, or add",
        ),
        (
            ["[1]", '["a"]'],
            None,
            r"a\.jsonl:2: expected all labels to be ids, .*, but one is the name 'a'; name them in .*a.labels.jsonl",
        ),
        (
            ["[1]", "[1000000000]"],
            None,
            r"a\.jsonl:2: expected at most 5000000 labels without names, but the ids need 1000000001",
        ),
    ],
)
def test_ids_that_lead_nowhere(tmp_path, labels, given, message):
    with pytest.raises(DataError, match=message):
        read_dataset(data_file(tmp_path, *labels), labels=given)


def test_a_file_reads_its_own_label_files_and_a_split_those_of_its_folder(tmp_path):
    (tmp_path / "labels.jsonl").write_text('{"label": "z"}\n{"label": "a"}\n')
    (tmp_path / "hierarchy.tsv").write_text("a\tz\n")
    path = data_file(tmp_path, '["a"]')
    assert list(read_dataset(path).labels.names) == ["a"]
    assert (label_files(path), [file.name for file in unread_label_files(path)]) == (
        [],
        ["labels.jsonl", "hierarchy.tsv"],
    )
    for name in ("train.jsonl", "dev.jsonl", "test.jsonl"):
        path.rename(tmp_path / name)
        path = tmp_path / name
        dataset = read_dataset(path)
        assert list(dataset.labels.names) == ["z", "a"]
        assert dataset.labels.hierarchy.edges.tolist() == [[1, 0]]
        assert unread_label_files(path) == []
    (tmp_path / "test.labels.jsonl").write_text('{"label": "own"}\n')
    assert list(read_dataset(path).labels.names) == ["own", "a", "z"]
    assert [file.name for file in label_files(path)] == ["test.labels.jsonl", "hierarchy.tsv"]


def test_a_file_of_labels_is_one_by_its_name(tmp_path):
    (tmp_path / "a.labels.jsonl").write_text('{"label": "cat"}\n')
    (tmp_path / "a.hierarchy.tsv").write_text("cat\tpet\n")
    (tmp_path / "hierarchy.tsv").write_text("rubbish")
    source = open_source(tmp_path / "a.labels.jsonl")
    assert source.labels_only
    assert list(source.labels().names) == ["cat", "pet"]


VOCABULARY = LabelSpace(
    ["cats", "dogs"],
    [["felines", "catz"], []],
    concepts=[Concept("http://example.org/p1", "02.1", {"fi": "kissat"}, ("catz",)), Concept("http://example.org/p2")],
)


def test_what_a_vocabulary_says_of_labels_is_written_and_read(tmp_path):
    write_labels(tmp_path / "labels.jsonl", VOCABULARY)
    first = json.loads((tmp_path / "labels.jsonl").read_text().splitlines()[0])
    assert first == {
        "label": "cats", "alt": ["felines"], "id": "http://example.org/p1", "notation": "02.1",
        "names": {"fi": "kissat"}, "hidden": ["catz"],
    }  # fmt: skip
    read = read_labels(tmp_path / "labels.jsonl")
    assert read.concepts == VOCABULARY.concepts
    assert read.synonyms == VOCABULARY.synonyms
    assert read.extended(["cows"]).concepts[2] == Concept()


@pytest.mark.parametrize(
    "field", ['"id": 3', '"names": ["a"]', '"names": {"fi": 1}', '"hidden": "a"', '"notation": []']
)
def test_a_field_of_a_vocabulary_that_is_wrong_is_refused(tmp_path, field):
    (tmp_path / "labels.jsonl").write_text(f'{{"label": "cats", {field}}}\n')
    with pytest.raises(DataError, match="labels.jsonl:1: expected"):
        read_labels(tmp_path / "labels.jsonl")
