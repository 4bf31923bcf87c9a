"""Draw the values to try next, in batches: each trial is drawn from the results of the earlier batches.

A trial depends only on the seed of the search, on its number and on the size of a batch. It does not depend on when the
trials of its batch end, nor on where they run.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labelspace.errors import require
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


class Draws:
    """Draws trials, first the default. With ``several``, a batch may have more than one trial."""

    def __init__(self, space: SearchSpace, seed: int, several: bool) -> None:
        self.space, self.seed, self.several = space, seed, several
        self._n_known = 0  # finished trials that a batch is drawn from

    @cached_property
    def _history(self) -> optuna.Study:
        """The finished trials of the batches before."""
        study: optuna.Study = require("optuna", "tune", "labelspace tune").create_study(direction="maximize")
        return study

    def batch(self, numbers: range, before: Sequence[FrozenTrial]) -> list[Drawn]:
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
                return TPESampler(seed=seed, constant_liar=self.several)  # trials of a batch keep apart
            unchanged = rng.permutation(list(self.space.ranges))[FIRST_CHANGES:].tolist()
            kept = {key: self.space.defaults[key] for key in unchanged if self.space.has_default(key)}
            return PartialFixedSampler(kept, RandomSampler(seed=seed))
