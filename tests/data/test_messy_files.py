"""CSV files as people have them, made by mutation: the right labels come out, or one clear line says what to do."""

import csv
import json
import os
import random
from dataclasses import replace

import pytest

from labelspace.data.read_options import ReadOptions
from labelspace.data.source import read_dataset
from labelspace.errors import DataError, ParameterError
from labelspace.types import Fields

WORDS = "apple bread crème dough egg fish grill ham ice jam kale lemon mint nut oil pea rice salt tea über".split()
PLAIN = [f"{a} {b}" for a in ("red", "Käse", "new", "old") for b in WORDS]
TRICKY = [*PLAIN[:30], "R&amp;D", "Bread, rye", "Bread, white", "C++", "a > b", "a > c", '12" pan', "it's"]
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1")
TEXTS, LABELS, IDS = ("text", "title", "Title", "body"), ("labels", "tags", "Tags", "keywords"), ("id", "sku", "doc_id")


def documents(rng, names):
    """Texts with one to four labels each."""
    n = rng.choice((60, 150, 400))
    frequent = rng.sample(names, k=rng.randint(8, len(names)))
    texts = [
        " ".join(rng.choices(WORDS, k=rng.randint(3, 9))) + rng.choice(("", ", please", "; or not", ' "x"'))
        for _ in range(n)
    ]
    return texts, [sorted(set(rng.choices(frequent, k=rng.randint(1, 4)))) for _ in range(n)]


def label_cell(rng, names, separator):
    if separator == "json":
        return json.dumps(names)
    if separator == "python":
        return repr(names)
    spaces = rng.choice(("", " "))
    return f"{spaces}{separator}{spaces}".join(names) + rng.choice(("", "", separator if separator != "|" else ""))


def write(rng, path, separator):
    """A messy file; returns the labels of each document."""
    names = PLAIN if separator == "," else [name for name in TRICKY if separator not in name]
    texts, labels = documents(rng, names)
    header = {"text": rng.choice(TEXTS), "labels": rng.choice(LABELS), "id": rng.choice(IDS)}
    columns = ["text", "labels", *rng.sample(["id", "price"], k=rng.randint(0, 2))]
    rng.shuffle(columns)
    writer_options = {
        "delimiter": rng.choice(",;\t|"),
        "quoting": rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)),
        "lineterminator": rng.choice(("\n", "\r\n")),
    }
    encoding = rng.choice(ENCODINGS)
    with path.open("w", newline="", encoding=encoding, errors="replace") as file:
        writer = csv.writer(file, **writer_options)
        writer.writerow([header.get(name, name) for name in columns])
        for number, (text, document) in enumerate(zip(texts, labels, strict=True)):
            cells = {"text": text, "labels": label_cell(rng, document, separator), "id": number, "price": 3.5}
            writer.writerow([cells[name] for name in columns])
        file.write(rng.choice(("", "", writer_options["lineterminator"])))
    return labels


def labels_of(dataset):
    return [[dataset.labels.names[i] for i in row.indices] for row in dataset.Y]


@pytest.mark.parametrize("separator", ["|", ";", ",", "json", "python"])
def test_forty_messy_files_of_each_separator(tmp_path, separator):
    refused = []
    for seed in range(40):
        rng = random.Random(f"{separator} {seed}")
        path = tmp_path / f"{seed}.csv"
        expected = write(rng, path, separator)
        try:
            found = labels_of(read_dataset(path))
        except DataError as error:
            refused.append(str(error))
            continue
        assert [sorted(row) for row in found] == expected, f"seed {seed}"
    assert len(refused) <= 2, refused
    assert not any("\n" in line for line in refused)


def test_what_is_detected_is_said(tmp_path):
    path, said = tmp_path / "shop.csv", []
    path.write_bytes(
        "sku;title;tags\nA1;Crème;red, new\nA2;Käse;red\nA3;Ham;new, old, red\nA4;Ham;old, new\n".encode("cp1252")
    )
    dataset = read_dataset(path, options=ReadOptions(label_separator=",", say=said.append))
    assert dataset.labels.names == ["new", "old", "red"]
    assert list(dataset.ids) == ["A1", "A2", "A3", "A4"]
    assert said == [
        f"{path}: encoding windows-1252, semicolon-separated, text: title, labels: tags (separated by ','), id: sku"
    ]


def test_commas_that_may_be_either_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text('text,tags\nx,"a, b"\ny,"c, d"\n')
    with pytest.raises(DataError, match="may separate two labels or belong to one; write label_separator=',' or"):
        read_dataset(tmp_path / "a.csv")
    one = read_dataset(tmp_path / "a.csv", options=ReadOptions(label_separator="none"))
    assert one.labels.names == ["a, b", "c, d"]


