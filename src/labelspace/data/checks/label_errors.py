"""Checks of labels against what a model says; ``experiment.label_errors`` makes them."""

from labelspace.data.checks.base import MEDIUM, Check

CHECKS = (
    Check(
        "probably_wrong_labels", MEDIUM, "labels of training documents look wrong",
        "a model that knows these labels well and has not seen these documents gives them no chance: they are wrong, "
        "or the text does not tell them",
        "look at them, the surest first (--examples 100), and remove those that are wrong",
    ),
    Check(
        "probably_missing_labels", MEDIUM, "training documents seem to lack a label",
        "a model that has not seen these documents gives these labels a chance of 90 % or more",
        "look at them, the surest first (--examples 100), and add those that are missing",
    ),
)  # fmt: skip
