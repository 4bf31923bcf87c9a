"""Documents and labels as Python objects: columns, tables and matrices of other packages, none of which is imported."""
