import numpy as np
import pytest

from labelspace.errors import ParameterError
from labelspace.labels.codes import Codes, code_summary
from labelspace.report.codes import codes_json, codes_text, codes_tsv, heading, parse_prefix, select_trees
from labelspace.types import LabelSpace

CODES = Codes(np.array([[1, 0, 2], [0, 12, 0], [1, 0, 2], [1, 0, 3], [1, 2, 2]], np.int32), code_size=13)
NAMES = LabelSpace(["bread", "fish", "dough", "salt\tand\npepper", "oil"])


def test_leading_digits_of_the_line_above_are_left_blank():
    assert codes_text(CODES, NAMES).splitlines() == [
        " 0 12  0  fish",
        " 1  0  2  bread, dough",
        "       3  salt\\tand\\npepper",
        "    2  2  oil",
    ]


def test_a_prefix_and_a_limit_are_obeyed():
    assert codes_text(CODES, NAMES, [1, 0]).splitlines() == [" 1  0  2  bread, dough", "       3  salt\\tand\\npepper"]
    assert codes_text(CODES, NAMES, [0, 12, 0]) == " 0 12  0  fish"
    assert codes_text(CODES, NAMES, [0, 1]) == "no code starts with 0,1"
    assert codes_text(CODES, NAMES, limit=1).splitlines() == [
        " 0 12  0  fish",
        "… 3 more codes (4 labels); --limit 0 shows all",
    ]
    assert codes_text(CODES, NAMES, [1], limit=2).splitlines()[2:] == ["… 1 more code (1 label); --limit 0 shows all"]
    assert codes_text(CODES, NAMES, limit=4) == codes_text(CODES, NAMES)


def test_long_names_and_crowded_codes_are_cut():
    crowd = Codes(np.zeros((12, 1), np.int32), code_size=2)
    names = LabelSpace(["x" * 200, *map(str, range(11))])
    (line,) = codes_text(crowd, names).splitlines()
    assert line == f"0  {'x' * 79}…, 0, 1, 2, 3, … 7 more"


def test_tsv_has_one_line_per_label():
    other = Codes(np.array([[1], [0], [0], [0], [1]], np.int32), code_size=2)
    lines = list(codes_tsv({0: CODES, 2: other}, NAMES))
    assert lines[0] == "tree\tcode\tlabel\n"
    assert lines[1:4] == ["1\t0,12,0\tfish\n", "1\t1,0,2\tbread\n", "1\t1,0,2\tdough\n"]
    assert lines[6:8] == ["3\t0\tfish\n", "3\t0\tdough\n"]
    assert len(lines) == 11
    assert all(line.count("\t") == 2 and line.count("\n") == 1 for line in lines)
    assert len(list(codes_tsv({0: CODES}, NAMES, [1, 0]))) == 4


def test_plain_values_keep_names_as_they_are():
    assert codes_json(CODES, NAMES, [1, 0]) == [
        {"code": [1, 0, 2], "labels": ["bread", "dough"]},
        {"code": [1, 0, 3], "labels": ["salt\tand\npepper"]},
    ]


def test_the_heading_says_whether_labels_share_codes():
    text = heading({"tree": 2, **code_summary(CODES)}, n_trees=3)
    assert text.startswith("tree 2 of 3: 5 labels, codes of 3 digits from 0 to 12; similar labels share")
    assert "\n4 codes used, 0.182% of all possible; 2 labels share a code with others, at most 2 per code\n" in text
    alone = heading({"tree": 1, **code_summary(Codes(np.array([[1]], np.int32), code_size=2))}, n_trees=1)
    assert alone.splitlines() == [
        "1 label, codes of 1 digit from 0 to 1",
        "1 code used, 50% of all possible; no two labels share a code",
        "values used per digit, of 2: 1 (evenness, at most 1: 0.00); 2 network outputs for 1 label",
    ]


def test_constant_digits_are_summarized():
    codes = Codes(np.array([[0, 1, 0, 0], [1, 0, 0, 0]], np.int32), code_size=2)
    text = heading({"tree": 1, **code_summary(codes)}, n_trees=1).splitlines()[2]
    assert "per digit, of 2: 2, 2 (evenness, at most 1: 1.00, 1.00), the last 2 digits constant; 8 " in text


def test_an_occupancy_of_all_codes_is_100_percent():
    full = Codes(np.array([[0], [1]], np.int32), code_size=2)
    assert " 100% of all possible;" in heading({"tree": 1, **code_summary(full)}, n_trees=1)


def test_a_prefix_is_read():
    assert parse_prefix("", CODES) == parse_prefix(" ", CODES) == []
    assert parse_prefix("1, 12", CODES) == [1, 12]


@pytest.mark.parametrize("text", ["13", "-1", "a", "1,,2", "1,2,3,4", "1.5", "²"])
def test_an_impossible_prefix_is_rejected(text):
    with pytest.raises(ParameterError, match="at most 3 numbers from 0 to 12 with commas between, but is"):
        parse_prefix(text, CODES)


def test_a_tree_is_select_trees_by_its_number():
    assert select_trees(None, 2) == [0, 1]
    assert select_trees(2, 2) == [1]
    for number in (0, 3):
        with pytest.raises(ParameterError, match=f"--tree must be from 1 to 2, but is {number}"):
            select_trees(number, 2)
