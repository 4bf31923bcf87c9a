"""Detection of what a file is, from its name and its first rows: encoding, delimiter, columns, label separator."""
