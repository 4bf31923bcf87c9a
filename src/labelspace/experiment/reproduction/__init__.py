"""The parts of ``reproduce``: the documents of a table, and the runs of its rows."""
