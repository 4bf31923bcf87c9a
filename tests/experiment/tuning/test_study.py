import json

import pytest

from labelspace import store
from labelspace.errors import DataError, ParameterError
from labelspace.experiment import Recipe
from labelspace.experiment.tuning.space import search_space
from labelspace.experiment.tuning.study import FIRST_CHANGES, FIRST_TRIALS, JOURNAL, Outcome, Study

pytest.importorskip("optuna", reason="needs optuna, which the extra tune installs")
SETTINGS = {"method": "label_tree", "documents": "ab", "searched": {"C": "1:2"}, "metric": "P@1"}
SPACE = search_space(Recipe("label_tree"))


def study(folder=None, space=SPACE, seed=0, parallel=1, **settings):
    return Study(space, {**SETTINGS, **settings}, seed, folder, parallel)


def value(drawn):
    """A figure that is best near C=0.5, and better with squared hinge loss."""
    return 50 - abs(drawn.get("C", 0.1) - 0.5) - 5 * (drawn.get("loss") == "logistic")


def run(trials, n, interrupt=None):
    """Run up to n trials; returns the values that were drawn in each."""
    with trials.opened():
        while len(trials.outcomes) < n:
            for drawn in trials.next(n):
                if len(trials.outcomes) == interrupt:
                    return None
                failed = len(trials.outcomes) == 4
                trials.finish(
                    Outcome(drawn, error="bad") if failed else Outcome(drawn, value(drawn), {"P@1": 1.0}, 0.5)
                )
        return [outcome.drawn for outcome in trials.outcomes]


def test_the_same_seed_draws_the_same_and_an_interrupted_study_too(tmp_path):
    whole = run(study(), 16)
    run(study(tmp_path / "a"), 16, interrupt=3)
    run(study(tmp_path / "a"), 16, interrupt=13)
    resumed = study(tmp_path / "a")
    assert run(resumed, 16) == whole
    assert [outcome.error for outcome in resumed.outcomes].count("bad") == 1
    assert run(study(seed=1), 16) != whole


def test_batches_do_not_depend_on_where_a_search_was_interrupted(tmp_path):
    whole = run(study(parallel=4), 22)
    for stop in (2, 6, 8, 15, 19):
        run(study(tmp_path / "a", parallel=4), 22, interrupt=stop)
    assert run(study(tmp_path / "a", parallel=4), 22) == whole
    run(study(tmp_path / "b", parallel=4), 17)
    assert run(study(tmp_path / "b", parallel=4), 22) == whole
    assert run(study(), 11) == whole[:11], "what is drawn at random depends on the number of the trial alone"
    assert run(study(), 22) != whole
    assert len(set(map(str, whole[12:16]))) == 4


def test_a_batch_has_new_values_once():
    trials = study(parallel=4)
    drawn = run(trials, 3)
    new = {**drawn[2], "C": 0.123}
    assert trials.untried([drawn[1], new, dict(new), drawn[0], {**new, "C": 0.2}]) == [new, {**new, "C": 0.2}]


def test_a_search_of_an_older_version_goes_on(tmp_path):
    run(study(tmp_path / "a"), 12)
    journal = tmp_path / "a" / JOURNAL
    text = journal.read_text()
    assert text.count(',"parallel":1') == 1
    unfinished = {"op_code": 4, "worker_id": "old", "study_id": 0, "datetime_start": "2026-01-01T00:00:00.000000"}
    journal.write_text(text.replace(',"parallel":1', "") + json.dumps(unfinished) + "\n")
    assert run(study(tmp_path / "a"), 14) == run(study(), 14)


def test_the_first_trial_is_the_default_and_the_next_ones_change_a_few_parameters():
    drawn = run(study(), FIRST_TRIALS + 6)
    assert SPACE.changed(drawn[0]) == {}
    always = {"C"}  # the default, none, is no value of the range
    for values in drawn[1:FIRST_TRIALS]:
        assert len(set(SPACE.changed(values)) - always) <= FIRST_CHANGES
    assert len(set(map(str, drawn))) > FIRST_TRIALS


def test_a_value_that_was_tried_is_found():
    trials = study()
    drawn = run(trials, 3)
    assert trials.repeated(drawn[2]) is trials.outcomes[2]
    assert trials.repeated({}) is trials.outcomes[0]
    assert trials.repeated({**drawn[2], "C": 0.123}) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"documents": "cd"}, "documents differs: that in .* is of other documents"),
        ({"metric": "P@5"}, "metric differs: that in .* is of P@1, and this one of P@5"),
        ({"searched": {"C": "1:3"}}, "searched differs: that in .* has C=1:2, and this one has C=1:3"),
        ({"searched": {}}, "searched differs: that in .* has C=1:2, and this one has no C"),
        ({"parallel": 8}, "parallel differs: that in .* is of 1, and this one of 8"),
    ],
)
def test_other_data_or_another_space_is_refused(tmp_path, changes, message):
    run(study(tmp_path / "a"), 2)
    with pytest.raises(ParameterError, match=message):
        run(study(tmp_path / "a", **changes), 3)


@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: ["not json", *lines],
        lambda lines: [lines[0][: len(lines[0]) // 2], *lines[1:]],
        lambda lines: [*lines, json.dumps({"op_code": 99, "worker_id": "a"})],
        lambda lines: [line.replace('"cpu_seconds":0.5', '"cpu_seconds":"x"') for line in lines],
        lambda lines: [line.replace('"P@1":1.0', '"P@1":1e999') for line in lines],
        lambda lines: [line.replace('"drawn":{', '"drawn":{"nonsense":1,') for line in lines],
        lambda lines: [line.replace('"error":null', '"error":"bad"') for line in lines],
        lambda lines: [line.replace('"directions":[2]', '"directions":[1]') for line in lines],
        lambda lines: [line.replace('"metric":', '"measure":') for line in lines],
    ],
)
def test_a_damaged_journal_is_refused(tmp_path, damage):
    run(study(tmp_path / "a"), 3)
    journal = tmp_path / "a" / JOURNAL
    lines = journal.read_text().splitlines()
    assert damage(lines) != lines
    journal.write_text("\n".join(damage(lines)) + "\n")
    with pytest.raises(DataError, match=f"{JOURNAL} must have the trials of a search, but is damaged"):
        run(study(tmp_path / "a"), 4)


def test_a_folder_with_other_files_or_another_search_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ParameterError, match="has other files"):
        run(study(tmp_path), 1)
    with pytest.raises(ParameterError, match="is a file"):
        run(study(tmp_path / "letter.txt"), 1)
    (tmp_path / "a").mkdir()
    with store.locked(tmp_path / "a" / ".tune.lock"), pytest.raises(ParameterError, match="but another one does"):
        run(study(tmp_path / "a"), 1)