def test_commas_of_names_that_recur_belong_to_them(tmp_path):
    rows = "".join(f'text {i},"{name}"\n' for i, name in enumerate(["Bread, rye", "Fish, smoked", "Tea, black"] * 5))
    (tmp_path / "a.csv").write_text("text,label\n" + rows)
    assert read_dataset(tmp_path / "a.csv").labels.names == ["Bread, rye", "Fish, smoked", "Tea, black"]


def test_a_slip_does_not_decide_what_separates_labels(tmp_path):
    rng = random.Random(0)
    cells = [", ".join(sorted(set(rng.choices(PLAIN, k=3)))) for _ in range(200)]
    rows = "".join(f'text {i},"{cell}"\n' for i, cell in enumerate([*cells, "red apple; red ham"]))
    (tmp_path / "a.csv").write_text("text,tags\n" + rows)
    dataset = read_dataset(tmp_path / "a.csv")
    assert dataset.fields.label_separator == ","
    assert len(dataset.labels) <= len(PLAIN) + 1


def test_the_line_with_which_excel_names_the_delimiter(tmp_path):
    (tmp_path / "a.csv").write_text("sep=;\ntext;labels\nred, or not;a|b\ngreen;b\n")
    dataset = read_dataset(tmp_path / "a.csv")
    assert (list(dataset.texts), labels_of(dataset)) == (["red, or not", "green"], [["a", "b"], ["b"]])
    (tmp_path / "a.csv").write_text("sep=;\ntext;labels\nred;a;b\n")
    with pytest.raises(DataError, match=r"a\.csv:3: expected 2 cells"):
        read_dataset(tmp_path / "a.csv")


def test_known_labels_say_what_separates_them(tmp_path):
    (tmp_path / "a.csv").write_text('text,tags\nx,"a, b"\ny,"c, d"\n')
    (tmp_path / "a.labels.jsonl").write_text("".join(json.dumps({"label": name}) + "\n" for name in "abcd"))
    assert labels_of(read_dataset(tmp_path / "a.csv")) == [["a", "b"], ["c", "d"]]


def test_columns_of_zeros_and_ones_are_labels(tmp_path):
    (tmp_path / "a.csv").write_text("id,comment_text,toxic,rude\nA,one,1,0\nB,two,0,0\nC,three,1,1\n")
    dataset = read_dataset(tmp_path / "a.csv")
    assert list(dataset.texts) == ["one", "two", "three"]
    assert labels_of(dataset) == [["toxic"], [], ["rude", "toxic"]]


def test_several_label_columns_and_several_text_columns(tmp_path):
    (tmp_path / "a.csv").write_text("title,abstract,tag1,tag2\nA,one,x,y\nB,two,y,\n")
    dataset = read_dataset(tmp_path / "a.csv")
    assert list(dataset.texts) == ["A\none", "B\ntwo"]
    assert labels_of(dataset) == [["x", "y"], ["y"]]
    named = read_dataset(tmp_path / "a.csv", options=ReadOptions(text=("abstract",), labels=("tag1",)))
    assert (list(named.texts), labels_of(named)) == (["one", "two"], [["x"], ["y"]])
    with pytest.raises(DataError, match="must have the column 'abstrakt', but has: .*; did you mean 'abstract'"):
        read_dataset(tmp_path / "a.csv", options=ReadOptions(text=("abstrakt",)))


