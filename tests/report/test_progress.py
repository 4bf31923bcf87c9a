import io
import re
import sys
from contextlib import suppress
from types import SimpleNamespace

import pytest

from labelspace.report import progress
from labelspace.report.progress import StepProgress, StepState


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


@pytest.fixture
def lines(capsys):
    """What was written to a stderr that is no terminal."""
    return lambda: capsys.readouterr().err.splitlines()


def play(clock, *calls):
    with StepProgress() as report:
        for seconds, step, done, total in calls:
            clock.now = 1000.0 + seconds
            report(step, done, total)


def test_a_line_has_the_rate_since_the_step_started(clock, lines):
    play(clock, (0, "tokens", 0, 4_000_000), (5, "tokens", 1, 4_000_000), (20, "tokens", 1_020_000, 4_000_000))
    assert lines() == ["tokens: 0 of 4,000,000", "tokens: 1,020,000 of 4,000,000 (51,000 per second)"]


def test_what_was_done_before_the_first_call_does_not_count(clock, lines):
    play(clock, (0, "tokens", 900, 1000), (10, "tokens", 950, 1000), (20, "tokens", 1000, 1000))
    assert lines() == [
        "tokens: 900 of 1,000",
        "tokens: 950 of 1,000 (5 per second)",
        "tokens: 1,000 of 1,000 (5 per second)",
    ]


def test_an_unknown_rate_is_left_out(clock, lines):
    play(clock, (0, "a", 5, 5), (1, "b", 0, 1), (9, "b", 1, 1), (9, "c", 0, 8), (9, "c", 8, 8), (10, "d", 0, 0))
    play(clock, (0, "e", 0, 8), (20, "e", 0, 8))
    expected = ["a: 5 of 5", "b: 0 of 1", "b: 1 of 1", "c: 0 of 8", "c: 8 of 8", "d: 0 of 0", "e: 0 of 8", "e: 0 of 8"]
    assert lines() == expected


def test_a_step_that_goes_back_or_has_another_total_restarts(clock, lines):
    play(
        clock,
        (0, "epochs", 0, 10), (5, "epochs", 10, 10),
        (100, "epochs", 0, 10), (101, "epochs", 10, 10),
        (200, "epochs", 20, 60), (220, "epochs", 60, 60),
    )  # fmt: skip
    assert [line for line in lines() if "second" in line] == [
        "epochs: 10 of 10 (2 per second)",
        "epochs: 10 of 10 (10 per second)",
        "epochs: 60 of 60 (2 per second)",
    ]


@pytest.mark.parametrize(
    ("done", "seconds", "expected"),
    [
        (1, 300, "0.0033"),
        (5, 4, "1.2"),
        (100, 10, "10"),
        (995, 10, "100"),
        (123_456, 1, "120,000"),
        (10**9, 1e-6, None),
    ],
)
def test_a_rate_has_two_significant_digits(done, seconds, expected):
    rate = StepState(0.0, 0, done, 10**10).rate(seconds)
    assert rate.endswith(" per second")
    assert "e+" not in rate
    assert expected is None or rate == f"{expected} per second"


def test_quiet_is_quiet(clock, lines):
    with StepProgress(quiet=True) as report:
        report("tokens", 1, 1)
    assert lines() == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


def as_terminal(monkeypatch):
    """Make stderr a terminal; pytest sets its own after the fixtures."""
    file = Terminal()
    monkeypatch.setattr(sys, "stderr", file)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return file


def test_a_bar_shows_the_rate_within_80_columns(clock, monkeypatch):
    terminal = as_terminal(monkeypatch)
    with StepProgress() as report:
        for done in (0, 4_000_000, 0, 2_000_000):  # the step jumps back
            report("tokens", done, 4_000_000)
            clock.now += 40
        (task,) = report._bars.tasks
        assert (task.completed, task.finished) == (2_000_000, False)
        report._bars.refresh()
    assert "2000000/4000000" in terminal.getvalue()
    assert "50,000 per second" in terminal.getvalue()


