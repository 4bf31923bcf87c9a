"""Train, evaluate, compare."""

from labelspace.experiment.core import *  # noqa: F403
