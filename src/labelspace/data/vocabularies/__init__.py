"""Vocabularies: SKOS, tables and lists of concepts -> labels with URIs, names by language, and a hierarchy."""

from labelspace.data.vocabularies.update import LabelsBefore, Update, plan_update
from labelspace.data.vocabularies.vocabulary_files import ENDINGS, read_vocabulary, vocabulary_format

__all__ = ["ENDINGS", "LabelsBefore", "Update", "plan_update", "read_vocabulary", "vocabulary_format"]
