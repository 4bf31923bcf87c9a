import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from labelspace.errors import DataError
from labelspace.labels.edits import retired
from labelspace.report.map import SCRIPTS, map_data, map_page, map_summary, norm_against_frequency, norm_table, on_disk
from labelspace.types import Hierarchy, LabelSpace

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "\"quotes\" \\ and 'others'",
    "<b>bold</b> & co",
    "مرض السكري",
    "\u202eoverride",
    "line\nbreak\u2028",
    "$data ${script} $$",
    "日本語 🙂",
]


class Scripts(HTMLParser):
    """The text of every script element, and the tags in order."""

    def __init__(self):
        super().__init__()
        self.tags, self.scripts = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.tags and self.tags[-1] == "script":
            self.scripts[-1] += data


def parsed(page):
    """The tags of a page and the data in it."""
    reader = Scripts()
    reader.feed(page)
    assert len(reader.scripts) == 2
    return reader.tags, json.loads(reader.scripts[0])


def points_of(data):
    """The embedded polar coordinates as points."""
    norms, angles = np.tanh(np.array(data["distance"]) / 2), np.array(data["angle"])
    return np.stack([norms * np.cos(angles), norms * np.sin(angles)], axis=1)


def ball(n, dimension, largest=0.99, seed=0):
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(n, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return (directions * rng.uniform(0, largest, (n, 1))).astype(np.float32)


def distances(points):
    """All hyperbolic distances by the formula."""
    table = np.asarray(points, np.float64)
    gaps = 1 - (table**2).sum(axis=1)
    squares = ((table[:, None] - table[None]) ** 2).sum(axis=2)
    return np.arccosh(1 + 2 * squares / np.outer(gaps, gaps))


def test_names_points_and_counts_come_back_from_the_page():
    points = ball(50, 2)
    labels = LabelSpace([f"label {i}" for i in range(50)], counts=np.arange(50), n_documents=1234)
    page = map_page(points, labels, "fifty")
    _, data = parsed(page)
    assert data["names"] == labels.names
    assert data["counts"] == list(range(50))
    np.testing.assert_allclose(points_of(data), points, atol=1e-5)
    assert "50 labels of 1,234 training documents." in page


def test_norms_at_the_rim_are_not_rounded_to_it():
    norms = np.array([1 - 1e-3, 1 - 1e-5, 1 - 2**-24])
    data = map_data(np.stack([norms, 0 * norms], axis=1), LabelSpace.numbered(3))
    back = np.tanh(np.array(data["distance"]) / 2)
    np.testing.assert_allclose(1 - back, 1 - norms, rtol=1e-4)


def test_hostile_names_stay_names():
    labels = LabelSpace(HOSTILE, counts=np.arange(len(HOSTILE)))
    page = map_page(ball(len(HOSTILE), 2), labels, "<i>title</i> & $data")
    plain = map_page(ball(len(HOSTILE), 2), LabelSpace.numbered(len(HOSTILE)), "title")
    tags, data = parsed(page)
    assert data["names"] == HOSTILE
    assert tags == parsed(plain)[0]
    assert "<title>&lt;i&gt;title&lt;/i&gt; &amp; $data</title>" in page


def test_the_page_needs_nothing_from_elsewhere():
    page = map_page(ball(3, 2), LabelSpace.numbered(3), "t")
    assert not re.search(r"https?:|src=|@import|url\(|fetch\(|innerHTML", page)
    assert "default-src 'none'" in page


def test_every_script_of_the_folder_is_in_the_page():
    scripts = [file for file in files("labelspace.report").joinpath("disk").iterdir() if file.name.endswith(".js")]
    assert {file.name for file in scripts} == {f"{name}.js" for name in SCRIPTS}
    page = map_page(ball(3, 2), LabelSpace.numbered(3), "t")
    assert all(file.read_text(encoding="utf-8") in page for file in scripts)


def test_labels_without_a_point_are_left_out_and_counted():
    points = ball(5, 3)
    points[[1, 3]] = np.nan
    tree = Hierarchy.from_edges([[1, 0], [2, 0], [3, 2], [4, 2]], 5)
    labels = LabelSpace(list("abcde"), counts=np.array([9, 0, 5, 0, 1]), n_documents=10, hierarchy=tree)
    page = map_page(points, labels, "t")
    _, data = parsed(page)
    assert data["names"] == ["a", "c", "e"]
    assert data["counts"] == [9, 5, 1]
    assert list(zip(data["children"], data["parents"], strict=True)) == [(1, 0), (2, 1)]
    assert "2 without training documents are not shown." in page
    assert "3 labels of 10" in page
    assert map_summary(points, labels)["n_left_out"] == 2


def test_every_edge_of_a_dag_is_there():
    edges = [[1, 0], [2, 0], [3, 1], [3, 2]]
    data = map_data(ball(4, 2), LabelSpace(list("abcd"), hierarchy=Hierarchy.from_edges(edges, 4)))
    assert [list(edge) for edge in zip(data["children"], data["parents"], strict=True)] == edges


@pytest.mark.parametrize("dimension", [1, 2, 3, 10])
def test_on_disk_keeps_every_norm(dimension):
    points = ball(300, dimension)
    points[7] = 0
    flat = on_disk(points)
    assert flat.shape == (300, 2)
    assert flat[7].tolist() == [0, 0]
    np.testing.assert_allclose(np.linalg.norm(flat, axis=1), np.linalg.norm(points.astype(float), axis=1), rtol=1e-12)
    np.testing.assert_array_equal(flat, on_disk(points))


def test_two_dimensions_stay_as_they_are_and_one_lies_on_a_line():
    points = ball(9, 2)
    np.testing.assert_array_equal(on_disk(points), points)
    assert on_disk([[0.5], [-0.25]]).tolist() == [[0.5, 0.0], [-0.25, 0.0]]


def test_a_disk_embedded_in_many_dimensions_is_recovered():
    flat = ball(80, 2, largest=0.9)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(6, 6)))[0]
    turned = np.concatenate([flat, np.zeros((80, 4))], axis=1) @ turn
    np.testing.assert_allclose(distances(on_disk(turned)), distances(flat), rtol=1e-5, atol=1e-5)


