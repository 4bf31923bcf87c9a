"""Training from files larger than memory: documents and large arrays in the memory-mapped files of a folder."""
