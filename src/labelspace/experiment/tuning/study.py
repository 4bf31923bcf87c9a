"""The trials of a search, kept by Optuna: in memory, or in a folder, from which an interrupted search resumes.

Values are drawn in batches: each trial is drawn from the results of the earlier batches. It depends only on the seed of
the search, on its number and on the size of a batch, and not on when the trials of its batch end, nor on where they
run. So a search that was interrupted, or got more trials later, gives the results of an uninterrupted search.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labelspace.errors import DataError, ParameterError, require
from labelspace.experiment.results import only_writer
from labelspace.experiment.tuning.space import SearchSpace

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

FIRST_TRIALS = 10  # drawn at random, the default included; the sampler then learns from them
FIRST_CHANGES = 4  # parameters that each of these changes at most: with many changes at once, nearly all would be bad


class Drawn(NamedTuple):
    """A trial to run: its values, and the values before rounding, which Optuna learns from."""

    values: dict[str, Any]
    params: Mapping[str, Any]
    distributions: Mapping[str, Any]


JOURNAL, NAME = "study.journal", "labelspace"
SETTINGS, OUTCOME = "settings", "outcome"  # user attributes of the study and of a trial
# Optuna raises any of these for a file that is no journal, or is damaged.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, RuntimeError)
PARALLEL = "parallel"  # a setting; searches of older versions do not have it, and their batches have one trial


@dataclass(frozen=True)
class Outcome:
    """The values of a trial, and its figures, or its error."""

    drawn: Mapping[str, Any]
    value: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    error: str | None = None


class Study:
    """The finished trials, and the next trials to run.

    ``settings`` describe the search and its data; a folder with other settings is refused. ``parallel`` is the size of
    a batch.
    """

    def __init__(
        self, space: SearchSpace, settings: Mapping[str, Any], seed: int, folder: Path | None = None, parallel: int = 1
    ) -> None:
        self.space, self.seed, self.folder, self.parallel = space, seed, folder, parallel
        self.settings = {**settings, PARALLEL: parallel}
        self.outcomes: list[Outcome] = []
        self._running: list[Drawn] = []
        self._n_known = 0  # finished trials that ``_history`` has

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Read the trials of the folder, if any, and lock the folder against other processes."""
        if self.folder is None:
            self._study = self._load(None)
            yield
            return
        check_folder(self.folder)
        with only_writer(self.folder, ".tune.lock", "search"):
            try:
                self._study = self._load(self.folder / JOURNAL)
                self.outcomes = [self._checked(trial.user_attrs[OUTCOME], trial.value) for trial in self._finished()]
            except ParameterError:
                raise
            except UNREADABLE as error:
                rule = f"{self.folder / JOURNAL} must have the trials of a search, but is damaged ({error})"
                raise DataError(f"{rule}; choose another --out, or remove the folder") from error
            yield

    def next(self, n_trials: int) -> list[dict[str, Any]]:
        """Return the values of the next trials: the rest of a batch, up to ``n_trials`` in all."""
        done = len(self.outcomes)
        first = done - done % self.parallel
        numbers = range(first, min(first + self.parallel, n_trials))
        self._running = self._batch(numbers, self._finished()[:first])[done - first :]
        return [drawn.values for drawn in self._running]

    @cached_property
    def _history(self) -> optuna.Study:
        """The finished trials of the batches before."""
        study: optuna.Study = require("optuna", "tune", "labelspace tune").create_study(direction="maximize")
        return study

    def _batch(self, numbers: range, before: Sequence[FrozenTrial]) -> list[Drawn]:
        """Return the trials with these numbers, drawn from all trials that finished before the first of them."""
        from optuna.trial import TrialState

        for trial in before[self._n_known :]:
            self._history.add_trial(trial)
        self._n_known = len(before)
        n_good = sum(trial.value is not None for trial in before)
        asked, drawn = [], [self._default()] if 0 in numbers else []
        for number in numbers[len(drawn) :]:
            self._history.sampler = self._sampler(number, n_good)
            asked.append(self._history.ask())
            values = self.space.draw(asked[-1])
            drawn.append(Drawn(values, asked[-1].params, asked[-1].distributions))
        for running in asked:
            # A failed trial is not learned from; the next batch learns from its real result.
            self._history.tell(running, state=TrialState.FAIL)
        return drawn

    def _default(self) -> Drawn:
        values = self.space.default_trial()
        return Drawn(values, values, {key: self.space.ranges[key].distribution() for key in values})

    def _sampler(self, number: int, n_good: int) -> Any:  # noqa: ANN401 - a sampler of Optuna
        from optuna.samplers import PartialFixedSampler, RandomSampler, TPESampler

        rng = np.random.default_rng([self.seed, number])
        seed = int(rng.integers(2**31))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Optuna has called both samplers experimental since 2021
            if n_good >= FIRST_TRIALS:
                return TPESampler(seed=seed, constant_liar=self.parallel > 1)  # trials of a batch keep apart
            unchanged = rng.permutation(list(self.space.ranges))[FIRST_CHANGES:].tolist()
            kept = {key: self.space.defaults[key] for key in unchanged if self.space.has_default(key)}
            return PartialFixedSampler(kept, RandomSampler(seed=seed))

    def finish(self, outcome: Outcome) -> None:
        """Keep the outcome of the first drawn trial whose outcome is not kept yet."""
        from optuna.trial import TrialState, create_trial

        drawn = self._running.pop(0)
        trial = create_trial(
            state=TrialState.FAIL if outcome.value is None else TrialState.COMPLETE,
            value=outcome.value,
            params=dict(drawn.params),
            distributions=dict(drawn.distributions),
            user_attrs={OUTCOME: asdict(outcome)},
        )
        self._study.add_trial(trial)
        self.outcomes.append(outcome)

    def untried(self, batch: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the values of a batch that neither an earlier trial nor an earlier entry of the batch has."""
        new: list[Mapping[str, Any]] = []
        for drawn in batch:
            if self.repeated(drawn) is None and self._values(drawn) not in map(self._values, new):
                new.append(drawn)
        return new

    def repeated(self, drawn: Mapping[str, Any]) -> Outcome | None:
        """Return the outcome of an earlier trial with the same values; None if there is none."""
        values = self._values(drawn)
        return next((old for old in self.outcomes if self._values(old.drawn) == values), None)

    def _values(self, drawn: Mapping[str, Any]) -> dict[str, Any]:
        return {**self.space.defaults, **drawn}

    def _load(self, path: Path | None) -> optuna.Study:
        module = require("optuna", "tune", "labelspace tune")
        module.logging.set_verbosity(module.logging.WARNING)
        storage = None
        if path is not None:
            from optuna.storages import JournalStorage
            from optuna.storages.journal import JournalFileBackend

            storage = JournalStorage(JournalFileBackend(str(path)))
        study: optuna.Study = module.create_study(
            storage=storage, study_name=NAME, direction="maximize", load_if_exists=True
        )
        if study.direction.name != "MAXIMIZE":
            raise ValueError("it does not maximize")
        if SETTINGS not in study.user_attrs:
            study.set_user_attr(SETTINGS, self.settings)
        check_settings(study.user_attrs[SETTINGS], self.settings, self.folder)
        return study

    def _finished(self) -> list[FrozenTrial]:
        """Return the finished trials; an interrupted trial, which older versions left, is drawn again."""
        trials = self._study.get_trials(deepcopy=False)
        return [trial for trial in trials if trial.state.is_finished() and OUTCOME in trial.user_attrs]

    def _checked(self, kept: Mapping[str, Any], value: float | None) -> Outcome:
        outcome = Outcome(**kept)
        numbers = [outcome.cpu_seconds, *outcome.figures.values(), *([] if value is None else [value])]
        drawn = all(known in self.space.ranges[key] for key, known in outcome.drawn.items())
        if not drawn or value != outcome.value or not all(map(_is_number, numbers)):
            raise ValueError("a trial has other values than the search")
        if not isinstance(outcome.error, str | None) or (outcome.error is None) != (value is not None):
            raise ValueError("a trial has neither a value nor an error")
        return outcome


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and isfinite(value)


def check_folder(folder: Path) -> None:
    """Raise ParameterError unless a folder is new or holds a search."""
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"--out must be a folder, but {folder} is a file; choose another --out")
    files = [path for path in folder.iterdir() if not path.name.startswith(".")] if folder.is_dir() else []
    if files and folder / JOURNAL not in files:
        rule = f"--out must be a new folder or one of labelspace tune, but {folder} has other files"
        raise ParameterError(f"{rule}; choose another --out")


def check_settings(known: object, given: Mapping[str, Any], folder: Path | None) -> None:
    """Raise ParameterError unless the kept settings of a search equal the given ones."""
    given = json.loads(json.dumps(given))  # in the form that is kept
    known = {PARALLEL: 1, **known} if isinstance(known, dict) else known
    if not isinstance(known, dict) or known.keys() != given.keys():
        raise ValueError("its settings are of another program")
    for key, value in given.items():
        if known[key] != value:
            differs = f"is of {known[key]}, and this one of {value}"
            if key == "documents":
                differs = "is of other documents"
            elif isinstance(value, dict) and isinstance(known[key], dict):
                differs = _difference(known[key], value)
            rule = f"a search goes on with the same data and settings, but {key} differs: that in {folder} {differs}"
            raise ParameterError(f"{rule}; give the same command, or another --out")


def _difference(known: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """Describe the first difference of two dicts."""
    key = next(key for key in (*given, *known) if known.get(key) != given.get(key))
    old, new = (f"has {key}={which[key]}" if key in which else f"has no {key}" for which in (known, given))
    return f"{old}, and this one {new}"
