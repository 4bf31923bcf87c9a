"""The parser against a plain Python twin, and against what ``float`` reads."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labelspace.data.formats import kernels
from labelspace.data.formats.kernels import ID_BYTES, VALUE_BYTES, format_rows, parse_rows

N_FEATURES, N_LABELS = 50, 20
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


def parsed(text: bytes, n_rows: int | None = None):
    """Status, position and rows (labels, indices, values) of the kernel."""
    lines = text.count(b"\n")
    n_rows = lines if n_rows is None else n_rows
    x_ids, y_ids = np.empty(text.count(b":"), np.int32), np.empty(text.count(b",") + lines, np.int32)
    x_values = np.empty(len(x_ids), np.float32)
    counts = np.zeros((2, n_rows), np.int32)
    code, rows, pos, x, y = parse_rows(
        np.frombuffer(text, np.uint8), n_rows, N_FEATURES, N_LABELS, counts[0], x_ids, x_values, counts[1], y_ids
    )
    if code != kernels.PARSED:
        return code, rows, pos, []
    assert (x, y) == (counts[0].sum(), counts[1].sum())
    x_ends, y_ends = np.cumsum(counts[0])[:-1], np.cumsum(counts[1])[:-1]
    parts = np.split(y_ids[:y], y_ends), np.split(x_ids[:x], x_ends), np.split(x_values[:x], x_ends)
    return code, rows, pos, [tuple(part.tolist() for part in row) for row in zip(*parts, strict=True)][:rows]


def float32(text: str) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float32(float(text))


def twin(line: str):
    """Labels, indices and values of one line, or None where it is malformed."""
    line = line.removesuffix("\n").removesuffix("\r")
    listed, *pairs = re.split("[ \t]+", line)
    labels = listed.split(",") if listed else []
    if not all(re.fullmatch(r"[0-9]+", label) and int(label) < N_LABELS for label in labels):
        return None
    sums: dict[int, float] = {}
    for pair in filter(None, pairs):
        match = re.fullmatch(rf"([0-9]+):({NUMBER})", pair, re.ASCII)
        if not match or int(match[1]) >= N_FEATURES or not np.isfinite(float32(match[2])):
            return None
        sums[int(match[1])] = sums.get(int(match[1]), 0.0) + float(float32(match[2]))
    if not all(np.isfinite(float32(str(total))) for total in sums.values()):
        return None
    kept = {index: float(float32(str(total))) for index, total in sorted(sums.items()) if float32(str(total)) != 0}
    return sorted({int(label) for label in labels}), list(kept), list(kept.values())


numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**12), 10**12).map(str),
    st.from_regex(rf"\A{NUMBER.replace('[eE][+-]?', '[eE][+-]?[0-3]')}\Z", fullmatch=True).filter(
        lambda t: t.isascii()
    ),
    st.sampled_from(
        ["0", "-0.0", ".5", "5.", "1e-5", "1E+3", "+2", "3e38", "1e-46", "nan", "inf", "1e39", ".", "-", "1e"]
    ),
)
pairs = st.tuples(st.integers(0, N_FEATURES + 1), numbers).map(lambda pair: f"{pair[0]}:{pair[1]}")
rows = st.builds(
    lambda labels, gap, values, end: ",".join(map(str, labels)) + gap + gap.join(values) + end,
    st.lists(st.integers(0, N_LABELS), max_size=5),
    st.sampled_from([" ", "  ", "\t"]),
    st.lists(pairs, max_size=8),
    st.sampled_from(["\n", "\r\n", " \n"]),
)
noise = st.text("0123456789,,::.. \t\r-+eEx", max_size=15).map(lambda text: text + "\n")


@given(st.lists(st.one_of(rows, noise), max_size=6))
@example(["1,1,0 3:1 2:2 3:.5\r\n", "\n", " 1:1\n"])
def test_equals_the_plain_twin(lines):
    code, n_rows, pos, got = parsed("".join(lines).encode())
    expected = [twin(line) for line in lines]
    first_bad = expected.index(None) if None in expected else len(lines)
    assert n_rows == first_bad
    if None in expected:
        start = len("".join(lines[:first_bad]))
        assert code != kernels.PARSED
        assert start <= pos < start + len(lines[first_bad])
        return
    assert (code, pos) == (kernels.PARSED, len("".join(lines)))
    for got_row, expected_row in zip(got, expected, strict=True):
        assert got_row[0] == expected_row[0]
        assert got_row[1] == expected_row[1]
        # One float32 rounding for each of the eight values at most that may be summed.
        np.testing.assert_allclose(got_row[2], expected_row[2], rtol=8 * 2.0**-23, atol=8 * 2.0**-149)


@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20), st.integers(1, 25)
)
def test_values_are_within_one_ulp(values, digits):
    texts = [f"{value:.{digits}e}" for value in values]
    expected = np.array([float32(text) for text in texts])
    if not np.isfinite(expected).all():
        return
    got = [row[2] for row in parsed("".join(f" 1:{text}\n" for text in texts).encode())[3]]
    got = np.array([row[0] if row else 0.0 for row in got], np.float32)
    size = np.minimum(
        np.abs(expected), np.nextafter(np.finfo(np.float32).max, np.float32(0))
    )  # the largest has no next
    assert (np.abs(got.astype(float) - expected.astype(float)) <= np.spacing(size).astype(float)).all()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.123456", 0.123456),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("1e-5", 1e-5),
        ("1E+3", 1000.0),
        ("340282350000000000000000000000000000000", 3.4028235e38),
        ("0." + "0" * 400 + "1e401", 1.0),
        ("1" + "0" * 400 + "e-400", 1.0),
        ("0.1000000000000000055511151231257827", 0.1),
        ("1e-45", 1e-45),
    ],
)
def test_number_formats(text, value):
    assert parsed(f" 7:{text}\n".encode())[3] == [([], [7], [float(np.float32(value))])]


@pytest.mark.parametrize("text", ["1e-400", "0e999999999999", "-0", "0.0", "1e-60", "1e-99999999999999999999"])
def test_zeros_and_what_rounds_to_zero_are_dropped(text):
    assert parsed(f"2 3:{text}\n".encode())[3] == [([2], [], [])]


@pytest.mark.parametrize(
    ("line", "code", "pos"),
    [
        ("20 1:1", kernels.BAD_LABEL, 0),
        ("1,x 1:1", kernels.BAD_LABEL, 2),
        ("1, 1:1", kernels.BAD_LABEL, 2),
        ("-1 1:1", kernels.BAD_LABEL, 0),
        ("3:1 4:1", kernels.BAD_LABEL, 0),
        ("99999999999999999999999 1:1", kernels.BAD_LABEL, 0),
        ("1 1:1 50:1", kernels.BAD_INDEX, 6),
        ("1 -1:1", kernels.BAD_INDEX, 2),
        ("1 7", kernels.BAD_INDEX, 2),
        ("1 \r5:1", kernels.BAD_INDEX, 2),
        ("1 5:", kernels.BAD_VALUE, 2),
        ("1 5:nan", kernels.BAD_VALUE, 2),
        ("1 5:1e39", kernels.BAD_VALUE, 2),
        ("1 5:1e99999999999999999999", kernels.BAD_VALUE, 2),
        ("1 5:1e", kernels.BAD_VALUE, 2),
        ("1 5:1:2", kernels.BAD_VALUE, 2),
        ("1 5:3e38 5:3e38", kernels.BAD_SUM, 0),
    ],
)
def test_malformed_lines_are_pointed_at(line, code, pos):
    assert parsed(f" 1:1\n{line}\n".encode())[:3] == (code, 1, pos + 5)


def test_parsing_stops_after_n_rows():
    assert parsed(b"1 1:1\n2 2:1\nrubbish\n", n_rows=2)[:3] == (kernels.PARSED, 2, 12)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=30))
@example(
    [
        1e-45,
        3.4028234663852886e38,
        -1.0,
        9.999999046325684,
        99999.9921875,
        1e9,
        1e10,
        123456792.0,
        1.1754943508222875e-38,
    ]
)
def test_written_values_read_back_exactly(values):
    values = np.array(values, np.float32)
    n = len(values)
    out = np.empty(n * (ID_BYTES + VALUE_BYTES) + n, np.uint8)
    ids, ones, none = np.zeros(n, np.int64), np.ones(n, np.int64), np.zeros(n, np.int64)
    text = out[: format_rows(ones, ids, values, none, np.empty(0, np.int64), out)].tobytes()
    texts = [line.removeprefix(" 0:") for line in text.decode().split("\n")[:-1]]
    assert [float32(text or "0") for text in texts] == values.tolist()
    assert [(row[2] or [0.0])[0] for row in parsed(text)[3]] == values.tolist()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (0.123456, "0.123456"),
        (-2, "-2"),
        (1e8, "100000000"),
        (1e10, "1e10"),
        (1e-5, "0.00001"),
        (1e-7, "1e-7"),
    ],
)
def test_values_are_written_short(value, text):
    out = np.empty(64, np.uint8)
    ids = np.array([12], np.int64)
    filled = format_rows(
        np.array([1]), ids, np.array([value], np.float32), np.array([2]), np.array([0, 2147483646]), out
    )
    assert out[:filled].tobytes().decode() == f"0,2147483646 12:{text}\n"
