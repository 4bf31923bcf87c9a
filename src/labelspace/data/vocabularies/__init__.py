"""Vocabularies: SKOS, tables and lists of concepts -> labels with URIs, names by language, and a hierarchy."""

from labelspace.data.vocabularies.update import GONE, LabelsBefore, Update, plan_update
from labelspace.data.vocabularies.vocabulary import Note, Vocabulary
from labelspace.data.vocabularies.vocabulary_files import ENDINGS, FORMATS, read_vocabulary, vocabulary_format

__all__ = [
    "ENDINGS",
    "FORMATS",
    "GONE",
    "LabelsBefore",
    "Note",
    "Update",
    "Vocabulary",
    "plan_update",
    "read_vocabulary",
    "vocabulary_format",
]
