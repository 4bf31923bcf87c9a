"""The command predict: tags of texts, of the documents of a file, or of many files on a cluster."""
