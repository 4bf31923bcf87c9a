"""The command train: a model from documents with labels."""