def write_tickets(path, header, subjects, teams):
    """Tickets with a subject of five words each, of which ``subjects`` differ, and one of the teams."""
    rng = random.Random(0)
    different = [" ".join(rng.choices(WORDS, k=5)) for _ in range(subjects)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for number in range(120):
            body = " ".join(rng.choices(WORDS, k=15))
            writer.writerow([f"T-{number}", different[number % subjects], body, rng.choice(teams)])


def test_a_subject_that_is_a_text_is_no_label(tmp_path):
    path, teams = tmp_path / "a.csv", ["billing", "network access", "hardware"]
    write_tickets(path, ["ticket", "subject", "body", "category"], 120, teams)
    assert read_dataset(path).fields == Fields(("subject", "body"), ("category",), None, None)
    write_tickets(path, ["ticket", "subject", "body", "category"], 30, teams)  # templates
    seen = r"subject \(30 values in 120 cells, 5.0 words each\), .*category \(3 values in 120 cells, .*\)"
    with pytest.raises(DataError, match=rf"labels must be clear, .*{seen}; name it: labels='category'"):
        read_dataset(path)
    write_tickets(path, ["ticket", "subject", "body", "team"], 120, teams)
    with pytest.raises(DataError, match="labels must be clear, .*; name it: labels='team'"):
        read_dataset(path)


def test_subjects_of_books_are_labels(tmp_path):
    names = [f"{a} {b} {c}" for a in WORDS for b in ("art", "law") for c in ("history", "today")]  # each in one book
    rows = "".join(f'title {i},"{names[2 * i]}; {names[2 * i + 1]}"\n' for i in range(30))
    (tmp_path / "a.csv").write_text("title,subject\n" + rows)
    assert read_dataset(tmp_path / "a.csv").fields == Fields(("title",), ("subject",), None, ";")


def test_no_column_is_taken_twice(tmp_path):
    path = tmp_path / "a.csv"
    write_tickets(path, ["ticket", "subject", "body", "category"], 30, ["billing", "hardware"])
    dataset = read_dataset(path, options=ReadOptions(text=("subject",)))
    assert (dataset.fields.text, dataset.fields.labels) == (("subject",), ("category",))
    with pytest.raises(ParameterError, match="a column must be named once, but 'subject' is named twice"):
        read_dataset(path, options=ReadOptions(text=("subject",), labels=("subject",)))
    unlabeled = read_dataset(path, options=ReadOptions(text=("subject", "category")))
    assert unlabeled.fields.labels == ()
    again = read_dataset(path, options=ReadOptions(fields=unlabeled.fields))
    assert again.fields.labels == ()
    swapped = read_dataset(path, options=ReadOptions(text=("category",), fields=dataset.fields))
    assert (swapped.fields.text, swapped.fields.labels) == (("category",), ("subject",))
    swapped = read_dataset(path, options=ReadOptions(labels=("subject",), fields=dataset.fields))
    assert (swapped.fields.text, swapped.fields.labels) == (("body",), ("subject",))


def test_a_separator_that_most_cells_do_not_hold_is_said(tmp_path):
    path, said = tmp_path / "a.csv", []
    path.write_text("text,labels\none,red; green\ntwo,green; blue\nthree,blue; dark\nfour,red\n")
    found = read_dataset(path, options=ReadOptions(label_separator="|", say=said.append))
    assert "red; green" in found.labels.names
    assert f"{path}: labels are separated by '|', but 3 of 4 cells hold ';'; the option label_separator" in said[0]
    right = read_dataset(path, options=ReadOptions(label_separator=";"))
    read_dataset(path, options=ReadOptions(fields=replace(right.fields, label_separator=","), say=said.append))
    assert "labels are separated by ',', but 3 of 4 cells hold ';'" in said[-1]
    said.clear()
    path.write_text('text,labels\none,"Bread, rye"\ntwo,"Tea, black"\nthree,"Tea, black"\nfour,red\n')
    read_dataset(path, options=ReadOptions(label_separator="none", say=said.append))
    assert said == []


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('{"name": "red", "id": 3}', ["red"]),
        ("{'label': 'red, dark'}", ["red, dark"]),
        ('{"label": "red"}, {"label": "blue"}', ["blue", "red"]),
        ("{red}", ["{red}"]),
        ('{"sports": 1, "news": 0}', r"a\.csv:2: expected subjects with a 'uri' or a 'label', but one is \{'sports'"),
        ('{"label": "red"', r"a\.csv:2: expected 'labels' that start like JSON to be JSON, but they are"),
    ],
)
def test_json_objects_in_a_cell(tmp_path, cell, expected):
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "labels"], ["x", cell]])
    if isinstance(expected, list):
        assert read_dataset(tmp_path / "a.csv").labels.names == expected
        return
    with pytest.raises(DataError, match=expected):
        read_dataset(tmp_path / "a.csv")


def test_labels_of_stack_exchange_and_of_annif(tmp_path):
    (tmp_path / "a.csv").write_text("Title,Tags\none,<red><blue-green>\ntwo,<red>\n")
    assert labels_of(read_dataset(tmp_path / "a.csv")) == [["blue-green", "red"], ["red"]]
    subjects = [{"uri": "http://example.org/1", "label": "cats"}, {"uri": "http://example.org/2", "label": "dogs"}]
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": "x", "subjects": subjects}) + "\n")
    space = read_dataset(tmp_path / "b.jsonl").labels
    assert space.names == ["cats", "dogs"]
    assert [concept.uri for concept in space.concepts] == ["http://example.org/1", "http://example.org/2"]


