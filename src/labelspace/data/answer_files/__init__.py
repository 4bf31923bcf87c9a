"""Predictions as files: one writer per kind, chosen by the ending of the name."""

from labelspace.data.answer_files.answer_columns import LabelDisplay, ShownLabel
from labelspace.data.answer_files.writers import ANNIF, ENDINGS, Prediction, answer_format, writing_answers

__all__ = ["ANNIF", "ENDINGS", "LabelDisplay", "Prediction", "ShownLabel", "answer_format", "writing_answers"]
