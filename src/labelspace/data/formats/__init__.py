"""The formats of data files: one reader, and a writer where it makes sense, per file."""