def test_a_test_file_is_read_as_the_training_file_was(tmp_path):
    from labelspace.data.source import open_source

    (tmp_path / "train.csv").write_text("title;tags\none;a, b\ntwo;b, c\nthree;a, c\nfour;a, b, c\n")
    (tmp_path / "test.csv").write_text("title;tags\nfive;a, c\n")
    source = open_source(tmp_path, options=ReadOptions(label_separator=","))
    train = source.train()
    assert labels_of(source.test(train.labels)) == [["a", "c"]]
    followed = read_dataset(tmp_path / "test.csv", train.labels, options=ReadOptions(fields=train.fields))
    assert labels_of(followed) == [["a", "c"]]


def test_spellings_are_merged_on_request(tmp_path):
    (tmp_path / "train.csv").write_text("text,labels\none,Bread|fish\ntwo,bread\nthree, bread\n")
    (tmp_path / "test.csv").write_text("text,labels\nfour,BREAD\n")
    said = []
    train = read_dataset(tmp_path / "train.csv", options=ReadOptions(normalize_labels=True, say=said.append))
    assert train.labels.names == ["bread", "fish"]
    assert "1 labels were merged" in said[-1]
    test = read_dataset(tmp_path / "test.csv", train.labels, options=ReadOptions(fields=train.fields))
    assert (test.labels.names, labels_of(test)) == (["bread", "fish"], [["bread"]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": "||"}, "delimiter must be one character"),
        ({"label_separator": ""}, "label_separator must not be empty"),
        ({"encoding": "utf-77"}, "encoding must be a text encoding"),
        ({"encoding": "base64"}, "encoding must be a text encoding"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(Exception, match=message):
        ReadOptions(**options)


def test_text_that_is_neither_unicode_nor_western_is_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes("text,labels\nв библиотеке есть книги,книги\n".encode("cp1251"))
    with pytest.raises(DataError, match="neither UTF-8, UTF-16 nor Western European; name it: encoding='windows-1251'"):
        read_dataset(tmp_path / "a.csv")
    named = read_dataset(tmp_path / "a.csv", options=ReadOptions(encoding="windows-1251"))
    assert named.labels.names == ["книги"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_a_column_of_vectors_in_place_of_texts(tmp_path, name):
    vectors = [[0.5, 0.0, 1.5], [0.0, 2.0, 0.25]]
    if name == "a.jsonl":
        rows = [{"title": "x", "emb": vector, "tags": ["a"]} for vector in vectors]
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif name == "a.csv":
        (tmp_path / name).write_text("title,emb,tags\n" + "".join(f'x,"{vector}",a\n' for vector in vectors))
    else:
        pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"title": ["x", "x"], "emb": vectors, "tags": [["a"], ["a"]]}), tmp_path / name)
    dataset = read_dataset(tmp_path / name, options=ReadOptions(embeddings="emb"))
    assert dataset.texts is None
    assert dataset.X.toarray().tolist() == vectors
    assert dataset.fields.features == "emb"
    again = read_dataset(tmp_path / name, options=ReadOptions(fields=dataset.fields))
    assert again.X.toarray().tolist() == vectors


def test_vectors_must_have_one_length(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"features": [1, 2], "labels": ["a"]}\n{"features": [1], "labels": ["a"]}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: expected vectors of one length, but this one has 1 .* first 2"):
        read_dataset(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04\x14\0\0\0\0\0[Content_Types].xml\0", "is an Excel workbook or another Office file; open it"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "is an Excel workbook"),
        (b"PK\x03\x04\x14\0\0\0\0\0train.csv\0", "is a zip archive; name it .zip, or unpack it"),
        (b"PAR1\x15\x04", "is a Parquet file; name it .parquet"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.txt", "a.xlsx"])
def test_another_kind_of_file_with_the_name_of_a_text_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_dataset(tmp_path / name)


def test_a_pipe_as_data_is_refused(tmp_path):
    from labelspace.data.source import open_source

    os.mkfifo(tmp_path / "a.csv")
    for read in (read_dataset, open_source):
        with pytest.raises(DataError, match="but .*a.csv is a pipe or a device; write it to a file first"):
            read(tmp_path / "a.csv")


def test_an_unclear_file_with_columns_of_one_name(tmp_path):
    (tmp_path / "a.csv").write_text("tags,topic,body,,\nx,y,z,,\n")
    with pytest.raises(DataError, match=r"labels must be clear, but .* has: tags .*, topic .*, body .*; name it"):
        read_dataset(tmp_path / "a.csv")
