"""The trials of a search, kept by Optuna: in memory, or in a folder, where an interrupted search is resumed.

Every trial is drawn by a sampler of its own, seeded by the seed of the search and by the number of trials before it. So
a search that was interrupted, or got more trials later, is the same as one that ran through.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelspace import store
from labelspace.errors import DataError, ParameterError, require
from labelspace.experiment.tuning.space import SearchSpace

if TYPE_CHECKING:
    import optuna

JOURNAL, NAME = "study.journal", "labelspace"
SETTINGS, OUTCOME = "settings", "outcome"  # user attributes of the study and of a trial
UNREADABLE = (  # what Optuna raises where a journal is not one, or is changed
    ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, RuntimeError,
)  # fmt: skip
FIRST_TRIALS = 10  # drawn at random, the default included; then the sampler learns from them
FIRST_CHANGES = 4  # parameters that each of these changes at most: with many changes at once, nearly all would be bad


@dataclass(frozen=True)
class Outcome:
    """What came of a trial: the values drawn, and the figures, or the error."""

    drawn: Mapping[str, Any]
    value: float | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    error: str | None = None


class Study:
    """The finished trials, and the next one to try.

    ``settings`` say what was searched on what; a folder with others is refused.
    """

    def __init__(self, space: SearchSpace, settings: Mapping[str, Any], seed: int, folder: Path | None = None) -> None:
        self.space, self.settings, self.seed, self.folder = space, dict(settings), seed, folder
        self.outcomes: list[Outcome] = []
        self._running: Any = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Read the trials of the folder, where there are any, and keep other processes from it."""
        if self.folder is None:
            self._study = self._load(None)
            yield
            return
        check_folder(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        with store.locked(self.folder / ".tune.lock") as free:
            if not free:
                raise ParameterError(
                    f"one search may write to {self.folder}, but another one does; wait, or change --out"
                )
            try:
                self._study = self._load(self.folder / JOURNAL)
                self.outcomes = self._read()
            except ParameterError:
                raise
            except UNREADABLE as error:
                raise DataError(
                    f"{self.folder / JOURNAL} must have the trials of a search, but is damaged ({error}); "
                    "choose another --out, or remove the folder"
                ) from error
            yield

    def next(self) -> dict[str, Any]:
        """The values of the next trial: at first those of the default."""
        if not self.outcomes:
            self._running = None
            return self.space.default_trial()
        self._study.sampler = self._sampler()
        self._running = self._study.ask()
        return self.space.draw(self._running)

    def finish(self, outcome: Outcome) -> None:
        """Keep what came of the last trial that was drawn."""
        from optuna.trial import TrialState, create_trial

        kept, state = asdict(outcome), TrialState.FAIL if outcome.value is None else TrialState.COMPLETE
        if self._running is None:
            ranges = {key: self.space.ranges[key].distribution() for key in outcome.drawn}
            self._study.add_trial(
                create_trial(
                    state=state, value=outcome.value, params=dict(outcome.drawn), distributions=ranges,
                    user_attrs={OUTCOME: kept},
                )
            )  # fmt: skip
        else:
            self._running.set_user_attr(OUTCOME, kept)
            self._study.tell(self._running, outcome.value, state)
        self.outcomes.append(outcome)

    def repeated(self, drawn: Mapping[str, Any]) -> Outcome | None:
        """What came of an earlier trial with the same values."""
        values = {**self.space.defaults, **drawn}
        return next((old for old in self.outcomes if {**self.space.defaults, **old.drawn} == values), None)

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

    def _read(self) -> list[Outcome]:
        """The finished trials; one that was interrupted is drawn again."""
        from optuna.trial import TrialState

        outcomes = []
        for trial in self._study.get_trials(deepcopy=False):
            if not trial.state.is_finished():
                self._study.tell(trial.number, state=TrialState.FAIL)
            elif OUTCOME in trial.user_attrs:
                outcomes.append(self._checked(trial.user_attrs[OUTCOME], trial.value))
        return outcomes

    def _checked(self, kept: Mapping[str, Any], value: float | None) -> Outcome:
        outcome = Outcome(**kept)
        numbers = [outcome.cpu_seconds, *outcome.figures.values(), *([] if value is None else [value])]
        drawn = all(known in self.space.ranges[key] for key, known in outcome.drawn.items())
        if not drawn or value != outcome.value or not all(map(_is_number, numbers)):
            raise ValueError("a trial has other values than the search")
        if not isinstance(outcome.error, str | None) or (outcome.error is None) != (value is not None):
            raise ValueError("a trial has neither a value nor an error")
        return outcome

    def _sampler(self) -> Any:  # noqa: ANN401 - a sampler of Optuna
        from optuna.samplers import PartialFixedSampler, RandomSampler, TPESampler

        n_good = sum(outcome.value is not None for outcome in self.outcomes)
        rng = np.random.default_rng([self.seed, len(self.outcomes)])
        seed = int(rng.integers(2**31))
        if n_good >= FIRST_TRIALS:
            return TPESampler(seed=seed)
        unchanged = rng.permutation(list(self.space.ranges))[FIRST_CHANGES:].tolist()
        kept = {key: self.space.defaults[key] for key in unchanged if self.space.has_default(key)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the class is called experimental since 2021
            return PartialFixedSampler(kept, RandomSampler(seed=seed))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and isfinite(value)


def check_folder(folder: Path) -> None:
    """Refuse a folder that has other files than a search."""
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"--out must be a folder, but {folder} is a file; choose another --out")
    files = [path for path in folder.iterdir() if not path.name.startswith(".")] if folder.is_dir() else []
    if files and folder / JOURNAL not in files:
        raise ParameterError(
            f"--out must be a new folder or one of labelspace tune, but {folder} has other files; choose another --out"
        )


def check_settings(known: object, asked: Mapping[str, Any], folder: Path | None) -> None:
    """Refuse to go on with a search of other data or of another space."""
    asked = json.loads(json.dumps(asked))  # as it is kept
    if not isinstance(known, dict) or known.keys() != asked.keys():
        raise ValueError("its settings are of another program")
    for key, value in asked.items():
        if known[key] != value:
            differs = f"is of {known[key]}, and this one of {value}"
            if key == "documents":
                differs = "is of other documents"
            elif isinstance(value, dict) and isinstance(known[key], dict):
                differs = _difference(known[key], value)
            raise ParameterError(
                f"a search goes on with the same data and settings, but {key} differs: that in {folder} {differs}; "
                "give the same command, or another --out"
            )


def _difference(known: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """The first difference of two dicts."""
    key = next(key for key in (*asked, *known) if known.get(key) != asked.get(key))
    old, new = (f"has {key}={which[key]}" if key in which else f"has no {key}" for which in (known, asked))
    return f"{old}, and this one {new}"
