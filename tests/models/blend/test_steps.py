from types import SimpleNamespace

import pytest

from labelspace.models.blend.members import parse_members
from labelspace.models.blend.steps import Step, Steps
from labelspace.models.blend.training import plan

SECONDS = {"neighbors": 1.0, "label_tree": 10.0, "glas": 4.0, "boosted trees": 3.0}


class Shown:
    """An ``OverallProgress`` that remembers what it was told."""

    def __init__(self):
        self.calls = []

    def __call__(self, step, done, total):
        raise AssertionError("only the whole is told")

    def overall(self, phase, step, share, seconds_left):
        self.calls.append(SimpleNamespace(phase=phase, step=step, share=share, left=seconds_left))


@pytest.fixture
def clock():
    return SimpleNamespace(now=0.0)


def made(fold_sizes, n, progress, clock, members="neighbors,label_tree,glas"):
    return Steps(plan(parse_members(members), fold_sizes, n), progress, lambda: clock.now)


def run(steps, clock, n, parts=4):
    """Run so many steps; each takes its seconds per 100 documents."""
    for _ in range(n):
        step = steps.steps[steps.at]
        with steps.running() as report:
            for part in range(1, parts + 1):
                clock.now += SECONDS[step.name] * step.n_documents / 100 / parts
                report("batches", part, parts)


def test_a_plan_has_each_member_in_each_fold_and_on_all_documents():
    steps = plan(parse_members("glas,label_tree,label_tree:chars"), [80, 90], 100)
    assert [str(step) for step in steps] == [
        "fold 1 of 2: glas", "fold 1 of 2: label_tree:words", "fold 1 of 2: label_tree:chars",
        "fold 2 of 2: glas", "fold 2 of 2: label_tree:words", "fold 2 of 2: label_tree:chars",
        "all documents: glas", "all documents: label_tree:words", "all documents: label_tree:chars",
        "stacking: boosted trees",
    ]  # fmt: skip
    assert [step.n_documents for step in steps] == [80] * 3 + [90] * 3 + [100] * 4


def test_the_first_fold_tells_the_time_of_the_others_and_of_all_documents(clock):
    shown = Shown()
    steps = made([100, 100], 200, shown, clock)
    run(steps, clock, 3)
    with steps.running():
        pass  # the step begins
    begun = shown.calls[-1]
    assert begun.step == "fold 2 of 2: neighbors"
    boosting = 2 * 4.0 * 15 / 9  # guessed: as usual, beside members of a usual cost of 1 + 4 + 4
    assert begun.left == pytest.approx(15 + 30 + boosting)
    assert begun.share == pytest.approx(15 / (15 + 15 + 30 + boosting))


def test_the_share_rises_to_one_and_the_time_left_falls_to_none(clock):
    shown = Shown()
    steps = made([100, 100], 200, shown, clock)
    run(steps, clock, len(steps.steps))
    shares = [call.share for call in shown.calls]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1], shown.calls[-1].left) == (0.0, 1.0, 0.0)
    assert shown.calls[0].left is None, "nothing is known yet"
    known = [call.left for call in shown.calls if call.phase == "all documents"]
    assert known == sorted(known, reverse=True)


def test_a_member_that_runs_for_the_first_time_is_projected(clock):
    shown = Shown()
    steps = Steps([Step("fold", "label_tree", 100), Step("all", "label_tree", 100)], shown, lambda: clock.now)
    with steps.running() as report:
        clock.now = 2.0
        report("nodes", 1, 5)
        report("building the index", 9, 10)  # another step of the member says nothing of the whole
        assert shown.calls[-1].left == pytest.approx(8 + 10)
        assert shown.calls[-1].share == pytest.approx(0.1)


def test_a_step_that_takes_longer_than_thought_does_not_throw_the_bar_back(clock):
    shown = Shown()
    steps = made([100, 100], 100, shown, clock)
    run(steps, clock, 4)
    with steps.running() as report:
        for _ in range(50):
            clock.now += 10
            report("nodes", 1, 10)
    shares = [call.share for call in shown.calls]
    assert shares == sorted(shares)
    assert shares[-1] < 1


def test_steps_done_before_count_as_done_and_tell_their_time(clock):
    shown = Shown()
    steps = made([100, 100], 100, shown, clock)
    for seconds in (1.0, 10.0, 4.0):
        steps.skip(seconds)
    with steps.running():
        pass
    boosting = 4.0 * 15 / 9
    assert shown.calls[-1].left == pytest.approx(30 + boosting)
    assert shown.calls[-1].share == pytest.approx(15 / (45 + boosting))


def test_a_plain_progress_counts_thousandths_of_the_whole(clock):
    calls = []
    steps = made([100], 100, lambda *call: calls.append(call), clock, "neighbors")
    run(steps, clock, 3)
    assert calls[0] == ("fold 1 of 1: neighbors", 0, 1000)
    assert calls[-1] == ("stacking: boosted trees", 1000, 1000)
    assert {total for _, _, total in calls} == {1000}


def test_steps_without_documents_or_seconds_end_too(clock):
    shown = Shown()
    steps = Steps([Step("all documents", "neighbors", 0), Step("stacking", "boosted trees", 0)], shown, lambda: 0.0)
    for _ in range(2):
        with steps.running() as report:
            report("a", 0, 0)
            report("a", 1, 1)
    assert shown.calls[-1].share == 1.0