def test_an_interrupted_bar_gives_the_cursor_back(clock, monkeypatch):
    terminal = as_terminal(monkeypatch)
    with suppress(KeyboardInterrupt), StepProgress() as report:
        report("tokens", 1, 10)
        raise KeyboardInterrupt
    shown = terminal.getvalue()
    assert "\x1b[?25l" in shown, "a bar hides it"
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def test_the_name_of_a_step_is_plain_text(clock, monkeypatch):
    terminal = as_terminal(monkeypatch)
    with StepProgress() as report:
        report("\x1b[2J[red]no\n", 1, 10)
        report._bars.refresh()
    assert "\\x1b[2J[red]no\\n" in terminal.getvalue()
    assert "\x1b[2J" not in terminal.getvalue()


def play_overall(clock, *calls):
    with StepProgress() as report:
        for seconds, step, share, left in calls:
            clock.now = 1000.0 + seconds
            report.overall(step.partition(":")[0], step, share, left)


def test_a_whole_has_a_line_for_each_phase(clock, lines):
    play_overall(
        clock,
        (0, "fold 1 of 2: glas", 0.0, None),
        (1, "fold 1 of 2: label_tree", 0.2, 8),
        (4, "fold 2 of 2: glas", 0.4, 6.5),
        (7, "all documents: glas", 0.8, 90),
        (9, "stacking: boosted trees", 0.85, 2),
        (9, "stacking: boosted trees", 1.0, 0),
    )
    assert lines() == [
        "fold 1 of 2: glas (0% done)",
        "fold 2 of 2: glas (40% done, 7 s left)",
        "all documents: glas (80% done, 2 min left)",
    ]


def test_a_whole_of_many_or_long_steps_has_a_few_lines(clock, lines):
    for steps in (1000, 1):
        play_overall(clock, *((at, f"fold {at * steps // 1000}: glas", at / 1000, 9) for at in range(1001)))
        assert len(lines()) == 10


def test_another_whole_begins_anew(clock, lines):
    play_overall(clock, (0, "all: a", 0.0, None), (1, "all: b", 1.0, 0), (2, "all: a", 0.0, None))
    assert lines() == ["all: a (0% done)"] * 2


def test_a_quiet_whole_is_quiet(clock, lines):
    with StepProgress(quiet=True) as report:
        report.overall("all", "all: a", 0.5, 3.0)
    assert lines() == []


def test_a_whole_is_one_bar_within_80_columns(clock, monkeypatch):
    terminal = as_terminal(monkeypatch)
    with StepProgress() as report:
        report("features", 1, 1)
        for share, step, left in ((0, "fold 1 of 5: \x1b[2Jglas", None), (0.42, "all documents: hierarchicalxc", 4000)):
            report.overall("fold", step, share, left)
            report._bars.refresh()
        (shown,) = [task for task in report._bars.tasks if task.visible]
        assert (shown.completed, shown.description) == (0.42, "all documents: hierarchicalxc")
        report.overall("fold", "glas", 0.1, None)
        assert report._bars.tasks[-1].completed == 0.1, "another training"
        assert report._bars.tasks[-1].description == f"{'glas':29}", "the bar does not move"
    assert " 42%" in terminal.getvalue()
    assert "\\x1b[2Jglas" in terminal.getvalue()
    assert max(len(line) for line in plain(terminal.getvalue()).splitlines()) <= 80


def plain(shown):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r", "\n")


def test_the_time_left_goes_on_between_two_reports(clock, monkeypatch):
    terminal = as_terminal(monkeypatch)
    with StepProgress() as report:
        report.overall("fold", "fold 1 of 5: glas", 0.5, 50)
        clock.now += 20
        report._bars.refresh()
    assert "30 s left" in terminal.getvalue()