def test_the_first_axis_is_the_longest_and_points_to_its_largest_part():
    points = np.zeros((4, 3))
    points[0, 1], points[1, 1], points[2, 2], points[3, 2] = 0.8, -0.8, 0.3, -0.3
    np.testing.assert_allclose(on_disk(points), [[0.8, 0], [-0.8, 0], [0, 0.3], [0, -0.3]], atol=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 5])
@pytest.mark.parametrize("points", ["one", "equal", "center", "nowhere"])
def test_points_without_a_spread_make_a_page(points, dimension):
    n = 1 if points == "one" else 4
    table = np.full((n, dimension), {"center": 0.0, "nowhere": np.nan}.get(points, 0.3))
    labels = LabelSpace([f"l{i}" for i in range(n)], counts=np.full(n, 2))
    _, data = parsed(map_page(table, labels, "t"))
    drawn = 0 if points == "nowhere" else n
    assert len(data["names"]) == drawn
    norms = np.linalg.norm(table[:drawn], axis=1)
    np.testing.assert_allclose(np.linalg.norm(points_of(data), axis=1), norms, atol=1e-5)


def test_norm_against_frequency():
    points = np.array([[0.1, 0], [0, -0.5], [0.9, 0], [np.nan, 0]])
    labels = LabelSpace(list("abcd"), counts=np.array([100, 10, 1, 0]))
    assert norm_against_frequency(points, labels) == -1.0
    assert map_summary(points, labels) == {"n_labels": 3, "n_left_out": 1, "spearman": -1.0}
    assert "Spearman&#x27;s rank correlation −1.000" in map_page(points, labels, "t")


def test_without_counts_there_is_no_correlation():
    labels = LabelSpace.numbered(3)
    assert map_summary(ball(3, 2), labels)["spearman"] is None
    _, data = parsed(map_page(ball(3, 2), labels, "t"))
    assert data["counts"] is None


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros((2, 2)), r"as \(3, dimension\), but the shape is \(2, 2\)"),
        (np.zeros(3), r"shape is \(3,\)"),
        (np.zeros((3, 0)), r"shape is \(3, 0\)"),
        (np.array([[0, 0], [2.0, 0], [0, 0]]), "inside the unit ball, but one has norm 2"),
    ],
)
def test_invalid_points_are_rejected(points, message):
    with pytest.raises(DataError, match=message):
        map_page(points, LabelSpace.numbered(3), "t")


def test_a_retired_label_is_not_drawn():
    labels = retired(LabelSpace(["cat", "dog", "cow"]), 1)
    points = [[0.1, 0.2], [0.3, 0.1], [0.0, 0.5]]
    assert map_data(points, labels)["names"] == ["cat", "cow"]
    assert [row["label"] for row in norm_table(points, labels)] == ["cat", "cow"]
